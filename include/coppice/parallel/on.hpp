// on: chooses where an algorithm runs. It is the optional first argument of each algorithm here.
#pragma once
// Without on(), an algorithm that a worker calls runs on that worker's pool. An algorithm that any
// other thread calls runs on the process's default pool (pool/default_pool.hpp).

#include <coppice/parallel/internal/place.hpp>

namespace coppice::parallel {

// Returns a place that runs an algorithm on `pool`: a thread_pool, a queue_pool, a stealing_pool,
// or a contract_pool. The workers of a contract_pool do not fork, so one of them runs the algorithm
// sequentially. A caller that is a worker of the pool runs the algorithm at once. Threads: any.
// Blocks: never; the algorithm blocks its caller. Errors: if the pool has ended, the caller runs
// the algorithm sequentially. Lifetime: the pool outlives the algorithm.
template <internal::pool Pool>
internal::pool_place<Pool> on(Pool& pool) noexcept {
    return internal::pool_place<Pool>(pool);
}

// Returns a place that runs an algorithm on a scheduler. The algorithm forks if the scheduler's
// threads are workers of a pool that forks. Otherwise one of them runs it sequentially. Threads:
// any. Blocks: never; the algorithm blocks its caller until the scheduler has run it, so the caller
// must not be the only thread that could. Errors: the algorithm also throws the error of
// schedule().
template <execution::scheduler Sch>
internal::scheduler_place<Sch> on(Sch sch) noexcept {
    return internal::scheduler_place<Sch>(static_cast<Sch&&>(sch));
}

}  // namespace coppice::parallel
