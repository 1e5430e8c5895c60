// boost::lockfree::queue in the contest, its nodes allocated beforehand.
#include <boost/lockfree/queue.hpp>

#include "queue_contestant.hpp"

namespace bench_contracts {

namespace {

class boost_queue {
public:
    boost_queue(std::size_t tasks, unsigned threads) : queue_(tasks + threads) {}
    bool pop(unsigned, queued_task*& task) { return queue_.pop(task); }
    void push(unsigned, queued_task* task) { queue_.push(task); }

private:
    boost::lockfree::queue<queued_task*> queue_;
};

template <unsigned Rounds>
using boost_contestant = queue_contestant<Rounds, boost_queue>;

}  // namespace

contestant_ptr make_boost(unsigned rounds, std::size_t tasks, unsigned threads) {
    return make_contestant<boost_contestant>(rounds, tasks, threads);
}

}  // namespace bench_contracts
