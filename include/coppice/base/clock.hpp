// clock: clocks are passed in, never global; monotonic_clock for programs, manual_clock for tests.
#pragma once

#include <coppice/base/version.hpp>

#include <chrono>
#include <ctime>

namespace coppice {

namespace internal {

// Durations in coppice are nanoseconds. Time points count from an unspecified start.
using duration = std::chrono::nanoseconds;

// The time base of every clock here. Compare only readings of the same clock.
struct clock_base {
    using duration = coppice::internal::duration;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<clock_base>;
    static constexpr bool is_steady = true;
};
using time_point = clock_base::time_point;  // of any clock here

// A source of time. now() never goes back. Threads: as each clock says. Blocks: never.
class clock {
public:
    // Returns the present time.
    virtual time_point now() const noexcept = 0;

protected:
    ~clock() = default;
};

}  // namespace internal

// CLOCK_MONOTONIC. Threads: any. Cost: one vDSO call.
class [[gnu::visibility("default")]] monotonic_clock final : public internal::clock {
public:
    internal::time_point now() const noexcept override {
        timespec t{};
        ::clock_gettime(CLOCK_MONOTONIC, &t);
        return internal::time_point(std::chrono::seconds(t.tv_sec) +
                                    std::chrono::nanoseconds(t.tv_nsec));
    }
};

// A clock that stands still until a test moves it. Threads: one.
class manual_clock final : public internal::clock {
public:
    internal::time_point now() const noexcept override { return now_; }
    // Moves the clock forward. `by` must not be negative.
    void advance(internal::duration by) noexcept { now_ += by; }

private:
    internal::time_point now_{};
};

}  // namespace coppice
