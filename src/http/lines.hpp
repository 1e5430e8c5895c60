// Finds fields among lines of text, for callers that have no request_head.
#pragma once

#include <coppice/http/internal/scan.hpp>
#include <coppice/http/parse.hpp>

#include <optional>
#include <string_view>

namespace coppice::http {

using namespace internal;

// Returns the value of the first line with that name. Each line ends in CRLF.
inline std::optional<std::string_view> find_line(std::string_view lines,
                                                 std::string_view name) noexcept {
    while (!lines.empty()) {
        const std::size_t end = lines.find("\r\n");
        const std::string_view line = lines.substr(0, end);
        const std::size_t colon = line.find(':');
        if (equals_ignoring_case(line.substr(0, colon), name)) return trim(line.substr(colon + 1));
        lines.remove_prefix(end + 2);
    }
    return std::nullopt;
}

// Visits each of these lines as a field, in order.
template <class Visit>
void for_each_line(std::string_view lines, Visit visit) {
    while (!lines.empty()) {
        const std::size_t end = lines.find("\r\n");
        const std::string_view line = lines.substr(0, end);
        const std::size_t colon = line.find(':');
        visit(field{line.substr(0, colon), trim(line.substr(colon + 1))});
        lines.remove_prefix(end + 2);
    }
}

}  // namespace coppice::http
