// One sender and one receiver: a ring that neither waits nor closes, beside spsc_channel.
#include "rivals.hpp"

#include <coppice/base/internal/atomic.hpp>

#include <memory>

namespace bench_sync {

namespace {

using namespace coppice;

// The least that moves an item: each side caches the other's index, and spins.
class plain_ring {
public:
    void send(std::uint64_t item) {
        const std::uint64_t back = back_.load(internal::relaxed);
        while (back - front_seen_ == slots) {
            front_seen_ = front_.load(internal::acquire);
            if (back - front_seen_ == slots) internal::spin_hint();
        }
        items_[back % slots] = item;
        back_.store(back + 1, internal::release);
    }
    std::uint64_t receive() {
        const std::uint64_t front = front_.load(internal::relaxed);
        while (front == back_seen_) {
            back_seen_ = back_.load(internal::acquire);
            if (front == back_seen_) internal::spin_hint();
        }
        const std::uint64_t item = items_[front % slots];
        front_.store(front + 1, internal::release);
        return item;
    }

private:
    alignas(64) internal::atomic<std::uint64_t> back_{0};
    std::uint64_t front_seen_ = 0;
    alignas(64) internal::atomic<std::uint64_t> front_{0};
    std::uint64_t back_seen_ = 0;
    alignas(64) std::unique_ptr<std::uint64_t[]> items_{new std::uint64_t[slots]};
};

}  // namespace

std::uint64_t spsc_plain(std::size_t size) {
    plain_ring ring;
    return on_two_threads(
        size,
        [&](std::size_t n) {
            for (std::size_t i = 0; i != n; ++i) ring.send(i);
        },
        [&](std::size_t n) {
            std::uint64_t sum = 0;
            for (std::size_t i = 0; i != n; ++i) sum += ring.receive();
            return sum;
        });
}

}  // namespace bench_sync
