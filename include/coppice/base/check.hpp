// COPPICE_CHECK: the channel for programmer errors; used by every room, on in every build.
#pragma once
// Four channels carry what goes wrong, and they never mix: a caller's mistake stops the process
// here with a message; an expected failure is a std::error_code (result.hpp, set_error); stopping
// is set_stopped; a user's exception stays an exception. It is a macro, because only
// a macro knows the text and place of the condition.

#include <coppice/base/version.hpp>

namespace coppice::internal {

// check_failed writes one line to stderr and aborts. Threads: any. Never returns.
[[noreturn, gnu::cold, gnu::noinline]] void check_failed(const char* condition, const char* message,
                                                         const char* file, int line) noexcept;

}  // namespace coppice::internal

#define COPPICE_CHECK(condition, message)                                               \
    do {                                                                                \
        if (!(condition)) [[unlikely]]                                                  \
            ::coppice::internal::check_failed(#condition, message, __FILE__, __LINE__); \
    } while (false)
