// context: an event loop, run by one thread. Operations on sockets, files, and timers wait in it.
#pragma once
// A turn of the loop runs deferred and posted operations, expires timers, and then waits in the
// ring for completions. run() returns when stop() was called, or when nothing is pending and no
// work_guard is held. Operations complete on the thread that runs the loop.
//
// Any thread may run a context, one thread at a time, and a different one the next time. On
// io_uring a change of threads makes a new ring and starts the pending operations again there,
// which takes about 0.1 ms. A file operation that the kernel is executing cannot be started again:
// if one is pending at the change, the process ends with a message. When the old ring ends, the
// kernel interrupts the thread that ran it: a blocking call in that thread, such as recv() with a
// time limit, may then fail with EINTR, as it does after a signal.
//
// The destructor ends every pending operation with operation_canceled, on the destroying thread,
// before it returns. Operations that those completions start end the same way. Destroy sockets
// before their context, or inside those completions.

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/io/internal/event_loop.hpp>
#include <coppice/io/internal/loop_scheduler.hpp>

namespace coppice::io {

// The bases of a program's own operations: work that a context runs, and timers that it expires. An
// object derives from one or both, and passes a function to the constructor. It must live until
// that function has been called.
using internal::operation;
using internal::timer_entry;

// The part of the operating system that a loop waits in. `automatic` chooses io_uring if the kernel
// has what the library needs (Linux 6.1) and allows it, otherwise epoll. `sim` is a simulation.
enum class backend { automatic, uring, epoll, sim };

// An event loop.
// Threads: any, for stop(), now(), work_guard, the scheduler, and the start of operations. run(),
// run_for(), and drain() by any thread, one at a time. Everything else by the thread that runs the
// loop, or by one thread while none runs it.
class [[gnu::visibility("default")]] context : public internal::event_loop {
public:
    // Makes a loop on the given backend. backend::sim makes its own simulation with seed 1.
    // Errors: std::system_error if the requested backend is missing or forbidden here.
    explicit context(backend kind = backend::automatic);
    // For tests: makes a loop that uses `calls` if it runs on io_uring. Lifetime: `calls` must
    // outlive the context.
    explicit context(internal::uring_calls& calls, backend kind = backend::uring);
    // Makes a loop that runs in a simulated world. Lifetime: the world must outlive the context,
    // and has one context at a time.
    explicit context(simulation& world);
    ~context();

    // Runs turns until stop() was called, or until nothing is pending and no work_guard is held.
    // The receives on connections that an http::client keeps do not count. Blocks: until then.
    // Errors: none; completions must not throw.
    void run();
    // Runs turns as run() does, for at most `time`. Returns true if the time ended it and there is
    // more to do.
    bool run_for(internal::duration time);
    // Runs until nothing is pending, for at most `limit`. Then ends what is left, and what that
    // starts, with operation_canceled. Returns true if everything ended by itself. Ignores stop()
    // and guards.
    bool drain(internal::duration limit);
    // Makes run() return after the completion that is under way. Stays in effect until restart().
    void stop() noexcept { event_loop::stop(); }
    // Undoes stop(), even a stop() that run() has not noticed yet. Called between two runs.
    void restart() noexcept { event_loop::restart(); }
    // stopped() returns true if stop() is in effect. kind() returns the backend of the loop.
    bool stopped() const noexcept { return event_loop::stopped(); }
    backend kind() const noexcept { return event_loop::kind(); }

    // Keeps run() from returning when nothing is pending.
    class work_guard;

    // A handle of the loop; models execution::timed_scheduler. Its schedule() completes on the
    // loop: awaiting that moves a coroutine there. Its schedule_after() and schedule_at() complete
    // there at their time, as a timer does. Lifetime: the context must outlive its use.
    using scheduler = internal::loop_scheduler;
    using event_loop::get_scheduler;

    // Returns the context that this thread runs, or nullptr.
    static context* current() noexcept { return static_cast<context*>(event_loop::current()); }
    using event_loop::is_current;
    // Returns the time of the context's clock: CLOCK_MONOTONIC, or the simulation's.
    using event_loop::now;

    // For operations of a program's own (initiate.hpp): run something on the loop, now or at a
    // time, and take over a file. internal/event_loop.hpp describes these functions.
    using event_loop::adopt;
    using event_loop::arm;
    using event_loop::defer;
    using event_loop::disarm;
    using event_loop::ending;
    using event_loop::post;
    using event_loop::ready_time;
    using event_loop::turn_time;
};

// Keeps run() from returning. Lifetime: released before the context is destroyed.
class context::work_guard : coppice::immovable {
public:
    explicit work_guard(context& owner) noexcept : owner_(owner) { owner_.hold(); }
    ~work_guard() { owner_.let_go(); }

private:
    context& owner_;
};

inline context& internal::event_loop::owner() noexcept {
    return static_cast<context&>(*this);
}

}  // namespace coppice::io
