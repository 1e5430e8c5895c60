// run: makes a loop, runs work on it on the calling thread, and returns the result; for main().
#pragma once
// The work is a sender, a task, or a callable that takes the loop and returns one of these:
//
//   io::run([](io::context& loop) -> task<int> {...}, {.stop_on = {SIGINT, SIGTERM}})
//
// These steps happen in this order, all on the calling thread, except for what the work does
// elsewhere:
//
//   a callable is called, and the work is connected   exceptions leave run()
//   the loop runs, and the work is started on it
//   the work completes, on any thread                 the loop is told; signals are released
//   the loop runs until nothing is pending there      for what the work started and left behind
//   the loop ends; the result is returned, or the error thrown
//
// In the work's environment every scheduler is the loop's. A task that awaits something elsewhere,
// for instance on a pool, comes back to the loop. A timeout finds the loop's timers, even in a task
// on a scheduler without timers.
//
// Stopping: the first signal of `stop_on` requests a stop of the work and restores the handlers
// that were installed before run(). A second signal therefore has the effect that it had before
// run(): by default, it kills a program that does not stop. Only a turn of the loop sees the first
// signal: while the work computes or blocks on the loop's thread, signals of `stop_on` do nothing.
// context::stop() on the loop requests a stop of the work too. After it, run() waits for the work
// alone, and ends everything else with operation_canceled. The work must not call
// context::restart(), which undoes a stop() that the loop has not seen.

#include <coppice/io/context.hpp>
#include <coppice/io/internal/run_work.hpp>

#include <vector>

namespace coppice::io {

// How to run: what stops the work, and on which loop it runs.
struct run_options {
    // Signals that stop the work. Their handlers are replaced until the first signal has come or
    // the work has ended.
    std::vector<int> stop_on = {};
    io::backend backend = io::backend::automatic;
    // For tests: the simulated world that the loop runs in, instead of this machine. Lifetime: must
    // outlive run().
    io::simulation* simulation = nullptr;
};

// Returns std::optional<T> for work that sends a T, an optional of a tuple for several values, and
// a bool for none. The result is empty, or false, if the work was stopped. A callable lives until
// the work has ended.
// Blocks: until the work, and everything that it left on the loop, has ended. Errors: the work's.
// An exception_ptr is rethrown, an error_code is thrown as a std::system_error, and anything else
// is thrown as it is. std::system_error if the loop cannot be made or the signals cannot be
// received. Threads: any that runs no loop. Cost: that of a context.
struct run_t {
    template <class Work>
    auto operator()(Work&& work, const run_options& options = {}) const {
        return internal::run_work<run_t>(static_cast<Work&&>(work), options);
    }
};
inline constexpr run_t run{};

}  // namespace coppice::io
