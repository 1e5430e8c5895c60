// Percent-decoding, query parameters, and strict integers; used by requests, routes, and handlers.
#pragma once
// A target stays as it was sent until a handler asks for a part of it. Splitting after decoding
// would let an escaped delimiter act as one (RFC 3986 section 2.4).

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/http/internal/scan.hpp>

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

// Calls visit(byte) with each byte of the decoded text until it returns false. Returns false if
// visit did, or if a '%' is not followed by two hexadecimal digits. Cost: no allocation.
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

// Replaces the content of `out` with the decoded text. Returns false, with `out` unspecified, if a
// '%' is not followed by two hexadecimal digits. Cost: no allocation once `out` has the capacity.
bool percent_decode(std::string_view text, std::string& out,
                    internal::plus_sign = internal::plus_sign::literal);

namespace internal {

// Returns true if `text`, percent-decoded, is `plain`. Returns false also for a malformed escape.
// Cost: no allocation.
bool decodes_to(std::string_view text, std::string_view plain,
                plus_sign = plus_sign::literal) noexcept;

}  // namespace internal

// Returns the value of the first `name=value` between '&'s, as sent; "" for a name without '='. The
// name is compared after decoding, with '+' as a space.
std::optional<std::string_view> query_value(std::string_view query, std::string_view name) noexcept;

namespace internal {

// Returns each such value in turn: sets `query` to what comes after the returned one.
std::optional<std::string_view> next_query_value(std::string_view& query,
                                                 std::string_view name) noexcept;

}  // namespace internal

// Returns the number that all of `text` spells in decimal: digits, for signed types with an
// optional '-' before them. Returns nothing for an empty text, a '+', a space, any other byte, or a
// number that does not fit.
template <std::integral Integer>
std::optional<Integer> parse_integer(std::string_view text) noexcept {
    Integer value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace coppice::http
