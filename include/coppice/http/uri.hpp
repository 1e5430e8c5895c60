// Percent-decoding, query parameters and strict integers; used by requests, routes and handlers.
#pragma once
// A target stays as it was sent until a handler asks for a part of it: splitting after decoding
// would let an escaped delimiter act as one (RFC 3986 section 2.4).

#include <coppice/base/internal.hpp>
#include <coppice/http/scan.hpp>

#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace coppice::http {

namespace internal {

// What '+' means: itself in a path, a space in a query that an HTML form wrote.
enum class plus_sign : unsigned char { literal, space };

}  // namespace internal

// Gives each byte of the decoded text to visit(byte), which returns whether to go on. False: it did
// not, or a '%' is not followed by two hexadecimal digits. No allocation.
template <class Visit>
bool percent_decode_each(std::string_view text, internal::plus_sign plus,
                         Visit visit) noexcept(noexcept(visit('a'))) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        char byte = text[i];
        if (byte == '+' && plus == internal::plus_sign::space) {
            byte = ' ';
        } else if (byte == '%') {
            if (text.size() - i < 3 || !internal::is(text[i + 1], internal::hex_byte) ||
                !internal::is(text[i + 2], internal::hex_byte)) {
                return false;
            }
            byte = static_cast<char>(internal::hex_value(text[i + 1]) * 16 +
                                     internal::hex_value(text[i + 2]));
            i += 2;
        }
        if (!visit(byte)) return false;
    }
    return true;
}

// Replaces what `out` holds by the decoded text. False, with `out` unspecified: a '%' is not
// followed by two hexadecimal digits. Cost: no allocation once `out` has the capacity.
bool percent_decode(std::string_view text, std::string& out,
                    internal::plus_sign = internal::plus_sign::literal);

namespace internal {

// Whether `text`, percent-decoded, is `plain`. False also for a malformed escape. No allocation.
bool decodes_to(std::string_view text, std::string_view plain,
                plus_sign = plus_sign::literal) noexcept;

}  // namespace internal

// The value of the first `name=value` between '&'s, as sent; "" for a name without '='.
// The name is compared decoded, with '+' as a space.
std::optional<std::string_view> query_value(std::string_view query, std::string_view name) noexcept;

namespace internal {

// The same for each value in turn: `query` becomes what is behind the one that is returned.
std::optional<std::string_view> next_query_value(std::string_view& query,
                                                 std::string_view name) noexcept;

}  // namespace internal

// The number that all of `text` spells in decimal: digits, for signed types a '-' before them.
// Nothing for an empty text, a '+', a space, any other byte, or a number that does not fit.
template <std::integral Integer>
std::optional<Integer> parse_integer(std::string_view text) noexcept {
    Integer value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace coppice::http
