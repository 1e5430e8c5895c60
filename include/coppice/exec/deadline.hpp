// Points and spans of monotonic time, and get_deadline: until when an operation matters.
#pragma once
// Nanoseconds of the monotonic clock in 64 bits, convertible from and to the durations and time
// points of <chrono>, which is not included. A deadline is an environment query beside the stop
// token: whoever waits may give up when it has passed, and timeout narrows it for its child.

#include <coppice/base/saturating_cast.hpp>
#include <coppice/exec/queries.hpp>

#include <compare>
#include <cstdint>
#include <limits>

namespace coppice::execution {

template <class T>
concept chrono_duration = requires(const T& d) {
    { d.count() } -> std::convertible_to<long double>;
    T::period::num;
    T::period::den;
};
template <class T>
concept chrono_time_point = requires(const T& t) {
    { t.time_since_epoch() } -> chrono_duration;
};

// A length of time. Units: nanoseconds; saturates at about 292 years, from any duration and into
// any. A duration that is not a number counts as zero: a timeout of it is over.
class time_span {
public:
    constexpr time_span() noexcept = default;
    constexpr explicit time_span(std::int64_t nanoseconds) noexcept : nanoseconds_(nanoseconds) {}
    template <chrono_duration Duration>
    constexpr time_span(const Duration& d) noexcept : nanoseconds_(nanoseconds_of(d)) {}

    constexpr std::int64_t nanoseconds() const noexcept { return nanoseconds_; }
    template <chrono_duration Duration>
        requires(Duration::period::num == 1 && Duration::period::den == 1'000'000'000)
    constexpr operator Duration() const noexcept {
        using rep = typename Duration::rep;
        if constexpr (coppice::internal::saturating_integer<rep>) {
            return Duration(saturating_cast<rep>(nanoseconds_));
        } else {
            return Duration(static_cast<rep>(nanoseconds_));
        }
    }
    constexpr auto operator<=>(const time_span&) const noexcept = default;

private:
    template <class Duration>
    static constexpr std::int64_t nanoseconds_of(const Duration& d) noexcept {
        using rep = typename Duration::rep;
        if constexpr (coppice::internal::saturating_integer<rep> && Duration::period::num == 1 &&
                      Duration::period::den == 1'000'000'000) {
            return saturating_cast<std::int64_t>(static_cast<rep>(d.count()));  // exactly
        } else {
            // By a whole number, where there is one, else by a quotient: whole nanoseconds stay so.
            const long double wide = static_cast<long double>(d.count()) * Duration::period::num;
            constexpr std::int64_t second = 1'000'000'000;
            if constexpr (second % Duration::period::den == 0) {
                return saturated(wide * (second / Duration::period::den));
            } else {
                return saturated(wide * second / Duration::period::den);
            }
        }
    }
    static constexpr std::int64_t saturated(long double wide) noexcept {
        constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
        if (wide != wide) return 0;  // not a number
        if (wide >= static_cast<long double>(most)) return most;
        if (wide <= -static_cast<long double>(most)) return -most;
        return static_cast<std::int64_t>(wide);
    }

    std::int64_t nanoseconds_ = 0;
};

// A point of monotonic time; never() is later than all others.
class instant {
public:
    constexpr instant() noexcept = default;
    constexpr explicit instant(std::int64_t nanoseconds) noexcept : nanoseconds_(nanoseconds) {}
    template <chrono_time_point TimePoint>
    constexpr explicit instant(const TimePoint& t) noexcept
        : nanoseconds_(time_span(t.time_since_epoch()).nanoseconds()) {}
    static constexpr instant never() noexcept {
        return instant(std::numeric_limits<std::int64_t>::max());
    }

    constexpr std::int64_t nanoseconds() const noexcept { return nanoseconds_; }
    template <chrono_time_point TimePoint>
    constexpr operator TimePoint() const noexcept {
        return TimePoint(static_cast<typename TimePoint::duration>(time_span(nanoseconds_)));
    }
    constexpr bool operator==(const instant&) const noexcept = default;
    constexpr auto operator<=>(const instant&) const noexcept = default;

    // With time points of a monotonic <chrono> clock, std::chrono::steady_clock's for one.
    template <chrono_time_point TimePoint>
    friend constexpr bool operator==(const instant& a, const TimePoint& b) noexcept {
        return a == instant(b);
    }
    template <chrono_time_point TimePoint>
    friend constexpr auto operator<=>(const instant& a, const TimePoint& b) noexcept {
        return a <=> instant(b);
    }

    // Saturates.
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

// CLOCK_MONOTONIC, now. Cost: one vDSO call.
instant monotonic_now() noexcept;

// The time after which nobody needs the operation's result; instant::never() if nobody says. The
// loop that runs the operation looks at it: no thread and no static object stands behind it, so it
// holds in destructors of static objects, too.
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

// An answer to get_deadline that says more than an instant: unwatched(), the deadline at which
// nobody stops the operation. It converts to an instant.
template <class Answer>
concept partly_watched_deadline = requires(const Answer& answer) {
    { answer.unwatched() } noexcept -> std::same_as<instant>;
};

// The deadline at which nobody stops the operation, so that it has to look at the clock itself:
// what operations of loops look at, and what a task hands down. The end of a timeout is none: it
// comes as a stop, and an operation that ended before that would seem to have stopped by itself. An
// environment that answers get_deadline in front of the timeout's is not the timeout's.
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
