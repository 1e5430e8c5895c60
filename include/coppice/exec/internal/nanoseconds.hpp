// Durations and time points of <chrono> as nanoseconds, without including <chrono>.
#pragma once

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/saturating_cast.hpp>

#include <concepts>
#include <cstdint>
#include <limits>

namespace coppice::execution::internal {

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

constexpr std::int64_t saturated(long double wide) noexcept {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    if (wide != wide) return 0;  // NaN
    if (wide >= static_cast<long double>(most)) return most;
    if (wide <= -static_cast<long double>(most)) return -most;
    return static_cast<std::int64_t>(wide);
}
// Returns the nanoseconds of a duration. Saturates; NaN counts as zero.
template <class Duration>
constexpr std::int64_t nanoseconds_of(const Duration& d) noexcept {
    using rep = typename Duration::rep;
    if constexpr (saturating_integer<rep> && Duration::period::num == 1 &&
                  Duration::period::den == 1'000'000'000) {
        return saturating_cast<std::int64_t>(static_cast<rep>(d.count()));  // exact
    } else {
        // Multiplies by a whole number if there is one, otherwise divides: a whole number of
        // nanoseconds stays exact.
        const long double wide = static_cast<long double>(d.count()) * Duration::period::num;
        constexpr std::int64_t second = 1'000'000'000;
        if constexpr (second % Duration::period::den == 0) {
            return saturated(wide * (second / Duration::period::den));
        } else {
            return saturated(wide * second / Duration::period::den);
        }
    }
}

}  // namespace coppice::execution::internal
