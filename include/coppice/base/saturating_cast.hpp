// saturating_cast: converts an integer to the nearest value of another integer type.
#pragma once
// Source: saturate_cast of the draft's [numeric.sat.cast].

#include <coppice/base/version.hpp>

#include <concepts>
#include <limits>

namespace coppice {

namespace internal {

template <class T>
concept saturating_integer = std::integral<T> && !std::same_as<T, bool>;

}  // namespace internal

// Returns the value of To that is nearest to `value`.
template <internal::saturating_integer To, internal::saturating_integer From>
constexpr To saturating_cast(From value) noexcept {
    To same;
    if (!__builtin_add_overflow(value, From{0}, &same)) return same;
    return value < 0 ? std::numeric_limits<To>::min() : std::numeric_limits<To>::max();
}

}  // namespace coppice
