// A contestant over any queue of tasks; for the rivals.
#pragma once
// Queue: constructed with (tasks, threads). Has `bool pop(unsigned thread, queued_task*&)`, which
// may fail although the queue is not empty, and `void push(unsigned thread, queued_task*)`.

#include "contest.hpp"

namespace bench_contracts {

template <unsigned Rounds, class Queue>
class queue_contestant : public contestant {
public:
    queue_contestant(std::size_t tasks, unsigned threads) : queue_(tasks, threads), tasks_(tasks) {
        for (std::size_t i = 0; i != tasks; ++i)
            queue_.push(static_cast<unsigned>(i % threads), &tasks_[i]);
    }
    std::uint64_t serve(unsigned thread, const coppice::internal::atomic<bool>& stop) override {
        std::uint64_t ran = 0;
        while (!stop.load(coppice::internal::relaxed)) {
            queued_task* task;
            if (!queue_.pop(thread, task)) continue;
            ++task->runs;
            run_task<Rounds>();
            queue_.push(thread, task);
            ++ran;
        }
        return ran;
    }
    std::vector<std::uint64_t> finish() override {
        std::vector<queued_task*> left;
        for (queued_task* task; queue_.pop(0, task);) left.push_back(task);
        return counts_of(tasks_, left);
    }

private:
    Queue queue_;
    std::vector<queued_task> tasks_;
};

}  // namespace bench_contracts
