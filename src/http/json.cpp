// Checks and reads JSON bodies.
#include "keeping.hpp"
#include "media_type.hpp"

#include <coppice/http/body.hpp>
#include <coppice/http/json.hpp>

namespace coppice::http::internal {

namespace {

bool ends_ignoring_case(std::string_view text, std::string_view suffix) noexcept {
    return text.size() > suffix.size() &&
           equals_ignoring_case(text.substr(text.size() - suffix.size()), suffix);
}

bool is_json(std::string_view content_type) {
    std::string_view parameters;
    const std::optional<std::string_view> type = take_media_type(content_type, parameters);
    if (!type) return false;
    if (!equals_ignoring_case(*type, "application/json") && !ends_ignoring_case(*type, "+json")) {
        return false;
    }
    return for_each_parameter(parameters, [](std::string_view name, const std::string& value) {
        if (is_extended(name, "charset")) return false;
        return !equals_ignoring_case(name, "charset") || equals_ignoring_case(value, "utf-8");
    });
}

}  // namespace

void require_json(const request& r) {
    const std::optional<std::string_view> type = only_content_type(r);
    if (!type || !is_json(*type)) {
        throw status_error(415, "the body must be application/json in UTF-8");
    }
}

void refuse_json() {
    throw bad_request("the body is not the JSON that is expected here");
}

// Counts as a parser goes: what is wrong before a bracket ends the parser before it gets there.
void refuse_deep_json(std::string_view text, std::size_t depth_max) {
    std::size_t depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\') ++i;  // an escaped quote ends no string
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > depth_max) throw bad_request("the JSON is nested too deeply");
        } else if (c == ']' || c == '}') {
            if (depth != 0) --depth;
        } else if (c == '/' || c == '\'') {
            refuse_json();  // a comment could hide a quote, and the quote brackets
        }
    }
}

task<std::string> read_whole(request& r, std::size_t bytes_max) {
    body_reader& body = unread_body(r);
    const std::optional<std::uint64_t> length = r.head().content_length();
    if (length.value_or(0) > bytes_max) throw status_error(413, "the body is too large");
    const std::size_t most = length ? static_cast<std::size_t>(*length) : bytes_max;
    std::string text;
    for (;;) {
        const std::string_view piece = co_await body.read();
        if (piece.empty()) co_return text;
        if (piece.size() > bytes_max - text.size())
            throw status_error(413, "the body is too large");
        make_counted_room(body, text, piece.size(), most);
        text.append(piece);
    }
}

}  // namespace coppice::http::internal
