// isolate: a region of forked calls whose joins run no call from outside the region.
#pragma once
// A worker that joins a stolen call helps while it waits. It runs only calls that were forked below
// the call for which it waits (leapfrogging). Every join is therefore isolated by itself: a
// function may hold a lock across a join, if its own calls do not want that lock. isolate() states
// in the program that a function relies on this, as oneTBB's this_task_arena::isolate does.
//
// Source: leapfrogging, Wagner and Calder 1993; docs/decisions/0016-joins-leapfrog.md.

#include <coppice/pool/fork_join.hpp>

namespace coppice {

// Calls f, and returns what it returns. While f runs, no join in f, or in what f calls on this
// thread, runs a call that was not forked in f. f may take an inplace_stop_token, as for fork_join.
// Threads: any. Errors: what f throws. Cost: none.
template <internal::forkable F>
internal::forked_result_t<std::remove_reference_t<F>> isolate(F&& f) {
    return internal::call_forked(f);
}

}  // namespace coppice
