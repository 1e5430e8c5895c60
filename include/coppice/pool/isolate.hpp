// isolate: a region of forked calls whose joins run nothing from outside of it.
#pragma once
// A worker that joins a stolen call helps meanwhile: it runs calls that were forked below the very
// call that it waits for, and no others (leapfrogging). So every join is isolated by itself: a
// function may hold a lock over a join if its own calls do not want that lock. isolate() says in
// the program that a function relies on this, as oneTBB's this_task_arena::isolate does.
//
// Source: leapfrogging, Wagner and Calder 1993; docs/decisions/0016-joins-leapfrog.md.

#include <coppice/pool/fork_join.hpp>

namespace coppice {

// Calls f, and returns what it returns: while f runs, no join in it, nor in what it calls on this
// thread, runs a call that was not forked in it. f may take an inplace_stop_token, as for
// fork_join. Threads: any. Errors: what f throws. Cost: none.
template <internal::forkable F>
internal::forked_result_t<std::remove_reference_t<F>> isolate(F&& f) {
    return internal::call_forked(f);
}

}  // namespace coppice
