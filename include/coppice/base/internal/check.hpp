// COPPICE_CHECK: stops the process on a programmer error; used by every room, in every build.
#pragma once
// Four channels carry what goes wrong, and they never mix. A caller's mistake stops the process
// here with a message. An expected failure is a std::error_code (result.hpp, set_error). Stopping
// is set_stopped. A user's exception stays an exception. This is a macro because only a macro knows
// the text and the place of the condition.

#include <coppice/base/version.hpp>

namespace coppice::internal {

// Writes one line to stderr and aborts. Threads: any. Never returns.
[[noreturn, gnu::cold, gnu::noinline]] void check_failed(const char* condition, const char* message,
                                                         const char* file, int line) noexcept;

}  // namespace coppice::internal

#define COPPICE_CHECK(condition, message)                                               \
    do {                                                                                \
        if (!(condition)) [[unlikely]]                                                  \
            ::coppice::internal::check_failed(#condition, message, __FILE__, __LINE__); \
    } while (false)
