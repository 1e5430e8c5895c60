// Percent-decoding byte by byte, and the values of a query in turn.
#pragma once

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/http/internal/scan.hpp>

#include <cstddef>
#include <optional>
#include <string_view>

namespace coppice::http::internal {

// What '+' means: itself in a path, a space in a query that an HTML form wrote.
enum class plus_sign : unsigned char { literal, space };

// Calls visit(byte) with each byte of the decoded text until it returns false. Returns false if
// visit did, or if a '%' is not followed by two hexadecimal digits. Cost: no allocation.
template <class Visit>
bool percent_decode_each(std::string_view text, plus_sign plus,
                         Visit visit) noexcept(noexcept(visit('a'))) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        char byte = text[i];
        if (byte == '+' && plus == plus_sign::space) {
            byte = ' ';
        } else if (byte == '%') {
            if (text.size() - i < 3 || !is(text[i + 1], hex_byte) || !is(text[i + 2], hex_byte)) {
                return false;
            }
            byte = static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
            i += 2;
        }
        if (!visit(byte)) return false;
    }
    return true;
}

// Returns true if `text`, percent-decoded, is `plain`. Returns false also for a malformed escape.
// Cost: no allocation.
bool decodes_to(std::string_view text, std::string_view plain,
                plus_sign = plus_sign::literal) noexcept;

// Returns each value that query_value() would find, in turn: sets `query` to what comes after the
// returned one.
std::optional<std::string_view> next_query_value(std::string_view& query,
                                                 std::string_view name) noexcept;

}  // namespace coppice::http::internal
