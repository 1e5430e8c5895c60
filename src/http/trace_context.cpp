// The text of http/trace_context.hpp.
#include <coppice/http/trace_context.hpp>

#include "hexadecimal.hpp"

#include <cstdint>

namespace coppice::http {

namespace {

constexpr unsigned known_flags = 3;

// Reads two lowercase digits for each byte. Returns false for others.
bool read_bytes(std::string_view digits, unsigned char* to) noexcept {
    for (std::size_t i = 0; i != digits.size(); i += 2) {
        const std::size_t high = lowercase_digits.find(digits[i]);
        const std::size_t low = lowercase_digits.find(digits[i + 1]);
        if (high == lowercase_digits.npos || low == lowercase_digits.npos) return false;
        *to++ = static_cast<unsigned char>(high * 16 + low);
    }
    return true;
}

}  // namespace

std::array<char, trace_context::text_bytes> trace_context::text() const noexcept {
    std::array<char, text_bytes> made{};
    char* at = made.data();
    *at++ = '0';
    *at++ = '0';
    *at++ = '-';
    at = write_digits(trace, at);
    *at++ = '-';
    at = write_digits(span, at);
    *at++ = '-';
    write_digits(std::array{flags}, at);
    return made;
}

std::optional<trace_context> trace_context::parse(std::string_view text) noexcept {
    if (text.size() < text_bytes || text[2] != '-' || text[35] != '-' || text[52] != '-') {
        return std::nullopt;
    }
    unsigned char version = 0;
    trace_context read;
    if (!read_bytes(text.substr(0, 2), &version) || version == 0xff) return std::nullopt;
    // Later versions may append what begins with a dash.
    if (text.size() != text_bytes && (version == 0 || text[text_bytes] != '-')) return std::nullopt;
    const bool good = read_bytes(text.substr(3, 32), read.trace.data()) &&
                      read_bytes(text.substr(36, 16), read.span.data()) &&
                      read_bytes(text.substr(53, 2), &read.flags);
    if (!good || !read.is_valid() || read.span == decltype(read.span)()) return std::nullopt;
    read.flags &= known_flags;
    return read;
}

}  // namespace coppice::http
