// Timers: a million wait, and others are armed and cancelled among them.
#pragma once

#include <cstdint>
#include <memory>

namespace bench_timers {

// A set of timers in which `waiting` wait for ever longer times than the benchmark takes.
class timer_set {
public:
    virtual ~timer_set() = default;
    // Arms a timer and cancels it, `size` times, each for another time; a hash of the times.
    virtual std::uint64_t arm_and_cancel(std::size_t size) = 0;
};

std::unique_ptr<timer_set> make_coppice(std::size_t waiting);
std::unique_ptr<timer_set> make_multimap(std::size_t waiting);
std::unique_ptr<timer_set> make_asio(std::size_t waiting);

// The same times for every rival: 1 to 60 seconds from now, in nanoseconds.
class times {
public:
    std::int64_t next() {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return 1'000'000'000 + static_cast<std::int64_t>((state_ >> 20) % 59'000'000'000u);
    }

private:
    std::uint64_t state_ = 42;
};

}  // namespace bench_timers
