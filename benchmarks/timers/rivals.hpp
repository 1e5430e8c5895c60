// Timers: a million wait, and others are armed and canceled among them.
#pragma once

#include <cstdint>
#include <memory>

namespace bench_timers {

// A set of timers, of which `waiting` do not expire while the benchmark runs.
class timer_set {
public:
    virtual ~timer_set() = default;
    // Arms a timer and cancels it, `size` times, each for a new time. Returns a hash of the times.
    virtual std::uint64_t arm_and_cancel(std::size_t size) = 0;
};

std::unique_ptr<timer_set> make_coppice(std::size_t waiting);
std::unique_ptr<timer_set> make_multimap(std::size_t waiting);
std::unique_ptr<timer_set> make_asio(std::size_t waiting);

// The timers of a pool and their alternatives: a wheel per thread under a biased lock, which pools
// use; the same under a plain lock; and one wheel for all threads. If `beside`, another thread arms
// and cancels at the same time.
enum class pool_lock { biased, plain, one_for_all };
std::unique_ptr<timer_set> make_pool(std::size_t waiting, pool_lock lock, bool beside);
// A task on a pool of one worker goes around its queue `size` times, with a timeout or without.
std::uint64_t await_turns(std::size_t size, bool limited);

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
