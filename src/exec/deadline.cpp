// Reads the clock for exec/deadline.hpp.
#include <coppice/exec/deadline.hpp>

#include <time.h>

namespace coppice::execution {

instant monotonic_now() noexcept {
    timespec t{};
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return instant(static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec);
}

}  // namespace coppice::execution
