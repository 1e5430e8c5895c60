// tbb::concurrent_queue in the contest.
#include <tbb/concurrent_queue.h>

#include "queue_contestant.hpp"

namespace bench_contracts {

namespace {

class tbb_queue {
public:
    tbb_queue(std::size_t, unsigned) {}
    bool pop(unsigned, queued_task*& task) { return queue_.try_pop(task); }
    void push(unsigned, queued_task* task) { queue_.push(task); }

private:
    tbb::concurrent_queue<queued_task*> queue_;
};

template <unsigned Rounds>
using tbb_contestant = queue_contestant<Rounds, tbb_queue>;

}  // namespace

contestant_ptr make_tbb(unsigned rounds, std::size_t tasks, unsigned threads) {
    return make_contestant<tbb_contestant>(rounds, tasks, threads);
}

}  // namespace bench_contracts
