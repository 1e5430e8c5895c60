// moodycamel::ConcurrentQueue in the contest, without tokens, and with two per thread.
#include <concurrentqueue/concurrentqueue.h>

#include "queue_contestant.hpp"

namespace bench_contracts {

namespace {

using queue = moodycamel::ConcurrentQueue<queued_task*>;

class plain_queue {
public:
    plain_queue(std::size_t tasks, unsigned threads) : queue_(tasks, threads, threads + 1) {}
    bool pop(unsigned, queued_task*& task) { return queue_.try_dequeue(task); }
    void push(unsigned, queued_task* task) { queue_.enqueue(task); }

private:
    queue queue_;
};

class token_queue {
public:
    token_queue(std::size_t tasks, unsigned threads) : queue_(tasks, threads, threads + 1) {
        for (unsigned i = 0; i != threads; ++i)
            tokens_.push_back(std::make_unique<thread_tokens>(queue_));
    }
    bool pop(unsigned thread, queued_task*& task) {
        return queue_.try_dequeue(tokens_[thread]->consumer, task);
    }
    void push(unsigned thread, queued_task* task) {
        queue_.enqueue(tokens_[thread]->producer, task);
    }

private:
    struct alignas(64) thread_tokens {
        explicit thread_tokens(queue& q) : producer(q), consumer(q) {}
        moodycamel::ProducerToken producer;
        moodycamel::ConsumerToken consumer;
    };
    queue queue_;
    std::vector<std::unique_ptr<thread_tokens>> tokens_;
};

template <unsigned Rounds>
using plain_contestant = queue_contestant<Rounds, plain_queue>;
template <unsigned Rounds>
using token_contestant = queue_contestant<Rounds, token_queue>;

}  // namespace

contestant_ptr make_moodycamel(unsigned rounds, std::size_t tasks, unsigned threads) {
    return make_contestant<plain_contestant>(rounds, tasks, threads);
}
contestant_ptr make_moodycamel_tokens(unsigned rounds, std::size_t tasks, unsigned threads) {
    return make_contestant<token_contestant>(rounds, tasks, threads);
}

}  // namespace bench_contracts
