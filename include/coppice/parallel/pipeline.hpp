// pipeline: takes items from a source through stages, with a bounded number in flight.
#pragma once
// A serial stage processes one item at a time: serial_in_order takes the items in the order of the
// source, serial in the order of their arrival. A concurrent stage may process all items at once. A
// stage may be a coroutine: an item that waits in it holds no worker. While an item waits in a
// serial stage, the next item waits before that stage.
//
// A worker takes an item through as many stages as it can before it reads the next item. Idle
// workers join in. An item that finds a serial stage occupied waits there; its worker does not.

#include <coppice/parallel/internal/pipeline_sender.hpp>
#include <coppice/parallel/on.hpp>

#include <type_traits>
#include <utility>

namespace coppice::parallel {

// The kinds of stages.
inline constexpr internal::stage_tag<internal::stage_kind::serial_in_order> serial_in_order{};
inline constexpr internal::stage_tag<internal::stage_kind::serial> serial{};
inline constexpr internal::stage_tag<internal::stage_kind::concurrent> concurrent{};

// Returns a stage that calls f with each item as an r-value. The result of f is the item of the
// next stage. The result of the last stage is dropped, so its f may return void. If f returns a
// task, or another sender with at most one value, the stage waits for it without a worker. Its
// value is then the next item, which continues on the pool. The argument of such an f stays alive
// until its task has ended. Errors: what copying or moving f throws.
template <internal::stage_kind Kind, class F>
internal::pipeline_stage<Kind, std::decay_t<F>> stage(internal::stage_tag<Kind>, F&& f) {
    return {static_cast<F&&>(f)};
}

// pipeline([on(...),] max_in_flight, source, stage(...)...) calls source() until it returns an
// empty optional, and takes each item through all stages. One thread at a time calls the source. At
// most `max_in_flight` items are in flight between the source and the last stage; 0 stops the
// process. Returns true, or false if a stop request came before the source had ended, or the task
// of a stage was stopped.
//
// Stops: after a stop the source is not called again, and the items that it has returned go through
// all stages. So a stop loses nothing, except an item whose own task was stopped. Threads: any.
// Blocks: until all items have ended. A calling worker of the pool takes part, then waits for the
// other workers. If a stage waits for something that only this worker would run, use the sender.
// Errors: the exception of the first item, in the order of the source, whose source call or stage
// threw. The source is not called again. Items behind the failed one are destroyed. Items before it
// continue, because one of them may fail too. std::bad_alloc, before anything is called. Cost: one
// allocation of `max_in_flight` slots, and one of as many pointers for each serial_in_order stage;
// none per item, apart from the frames of tasks. Lifetime: the source and the functions are moved
// into the call; items are moved from stage to stage. Source: ours; the kinds of stages are those
// of oneTBB.
inline constexpr internal::pipeline_function pipeline{};

namespace async {

// Returns the pipeline as a sender. It completes with set_value(), with
// set_error(std::exception_ptr), or with set_stopped() where the function returns false. connect()
// allocates, and may throw std::bad_alloc. The started operation does not allocate. It obeys the
// receiver's stop token.
inline constexpr internal::async_pipeline_function pipeline{};

}  // namespace async

}  // namespace coppice::parallel
