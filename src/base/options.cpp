// The messages of base/internal/options.hpp.
#include <coppice/base/internal/options.hpp>

#include <stdexcept>
#include <string>

namespace coppice::internal {

void check_option(const char* name, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
    if (value >= least && value <= most) return;
    throw std::invalid_argument("coppice: " + std::string(name) + " is " + std::to_string(value) +
                                "; allowed: " + std::to_string(least) + " to " +
                                std::to_string(most));
}

void check_option(const char* name, duration value, duration least) {
    if (value >= least) return;
    throw std::invalid_argument("coppice: " + std::string(name) + " is " +
                                std::to_string(value.count()) +
                                " ns; allowed: " + std::to_string(least.count()) + " or more");
}

}  // namespace coppice::internal
