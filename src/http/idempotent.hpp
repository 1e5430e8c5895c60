// Methods that may be repeated when it is unknown if the server has acted on them.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace coppice::http {

// RFC 9110 section 9.2.2.
inline bool idempotent(std::string_view method) noexcept {
    constexpr std::string_view methods[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"};
    return std::ranges::find(methods, method) != std::ranges::end(methods);
}

}  // namespace coppice::http
