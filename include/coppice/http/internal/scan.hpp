// The byte classes of HTTP's grammar and the scans over them; used by parsers and serializer.
#pragma once
// A scan returns the first byte that is not of its class, or the end. It never reads beyond the
// end. Parsers are templates over a set of scans, so a set with vector instructions can replace
// this one without a change to a parser.

#include <coppice/base/internal/namespaces.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace coppice::http::internal {

// Each byte's classes, as bits.
enum byte_class : unsigned char {
    token_byte = 1,  // RFC 9110 section 5.6.2: tchar
    value_byte = 2,  // section 5.5: VCHAR, obs-text, SP, HTAB
    path_byte = 4,   // RFC 3986 section 3.3: pchar without '%', and '/'
    query_byte = 8,  // section 3.4 without '%', and what browsers leave unescaped: [ ] { } | \ ^ `
    host_byte = 16,  // section 3.2.2: unreserved and sub-delims
    quoted_byte = 32,  // RFC 9110 section 5.6.4: qdtext
    digit_byte = 64,
    hex_byte = 128,
};

inline constexpr std::array<unsigned char, 256> byte_classes = [] {
    std::array<unsigned char, 256> classes{};
    const auto mark = [&classes](std::string_view bytes, int bits) {
        for (const char c : bytes)
            classes[static_cast<unsigned char>(c)] |= static_cast<unsigned char>(bits);
    };
    constexpr std::string_view digits = "0123456789";
    constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    mark(digits, token_byte | path_byte | query_byte | host_byte | digit_byte | hex_byte);
    mark(letters, token_byte | path_byte | query_byte | host_byte);
    mark("abcdefABCDEF", hex_byte);
    mark("-._~", path_byte | query_byte | host_byte);
    mark("!$&'()*+,;=", path_byte | query_byte | host_byte);
    mark(":@/", path_byte | query_byte);
    mark("?[]{}|\\^`", query_byte);
    mark("!#$%&'*+-.^_`|~", token_byte);
    for (std::size_t c = 0; c < 256; ++c) {
        const bool text = (c >= 0x20 && c != 0x7f) || c == '\t';
        if (text) classes[c] |= value_byte;
        if (text && c != '"' && c != '\\') classes[c] |= quoted_byte;
    }
    return classes;
}();

constexpr bool is(char byte, int classes) noexcept {
    return (byte_classes[static_cast<unsigned char>(byte)] & classes) != 0;
}

// Returns the number that a hexadecimal digit spells.
constexpr int hex_value(char digit) noexcept {
    return is(digit, digit_byte) ? digit - '0' : (digit | 0x20) - 'a' + 10;
}

// The scans in plain C++: a table look-up per byte, and eight bytes at once for field values.
struct scalar_scan {
    static const char* token(const char* p, const char* end) noexcept {
        return by_table<token_byte>(p, end);
    }
    static const char* path(const char* p, const char* end) noexcept {
        return by_table<path_byte>(p, end);
    }
    static const char* query(const char* p, const char* end) noexcept {
        return by_table<query_byte>(p, end);
    }
    static const char* host(const char* p, const char* end) noexcept {
        return by_table<host_byte>(p, end);
    }
    static const char* digits(const char* p, const char* end) noexcept {
        while (p != end && is(*p, digit_byte)) ++p;
        return p;
    }
    static const char* value(const char* p, const char* end) noexcept {
        if constexpr (std::endian::native == std::endian::little) {
            while (end - p >= 8) {
                const std::uint64_t hits = controls(p);
                if (hits == 0) {
                    p += 8;
                    continue;
                }
                p += std::countr_zero(hits) / 8;
                if (*p != '\t') return p;
                ++p;
            }
        }
        return by_table<value_byte>(p, end);
    }

private:
    template <byte_class Class>
    static const char* by_table(const char* p, const char* end) noexcept {
        while (end - p >= 4) {
            if (!is(p[0], Class)) return p;
            if (!is(p[1], Class)) return p + 1;
            if (!is(p[2], Class)) return p + 2;
            if (!is(p[3], Class)) return p + 3;
            p += 4;
        }
        while (p != end && is(*p, Class)) ++p;
        return p;
    }
    // The lowest set bit is the high bit of the first byte that is below 0x20 or equal to 0x7f.
    // Higher bits may be wrong, since a borrow runs upward from a hit and never downward.
    static std::uint64_t controls(const char* p) noexcept {
        constexpr std::uint64_t each = 0x0101010101010101;
        std::uint64_t word;
        std::memcpy(&word, p, 8);
        const std::uint64_t deleted = word ^ (each * 0x7f);
        return (((word - each * 0x20) & ~word) | ((deleted - each) & ~deleted)) & (each * 0x80);
    }
};

// Returns an ASCII letter in lower case, and any other byte unchanged.
constexpr char lower(char byte) noexcept {
    return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte | 0x20) : byte;
}

// Returns true if two texts differ at most in the case of ASCII letters.
constexpr bool equals_ignoring_case(std::string_view text, std::string_view other) noexcept {
    if (text.size() != other.size()) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (lower(text[i]) != lower(other[i])) return false;
    }
    return true;
}

// Returns a field value without the spaces and tabs around it.
constexpr std::string_view trim(std::string_view text) noexcept {
    const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
    const char* begin = text.data();
    const char* end = begin + text.size();
    while (begin != end && is_space(*begin)) ++begin;
    while (begin != end && is_space(end[-1])) --end;
    return {begin, static_cast<std::size_t>(end - begin)};
}

// Calls visit(member) for each member of a comma-separated list, trimmed, empty members included,
// until visit returns false. Returns true if all members were visited.
template <class Visit>
constexpr bool for_each_member(std::string_view list, Visit visit) noexcept {
    for (;;) {
        const std::size_t comma = list.find(',');
        if (!visit(trim(list.substr(0, comma)))) return false;
        if (comma == std::string_view::npos) return true;
        list.remove_prefix(comma + 1);
    }
}

}  // namespace coppice::http::internal
