// thread_pool: work-stealing workers that sleep when idle; the default choice.
#pragma once
// Each worker has a bounded lock-free deque, and idle workers steal the oldest items of others.
// Items that other threads submit, and those that do not fit into a deque, wait in the injector,
// from which all workers take. docs/decisions/0005-pool-queues.md gives the reasons.

#include <coppice/pool/basic_pool.hpp>
#include <coppice/pool/internal/work_queues.hpp>

namespace coppice {

namespace internal {

using thread_pool_queues = stealing_queues<bounded_deque<work_item, 1024>>;
extern template class basic_pool<thread_pool_queues>;

}  // namespace internal

// Threads: any thread may call every member. Lifetime: the pool outlives what is submitted to it.
// The destructor waits for all of that. Members: see basic_pool.hpp.
class thread_pool : public internal::basic_pool<internal::thread_pool_queues> {
public:
    using basic_pool::basic_pool;
};

}  // namespace coppice
