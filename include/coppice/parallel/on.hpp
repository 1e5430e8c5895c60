// on: says where an algorithm runs; the first argument of each algorithm of this room.
#pragma once
// Without it, an algorithm runs on the pool of the worker that calls it. On any other thread it
// runs on the process's default pool (pool/default_pool.hpp).

#include <coppice/parallel/internal/place.hpp>

namespace coppice::parallel {

// Returns the place of an algorithm that runs on `pool`: a thread_pool, a queue_pool, a
// stealing_pool, or a contract_pool, whose workers do not fork, so it runs in order on one of them.
// A caller that is a worker of the pool runs the algorithm at once. Lifetime: the pool outlives the
// algorithm. After its end, the algorithm runs in order on its caller.
template <internal::pool Pool>
internal::pool_place<Pool> on(Pool& pool) noexcept {
    return internal::pool_place<Pool>(pool);
}

// Returns the place of an algorithm that runs on a scheduler. It forks if the scheduler's threads
// are workers of a pool that forks, and otherwise runs in order on one of them. Errors: an
// algorithm also throws what scheduling fails with. Blocks: an algorithm blocks until the
// scheduler has run it, so the caller must not be the only thread that can.
template <execution::scheduler Sch>
internal::scheduler_place<Sch> on(Sch sch) noexcept {
    return internal::scheduler_place<Sch>(static_cast<Sch&&>(sch));
}

}  // namespace coppice::parallel
