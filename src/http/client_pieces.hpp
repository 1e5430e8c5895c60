// How a client cuts the bodies that it sends.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>

namespace coppice::http::internal {

inline constexpr std::size_t piece_bytes = 16 * 1024;

inline void append_number(std::string& out, std::uint64_t value, int base = 10) {
    char text[20];
    out.append(text, std::to_chars(text, text + sizeof text, value, base).ptr);
}

}  // namespace coppice::http::internal
