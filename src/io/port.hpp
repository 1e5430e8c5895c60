// port: parses the number of a port, for endpoints and authorities.
#pragma once

#include <coppice/base/internal/result.hpp>

#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace coppice::io {

// Parses 0 to 65535, decimal digits only. Errors: invalid_argument.
inline internal::result<std::uint16_t> parse_port(std::string_view text) noexcept {
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    if (!whole || (text.size() > 1 && text.front() == '0')) return std::errc::invalid_argument;
    return port;
}

}  // namespace coppice::io
