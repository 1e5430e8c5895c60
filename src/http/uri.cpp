// Percent-decoding and query parameters.
#include <coppice/http/uri.hpp>

#include <algorithm>

namespace coppice::http {

using namespace internal;

bool percent_decode(std::string_view text, std::string& out, plus_sign plus) {
    out.clear();
    out.reserve(text.size());
    return percent_decode_each(text, plus, [&](char byte) {
        out.push_back(byte);
        return true;
    });
}

namespace internal {

bool decodes_to(std::string_view text, std::string_view plain, plus_sign plus) noexcept {
    std::size_t matched = 0;
    const bool all = percent_decode_each(
        text, plus, [&](char byte) { return matched < plain.size() && plain[matched++] == byte; });
    return all && matched == plain.size();
}

}  // namespace internal

std::optional<std::string_view> query_value(std::string_view query,
                                            std::string_view name) noexcept {
    return next_query_value(query, name);
}

namespace internal {

std::optional<std::string_view> next_query_value(std::string_view& query,
                                                 std::string_view name) noexcept {
    while (!query.empty()) {
        const std::string_view item = query.substr(0, query.find('&'));
        const std::size_t equals = item.find('=');
        query.remove_prefix(std::min(item.size() + 1, query.size()));
        if (decodes_to(item.substr(0, equals), name, plus_sign::space)) {
            return equals == item.npos ? std::string_view() : item.substr(equals + 1);
        }
    }
    return std::nullopt;
}

}  // namespace internal

}  // namespace coppice::http
