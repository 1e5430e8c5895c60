// Saturating arithmetic: stops at the ends of its type; for limits, durations, and deadlines.
#pragma once
// A limit or a time may be any value of its type, including a maximum that means "no limit". What
// is computed from it must not wrap: a deadline that wrapped would be in the past, and every client
// would be late. A result beyond the range of its type becomes the end of the range on that side.
//
// The functions accept integers, durations, and time points; <chrono> is not included. Types are
// not mixed: saturating_cast() converts a number from one integer type to another.
//
// Source: add_sat and related functions of the draft's [numeric.sat], for integers.

#include <coppice/base/saturating_cast.hpp>

#include <concepts>
#include <cstdint>
#include <limits>

namespace coppice {

namespace internal {

// A std::chrono::duration of an integer type.
template <class T>
concept saturating_duration = requires(const T& d) {
    requires saturating_integer<typename T::rep>;
    typename T::period;
    { d.count() } -> std::same_as<typename T::rep>;
};

// A std::chrono::time_point of such a duration.
template <class T>
concept saturating_time_point = requires(const T& t) {
    requires saturating_duration<typename T::duration>;
    { t.time_since_epoch() } -> std::same_as<typename T::duration>;
};

}  // namespace internal

// For all functions below: Threads: any. Blocks: never. Cost: a few instructions.

template <internal::saturating_integer T>
constexpr T saturating_add(T a, T b) noexcept {
    T sum;
    if (!__builtin_add_overflow(a, b, &sum)) return sum;
    return b < 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
}

template <internal::saturating_integer T>
constexpr T saturating_sub(T a, T b) noexcept {
    T difference;
    if (!__builtin_sub_overflow(a, b, &difference)) return difference;
    return b < 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
}

// Returns the product, or the end of the type on that side.
template <internal::saturating_integer T>
constexpr T saturating_mul(T a, T b) noexcept {
    T product;
    if (!__builtin_mul_overflow(a, b, &product)) return product;
    return (a < 0) != (b < 0) ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
}

template <internal::saturating_duration Duration>
constexpr Duration saturating_add(Duration a, Duration b) noexcept {
    return Duration(saturating_add(a.count(), b.count()));
}

template <internal::saturating_duration Duration>
constexpr Duration saturating_sub(Duration a, Duration b) noexcept {
    return Duration(saturating_sub(a.count(), b.count()));
}

template <internal::saturating_duration Duration>
constexpr Duration saturating_mul(Duration d, typename Duration::rep times) noexcept {
    return Duration(saturating_mul(d.count(), times));
}

// Returns the deadline that is `time` after `from`, or TimePoint::max() if it is beyond the range.
template <internal::saturating_time_point TimePoint>
constexpr TimePoint saturating_add(TimePoint from, typename TimePoint::duration time) noexcept {
    return TimePoint(saturating_add(from.time_since_epoch(), time));
}

template <internal::saturating_time_point TimePoint>
constexpr TimePoint saturating_sub(TimePoint from, typename TimePoint::duration time) noexcept {
    return TimePoint(saturating_sub(from.time_since_epoch(), time));
}

// Returns the time from `earlier` to `later`; Duration::max() from or to the end of time.
template <internal::saturating_time_point TimePoint>
constexpr typename TimePoint::duration saturating_sub(TimePoint later, TimePoint earlier) noexcept {
    return saturating_sub(later.time_since_epoch(), earlier.time_since_epoch());
}

namespace internal {

// Returns how long `units` take at `units_per_second`, rounded down to the unit of Duration. At a
// rate of 0 that is forever, if there are any units.
template <saturating_duration Duration>
constexpr Duration time_at_rate(std::uint64_t units, std::uint64_t units_per_second) noexcept {
    using rep = typename Duration::rep;
    static_assert(Duration::period::num == 1, "durations finer than a second");
    if (units == 0) return Duration(0);
    if (units_per_second == 0) return Duration(std::numeric_limits<rep>::max());
    const auto per_second = static_cast<std::uint64_t>(Duration::period::den);
    const std::uint64_t whole = saturating_mul<std::uint64_t>(units / units_per_second, per_second);
    const std::uint64_t rest = units % units_per_second;  // less than a second's worth
    const std::uint64_t part = rest <= std::numeric_limits<std::uint64_t>::max() / per_second
                                   ? rest * per_second / units_per_second
                                   : rest / (units_per_second / per_second);
    return Duration(saturating_cast<rep>(saturating_add<std::uint64_t>(whole, part)));
}

}  // namespace internal

}  // namespace coppice
