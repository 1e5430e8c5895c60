// check_option: rejects an option that is out of range; used by the constructors of every room.
#pragma once

#include <coppice/base/clock.hpp>

#include <cstdint>

namespace coppice::internal {

// Checks a number. Errors: std::invalid_argument, "NAME is VALUE; allowed: LEAST to MOST", if it is
// out of range. Cost: two comparisons. Lifetime: `name` is not kept.
void check_option(const char* name, std::uint64_t value, std::uint64_t least, std::uint64_t most);

// Checks a time. Errors: std::invalid_argument, "NAME is VALUE ns; allowed: LEAST or more".
void check_option(const char* name, duration value, duration least = duration::zero());

// More threads or loops than any machine runs. A constructor that is asked for more rejects that,
// instead of making threads until the machine has no memory left.
inline constexpr std::uint64_t threads_most = 65'536;

}  // namespace coppice::internal
