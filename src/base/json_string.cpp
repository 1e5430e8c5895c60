// The characters of base/internal/json_string.hpp.
#include <coppice/base/internal/json_string.hpp>

#include <cstddef>
#include <optional>

namespace coppice::internal {

namespace {

// How many bytes at the beginning of `text` are one character of UTF-8; 0: they are none (Unicode
// 15, table 3-7).
std::size_t character_bytes(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) -> unsigned {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
    };
    const auto continues = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    if (first < 0xc2 || first > 0xf4 || !continues(1)) return 0;
    if (first < 0xe0) return 2;
    if (!continues(2)) return 0;
    if (first < 0xf0) {
        const bool is_overlong = first == 0xe0 && byte(1) < 0xa0;
        const bool is_surrogate = first == 0xed && byte(1) > 0x9f;
        return is_overlong || is_surrogate ? 0 : 3;
    }
    const bool is_overlong = first == 0xf0 && byte(1) < 0x90;
    const bool is_beyond = first == 0xf4 && byte(1) > 0x8f;
    return is_overlong || is_beyond || !continues(3) ? 0 : 4;
}

// Returns the code of a character that ends a line or changes a terminal, although JSON permits it
// (DEL, C1, U+2028, U+2029) or not (C0); nothing for others. `character` is one character of UTF-8.
std::optional<unsigned> control_code(std::string_view character) noexcept {
    const auto byte = [&](std::size_t i) -> unsigned {
        return static_cast<unsigned char>(character[i]);
    };
    if (character.size() == 1 && (byte(0) < 0x20 || byte(0) == 0x7f)) return byte(0);
    if (character.size() == 2 && byte(0) == 0xc2 && byte(1) < 0xa0) return byte(1);
    if (character == "\u2028") return 0x2028;
    if (character == "\u2029") return 0x2029;
    return std::nullopt;
}

}  // namespace

void append_json_string(std::string_view text, std::string& out) {
    constexpr std::string_view digits = "0123456789abcdef";
    out += '"';
    while (!text.empty()) {
        const std::size_t bytes = character_bytes(text);
        const std::string_view character = text.substr(0, bytes);
        if (bytes == 0) {
            out += "\\ufffd";
        } else if (const std::optional<unsigned> code = control_code(character)) {
            out += "\\u";
            for (int shift = 12; shift >= 0; shift -= 4) out += digits[*code >> shift & 15];
        } else {
            if (character == "\"" || character == "\\") out += '\\';
            out.append(character);
        }
        text.remove_prefix(bytes == 0 ? 1 : bytes);
    }
    out += '"';
}

std::string json_string(std::string_view text) {
    std::string out;
    append_json_string(text, out);
    return out;
}

}  // namespace coppice::internal
