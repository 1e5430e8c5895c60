// A queue as programs write it by hand: a deque, a mutex, and two condition variables.
#include "rivals.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>

namespace bench_sync {

namespace {

class plain_queue {
public:
    void send(std::uint64_t item) {
        std::unique_lock lock(mutex_);
        not_full_.wait(lock, [&] { return items_.size() != slots; });
        items_.push_back(item);
        lock.unlock();
        not_empty_.notify_one();
    }
    std::uint64_t receive() {
        std::unique_lock lock(mutex_);
        not_empty_.wait(lock, [&] { return !items_.empty(); });
        const std::uint64_t item = items_.front();
        items_.pop_front();
        lock.unlock();
        not_full_.notify_one();
        return item;
    }

private:
    std::mutex mutex_;
    std::condition_variable not_full_, not_empty_;
    std::deque<std::uint64_t> items_;
};

const auto send_all = [](plain_queue& queue) {
    return [&queue](std::size_t n) {
        for (std::size_t i = 0; i != n; ++i) queue.send(i);
    };
};
const auto receive_all = [](plain_queue& queue) {
    return [&queue](std::size_t n) {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i != n; ++i) sum += queue.receive();
        return sum;
    };
};

}  // namespace

std::uint64_t two_threads_condition(std::size_t size) {
    plain_queue queue;
    return on_two_threads(size, send_all(queue), receive_all(queue));
}
std::uint64_t four_condition(std::size_t size) {
    plain_queue queue;
    return on_four_threads(size, send_all(queue), receive_all(queue));
}

}  // namespace bench_sync
