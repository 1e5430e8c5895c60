// Which sanitizers this program is built with, for tests that they change or slow down.
#pragma once

namespace coppice::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool under_thread_sanitizer = true;
#elif defined(__has_feature)
inline constexpr bool under_thread_sanitizer = __has_feature(thread_sanitizer);
#else
inline constexpr bool under_thread_sanitizer = false;
#endif

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool under_address_sanitizer = true;
#elif defined(__has_feature)
inline constexpr bool under_address_sanitizer = __has_feature(address_sanitizer);
#else
inline constexpr bool under_address_sanitizer = false;
#endif

inline constexpr bool sanitized = under_thread_sanitizer || under_address_sanitizer;

}  // namespace coppice::test
