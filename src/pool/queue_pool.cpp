// Instantiates the workers of pool/queue_pool.hpp.
#include <coppice/pool/queue_pool.hpp>

#include <coppice/pool/internal/pool_members.hpp>

namespace coppice::internal {

template class basic_pool<shared_queue<mutex_queue>>;
template class basic_pool<shared_queue<lockfree_queue>>;
template class basic_pool<stealing_queues<mutex_deques>>;
template class basic_pool<stealing_queues<kept_deques>>;
template class basic_pool<stealing_queues<counted_deques>>;

}  // namespace coppice::internal
