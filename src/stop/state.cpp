// The one cold question that a stop_state asks the system.
#include <coppice/stop/state.hpp>

#include <algorithm>
#include <bit>

#include <unistd.h>

namespace coppice::internal {

std::size_t stop_state::stripes_grown() noexcept {
    const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
    const std::size_t wanted = 2 * static_cast<std::size_t>(std::max(processors, 1L));
    return std::min(std::bit_ceil(wanted), stop_table::stripes_most);
}

}  // namespace coppice::internal
