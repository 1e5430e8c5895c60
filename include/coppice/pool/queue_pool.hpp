// queue_pool and stealing_pool: like thread_pool with other queues, as the thesis compares them.
#pragma once
// One template parameter chooses the queues. Workers, sleep, fork_join, and schedulers are shared
// (basic_pool.hpp).
//
//   queue_pool<mutex_queue>           one queue under a lock
//   queue_pool<lockfree_queue>        one queue without a lock
//   stealing_pool<mutex_deques>       a deque for each worker, under a lock
//   thread_pool                       a deque for each worker, lock-free and bounded: the default
//   stealing_pool<kept_deques>        the same, growing, old buffers kept
//   stealing_pool<counted_deques>     the same, growing, old buffers counted and freed

#include <coppice/pool/basic_pool.hpp>
#include <coppice/pool/internal/growing_deque.hpp>
#include <coppice/pool/internal/mutex_deque.hpp>
#include <coppice/pool/internal/work_queues.hpp>
#include <coppice/pool/lockfree_queue.hpp>
#include <coppice/pool/mutex_queue.hpp>

namespace coppice {

// The deques of the thesis's work stealing: under mutexes; growing, with old buffers kept until the
// end; growing, with references to old buffers counted.
using mutex_deques = internal::mutex_deque<internal::work_item>;
using kept_deques = internal::growing_deque<internal::work_item, internal::kept_buffers>;
using counted_deques = internal::growing_deque<internal::work_item, internal::counted_buffers>;

namespace internal {

extern template class basic_pool<shared_queue<mutex_queue>>;
extern template class basic_pool<shared_queue<lockfree_queue>>;
extern template class basic_pool<stealing_queues<mutex_deques>>;
extern template class basic_pool<stealing_queues<kept_deques>>;
extern template class basic_pool<stealing_queues<counted_deques>>;

}  // namespace internal

// A pool whose workers share one queue. Queue is mutex_queue or lockfree_queue. Threads, lifetime:
// as thread_pool.
template <class Queue>
class queue_pool : public internal::basic_pool<internal::shared_queue<Queue>> {
public:
    using internal::basic_pool<internal::shared_queue<Queue>>::basic_pool;
};

// A pool whose workers each have a deque, from which the others steal. Deque is one of those above.
// Threads, lifetime: as thread_pool.
template <class Deque>
class stealing_pool : public internal::basic_pool<internal::stealing_queues<Deque>> {
public:
    using internal::basic_pool<internal::stealing_queues<Deque>>::basic_pool;
};

}  // namespace coppice
