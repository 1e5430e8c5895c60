// A queue for one producer and one consumer, emptied by several threads without a lock.
// [top]
#include <coppice/contract.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

using namespace coppice;
// [/top]

namespace {

// One thread pushes and one pops. Two threads that pop at once would corrupt it.
class spsc_queue {
public:
    bool push(int value) {
        const unsigned at = tail_.load(std::memory_order_relaxed);
        if (at - head_.load(std::memory_order_acquire) == values_.size()) return false;
        values_[at % values_.size()] = value;
        tail_.store(at + 1, std::memory_order_release);
        return true;
    }
    bool pop(int& value) {
        const unsigned at = head_.load(std::memory_order_relaxed);
        if (at == tail_.load(std::memory_order_acquire)) return false;
        value = values_[at % values_.size()];
        head_.store(at + 1, std::memory_order_release);
        return true;
    }

private:
    std::array<int, 64> values_{};
    std::atomic<unsigned> head_{0};
    std::atomic<unsigned> tail_{0};
};

}  // namespace

int main() {
    constexpr int count = 10'000;
    spsc_queue queue;
    int expected = 0;  // used only by the contract, which never runs twice at once
    long sum = 0;
    inplace_stop_source done;
    blocking_work_contract_group group(64);

    // [consumer]
    // A contract runs on one thread at a time, and each run sees what the previous run wrote. So it
    // can be the only consumer of the queue, although any worker may execute it next.
    work_contract consumer = group.create_contract([&](work_contract_token& token) {
        int value;
        for (int i = 0; i != 16; ++i) {  // a few at a time, to be fair to other contracts
            if (!queue.pop(value)) return;
            if (value != expected) std::puts("out of order");
            ++expected;
            sum += value;
            if (expected == count) done.request_stop();  // the workers return
        }
        token.schedule();  // there may be more
    });
    std::vector<std::thread> workers;
    for (int i = 0; i != 3; ++i) {
        workers.emplace_back([&] {
            while (group.execute_next_contract(done.get_token())) {
            }
        });
    }
    for (int i = 0; i != count; ++i) {
        while (!queue.push(i)) std::this_thread::yield();
        consumer.schedule();  // sets one bit; no effect if it is already set
    }
    // [/consumer]

    for (std::thread& worker : workers) worker.join();
    std::printf("%d values in order, sum %ld\n", expected, sum);
}
