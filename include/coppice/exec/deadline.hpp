// Points and spans of monotonic time; get_deadline: the time until which an operation matters.
#pragma once
// Times are 64-bit nanoseconds of the monotonic clock. They convert from and to the durations and
// time points of <chrono>, which is not included. A deadline is an environment query, like the stop
// token: an operation may give up when it has passed, and timeout narrows it for its child.

#include <coppice/base/saturating_cast.hpp>
#include <coppice/exec/internal/nanoseconds.hpp>
#include <coppice/exec/queries.hpp>

#include <compare>
#include <cstdint>
#include <limits>

namespace coppice::execution {

// A length of time. Units: nanoseconds; saturates at about 292 years in both directions.
class time_span {
public:
    // Zero.
    constexpr time_span() noexcept = default;
    constexpr explicit time_span(std::int64_t nanoseconds) noexcept : nanoseconds_(nanoseconds) {}
    // Converts a duration of <chrono>. One that is NaN counts as zero, so a timeout of it has
    // passed.
    template <internal::chrono_duration Duration>
    constexpr time_span(const Duration& d) noexcept : nanoseconds_(internal::nanoseconds_of(d)) {}

    // Returns the length in nanoseconds; negative before zero.
    constexpr std::int64_t nanoseconds() const noexcept { return nanoseconds_; }
    // Converts to a <chrono> duration of nanoseconds; saturates if its type is smaller.
    template <internal::chrono_duration Duration>
        requires(Duration::period::num == 1 && Duration::period::den == 1'000'000'000)
    constexpr operator Duration() const noexcept {
        using rep = typename Duration::rep;
        if constexpr (internal::saturating_integer<rep>) {
            return Duration(saturating_cast<rep>(nanoseconds_));
        } else {
            return Duration(static_cast<rep>(nanoseconds_));
        }
    }
    constexpr auto operator<=>(const time_span&) const noexcept = default;

private:
    std::int64_t nanoseconds_ = 0;
};

// A point of monotonic time.
class instant {
public:
    // The clock's epoch.
    constexpr instant() noexcept = default;
    // Units: nanoseconds since the monotonic clock's epoch.
    constexpr explicit instant(std::int64_t nanoseconds) noexcept : nanoseconds_(nanoseconds) {}
    // Converts a time point of a monotonic <chrono> clock, such as std::chrono::steady_clock.
    template <internal::chrono_time_point TimePoint>
    constexpr explicit instant(const TimePoint& t) noexcept
        : nanoseconds_(time_span(t.time_since_epoch()).nanoseconds()) {}
    // Returns the instant that is later than all others.
    static constexpr instant never() noexcept {
        return instant(std::numeric_limits<std::int64_t>::max());
    }

    // Returns the nanoseconds since the monotonic clock's epoch.
    constexpr std::int64_t nanoseconds() const noexcept { return nanoseconds_; }
    // Converts to a time point of a monotonic <chrono> clock.
    template <internal::chrono_time_point TimePoint>
    constexpr operator TimePoint() const noexcept {
        return TimePoint(static_cast<typename TimePoint::duration>(time_span(nanoseconds_)));
    }

    constexpr bool operator==(const instant&) const noexcept = default;
    constexpr auto operator<=>(const instant&) const noexcept = default;

    // Compares with time points of a monotonic <chrono> clock, such as std::chrono::steady_clock.
    template <internal::chrono_time_point TimePoint>
    friend constexpr bool operator==(const instant& a, const TimePoint& b) noexcept {
        return a == instant(b);
    }
    template <internal::chrono_time_point TimePoint>
    friend constexpr auto operator<=>(const instant& a, const TimePoint& b) noexcept {
        return a <=> instant(b);
    }

    // Saturates, as operator- does.
    friend constexpr instant operator+(instant t, time_span d) noexcept {
        std::int64_t sum = 0;
        if (!__builtin_add_overflow(t.nanoseconds_, d.nanoseconds(), &sum)) return instant(sum);
        return d.nanoseconds() > 0 ? never() : instant(std::numeric_limits<std::int64_t>::min());
    }
    friend constexpr time_span operator-(instant later, instant earlier) noexcept {
        std::int64_t difference = 0;
        if (!__builtin_sub_overflow(later.nanoseconds_, earlier.nanoseconds_, &difference)) {
            return time_span(difference);
        }
        return time_span(later > earlier ? std::numeric_limits<std::int64_t>::max()
                                         : -std::numeric_limits<std::int64_t>::max());
    }

private:
    std::int64_t nanoseconds_ = 0;
};

// Returns the current CLOCK_MONOTONIC time. Cost: one vDSO call.
instant monotonic_now() noexcept;

// Returns the time after which the operation's result is not needed; instant::never() if the
// environment does not say. The loop that runs the operation enforces it. No thread and no static
// object is involved, so deadlines also hold in destructors of static objects.
struct get_deadline_t {
    template <class Env>
    constexpr instant operator()(const Env& env) const noexcept {
        if constexpr (has_query<Env, get_deadline_t>) {
            static_assert(noexcept(env.query(*this)), "get_deadline must not throw");
            return instant(env.query(*this));
        } else {
            return instant::never();
        }
    }
    static constexpr bool query(forwarding_query_t) noexcept { return true; }
};
inline constexpr get_deadline_t get_deadline{};

// An answer to get_deadline that says more than an instant: unwatched() is the deadline that no
// stop request enforces. The answer converts to an instant.
template <class Answer>
concept partly_watched_deadline = requires(const Answer& answer) {
    { answer.unwatched() } noexcept -> std::same_as<instant>;
};

// Returns the deadline that no stop request enforces, so that the operation must watch the clock
// itself. The operations of loops use it, and a task passes it to what it awaits. The end of a
// timeout is not such a deadline: it arrives as a stop request, and an operation that ended by
// itself before that would look as if it had been stopped by itself. If an environment in front of
// the timeout's answers get_deadline, its answer counts.
struct get_unwatched_deadline_t {
    template <class Env>
    constexpr instant operator()(const Env& env) const noexcept {
        if constexpr (has_query<Env, get_deadline_t>) {
            if constexpr (partly_watched_deadline<decltype(env.query(get_deadline))>) {
                return env.query(get_deadline).unwatched();
            } else {
                return get_deadline(env);
            }
        } else {
            return instant::never();
        }
    }
};
inline constexpr get_unwatched_deadline_t get_unwatched_deadline{};

}  // namespace coppice::execution
