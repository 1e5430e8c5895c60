// moodycamel: BlockingConcurrentQueue, which has no bound and keeps only each sender's order.
#include "rivals.hpp"

#include <concurrentqueue/blockingconcurrentqueue.h>

namespace bench_sync {

namespace {

using queue_type = moodycamel::BlockingConcurrentQueue<std::uint64_t>;

const auto send_all = [](queue_type& queue) {
    return [&queue](std::size_t n) {
        for (std::size_t i = 0; i != n; ++i) queue.enqueue(i);
    };
};
const auto receive_all = [](queue_type& queue) {
    return [&queue](std::size_t n) {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i != n; ++i) {
            std::uint64_t item = 0;
            queue.wait_dequeue(item);
            sum += item;
        }
        return sum;
    };
};

}  // namespace

std::uint64_t two_threads_moodycamel(std::size_t size) {
    queue_type queue;
    return on_two_threads(size, send_all(queue), receive_all(queue));
}
std::uint64_t four_moodycamel(std::size_t size) {
    queue_type queue;
    return on_four_threads(size, send_all(queue), receive_all(queue));
}

}  // namespace bench_sync
