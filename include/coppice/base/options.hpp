// Refusing options that cannot be: what every room's constructors say about a number out of range.
#pragma once

#include <coppice/base/clock.hpp>

#include <cstdint>

namespace coppice::internal {

// Errors: std::invalid_argument, "NAME is VALUE; allowed: LEAST to MOST", for a value out of range.
// Cost: two comparisons. Lifetime: `name` is not kept.
void check_option(const char* name, std::uint64_t value, std::uint64_t least, std::uint64_t most);

// Of a time: "NAME is VALUE ns; allowed: 0 or more".
void check_option(const char* name, duration value);

// More threads or loops than any machine runs; a constructor that is asked for them refuses, rather
// than make them until the machine has no memory left.
inline constexpr std::uint64_t threads_most = 65'536;

}  // namespace coppice::internal
