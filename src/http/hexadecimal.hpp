// Bytes as hexadecimal digits; for the numbers of requests and of traces.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace coppice::http {

inline constexpr std::string_view lowercase_digits = "0123456789abcdef";

// Writes two digits for each byte. Returns where they end.
template <std::size_t Size>
char* write_digits(const std::array<unsigned char, Size>& bytes, char* to) noexcept {
    for (const unsigned char byte : bytes) {
        *to++ = lowercase_digits[byte / 16];
        *to++ = lowercase_digits[byte % 16];
    }
    return to;
}

}  // namespace coppice::http
