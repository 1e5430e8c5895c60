// parallel_for and parallel_reduce: loops over indices on a pool's workers, without a grain size.
#pragma once
// A loop of long iterations is halved by fork_join until one iteration is left. A loop of short
// iterations runs as a plain loop, a chunk at a time. It is cut only when another worker is idle
// and asks for work (fork_deque). So a loop without help costs what a plain loop costs, and a
// loop with help is cut as often as workers run out of work. The kind of loop and the size of a
// chunk are learned from the time that chunks take. A request is seen within some microseconds or
// one iteration.
//
// On a thread that is not a worker, the default pool makes the call (default_pool.hpp). A stop
// request (fork_join.hpp) or an exception ends a loop early, between two chunks. Source: lazy
// binary splitting, Tzannes et al. 2010.

#include <coppice/pool/internal/default_worker.hpp>
#include <coppice/pool/internal/loop_walks.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace coppice {

// Calls f(i) for each index of [begin, end), or f(first, last) for ranges that make it up, in any
// order and on any worker. Returns true if all were called, even if a stop request came meanwhile.
// Returns false if a stop request left some out. Threads: any; several threads call f at the same
// time. Blocks: until all calls have ended. Errors: the exception of one call; no further calls
// begin then. Cost: no allocation; per chunk of 5 to 20 us, a clock call. A trivially
// copyable function of at most 64 bytes, whose operator for such a call is const, is called as a
// copy: what it captures by value stays in registers. Any other f is called itself.
template <internal::loop_index Index, class F>
    requires std::invocable<F&, Index> || std::invocable<F&, Index, Index>
bool parallel_for(Index begin, std::type_identity_t<Index> end, F&& f) {
    internal::parallel_for_walk<Index, std::remove_reference_t<F>> walk(f);
    if (begin < end) internal::call_on_worker([&walk, begin, end] { walk.run(begin, end); });
    return walk.is_complete();
}

// Returns combine(... combine(identity, map(begin)) ..., map(end - 1)). combine must be
// associative, and identity its neutral element; the order of operands is kept. After a stop
// request the result covers only some of the indices. Otherwise as parallel_for.
template <internal::loop_index Index, class T, class Map, class Combine>
    requires std::invocable<Map&, Index> &&
             std::is_invocable_r_v<T, Combine&, T, std::invoke_result_t<Map&, Index>> &&
             std::is_invocable_r_v<T, Combine&, T, T>
T parallel_reduce(Index begin, std::type_identity_t<Index> end, T identity, Map&& map,
                  Combine&& combine) {
    internal::parallel_reduce_walk<Index, T, std::remove_reference_t<Map>,
                                   std::remove_reference_t<Combine>>
        walk(identity, map, combine);
    if (!(begin < end)) return identity;
    return internal::call_on_worker([&walk, begin, end] { return walk.run(begin, end); });
}

}  // namespace coppice
