// The cold half of base/internal/check.hpp.
#include <coppice/base/internal/check.hpp>

#include <cstdio>
#include <cstdlib>

void coppice::internal::check_failed(const char* condition, const char* message, const char* file,
                                     int line) noexcept {
    std::fprintf(stderr, "coppice: %s (%s) at %s:%d\n", message, condition, file, line);
    std::fflush(stderr);
    std::abort();
}
