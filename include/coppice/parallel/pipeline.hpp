// pipeline: items from a source go through stages, a bounded number at a time.
#pragma once
// A stage is serial or concurrent. A serial stage has one item at a time: serial_in_order those of
// the source in their order, serial in the order in which they come. A concurrent stage may have
// all items at once. A stage may be a coroutine: an item that waits holds no worker. A serial stage
// keeps its next item waiting meanwhile.
//
// A worker takes an item as far as it goes before it reads the next one. Other workers take part
// when they are idle. An item that finds a serial stage occupied waits there; its worker does not.

#include <coppice/parallel/internal/pipeline_sender.hpp>
#include <coppice/parallel/on.hpp>

#include <type_traits>
#include <utility>

namespace coppice::parallel {

// The kinds of stages.
inline constexpr internal::stage_tag<internal::stage_kind::serial_in_order> serial_in_order{};
inline constexpr internal::stage_tag<internal::stage_kind::serial> serial{};
inline constexpr internal::stage_tag<internal::stage_kind::concurrent> concurrent{};

// Returns a stage that calls f with each item as an r-value. What f returns is the item of the next
// stage; the last stage may return void, and what it returns is dropped. If f returns a task, or
// another sender with at most one value, the stage waits for it, and that value is the item; the
// item continues on the pool. What such an f was given stays alive until its task has ended.
template <internal::stage_kind Kind, class F>
internal::pipeline_stage<Kind, std::decay_t<F>> stage(internal::stage_tag<Kind>, F&& f) {
    return {static_cast<F&&>(f)};
}

// pipeline(max_in_flight, source, stage(...)...), with on(...) before or without, calls source()
// until it returns an empty optional, and takes each item through all stages. One thread at a time
// calls the source. Between the source and the end there are at most `max_in_flight` items; 0 stops
// the process. Returns true; false if a stop request came before the source had ended, or the
// task of a stage was stopped. The source is not called again then, and the items that it has
// given are taken to the end. So a stop loses nothing, except an item whose own task was stopped.
// Threads: any. Blocks: until all items have ended. A worker of the pool that calls it takes part,
// then waits for the others. So if a stage waits for something that only this worker would run,
// use the sender. Errors: the exception of the source or a stage that belongs to the first item, in
// the order of the source. The source is not called again. The items behind the one that failed are
// destroyed; those before it are taken to the end, since one of them may fail as well.
// std::bad_alloc, before anything is called. Cost: one allocation of `max_in_flight` slots, one of
// as many pointers for each stage in order; per item none, beside the frames of tasks. Lifetime:
// the source and the functions are moved into the call, and items are moved from stage to stage.
inline constexpr internal::pipeline_function pipeline{};

namespace async {

// The same as a sender, which completes with set_value(), set_error(std::exception_ptr), or
// set_stopped() where the function returns false. connect() allocates, and may throw
// std::bad_alloc; the operation does not allocate. The receiver's stop token is in force.
inline constexpr internal::async_pipeline_function pipeline{};

}  // namespace async

}  // namespace coppice::parallel
