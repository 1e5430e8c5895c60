// oneTBB: concurrent_bounded_queue, whose threads block.
#include "rivals.hpp"

#include <oneapi/tbb/concurrent_queue.h>

namespace bench_sync {

namespace {

using queue_type = tbb::concurrent_bounded_queue<std::uint64_t>;

const auto send_all = [](queue_type& queue) {
    return [&queue](std::size_t n) {
        for (std::size_t i = 0; i != n; ++i) queue.push(i);
    };
};
const auto receive_all = [](queue_type& queue) {
    return [&queue](std::size_t n) {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i != n; ++i) {
            std::uint64_t item = 0;
            queue.pop(item);
            sum += item;
        }
        return sum;
    };
};

}  // namespace

std::uint64_t two_threads_tbb(std::size_t size) {
    queue_type queue;
    queue.set_capacity(slots);
    return on_two_threads(size, send_all(queue), receive_all(queue));
}
std::uint64_t four_tbb(std::size_t size) {
    queue_type queue;
    queue.set_capacity(slots);
    return on_four_threads(size, send_all(queue), receive_all(queue));
}

}  // namespace bench_sync
