// Percent-decoding, query parameters, and strict integers; used by requests, routes, and handlers.
#pragma once
// A target stays as it was sent until a handler asks for a part of it. Splitting after decoding
// would let an escaped delimiter act as one (RFC 3986 section 2.4).

#include <coppice/http/internal/query.hpp>

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace coppice::http {

// Replaces the content of `out` with the decoded text. Returns false, with `out` unspecified, if a
// '%' is not followed by two hexadecimal digits. Cost: no allocation once `out` has the capacity.
bool percent_decode(std::string_view text, std::string& out,
                    internal::plus_sign = internal::plus_sign::literal);

// Returns the value of the first `name=value` between '&'s, as sent; "" for a name without '='. The
// name is compared after decoding, with '+' as a space.
std::optional<std::string_view> query_value(std::string_view query, std::string_view name) noexcept;

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
