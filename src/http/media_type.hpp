// Parses values with parameters, `type/subtype; name=value`; for readers of bodies by media type.
#pragma once

#include <coppice/http/internal/scan.hpp>
#include <coppice/http/message.hpp>
#include <coppice/http/parameters.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace coppice::http::internal {

// Returns the request's Content-Type, or nothing if it has none. Errors: status_error, 400, for two
// such fields, since another reader might use the other one.
inline std::optional<std::string_view> only_content_type(const request& r) {
    std::optional<std::string_view> found;
    for (const field& f : r.head().fields()) {
        if (!equals_ignoring_case(f.name, "Content-Type")) continue;
        if (found) throw bad_request("the request has two Content-Type fields");
        found = f.value;
    }
    return found;
}

// Removes and returns a token at the front of `text`; "" if there is none.
inline std::string_view take_token(std::string_view& text) noexcept {
    const char* const end = scalar_scan::token(text.data(), text.data() + text.size());
    const std::string_view token = text.substr(0, static_cast<std::size_t>(end - text.data()));
    text.remove_prefix(token.size());
    return token;
}

// Takes the rest of a quoted string, after its first quote, and appends its content to `out`. A
// backslash escapes a quote and itself; any other backslash is a byte of the content, as browsers
// send it in file names. Returns false if the string has no end, or a byte that no field may have.
inline bool take_quoted(std::string_view& text, std::string& out) {
    for (std::size_t i = 0; i != text.size(); ++i) {
        if (text[i] == '"') {
            text.remove_prefix(i + 1);
            return true;
        }
        const bool escapes =
            text[i] == '\\' && i + 1 != text.size() && (text[i + 1] == '"' || text[i + 1] == '\\');
        if (escapes) ++i;
        if (!is(text[i], value_byte)) return false;
        out.push_back(text[i]);
    }
    return false;
}

// Returns true for `name*`, `name*0`, and so on: another spelling of a parameter (RFC 2231). Some
// readers take it for `name`, others ignore it.
inline bool is_extended(std::string_view parameter, std::string_view name) noexcept {
    return parameter.size() > name.size() && parameter[name.size()] == '*' &&
           equals_ignoring_case(parameter.substr(0, name.size()), name);
}

// Calls visit(name, value) for each `; name=value` of `text`, until it returns false. Returns false
// if visit did, or if the text is malformed. The value is unquoted, and visit may move from it.
template <class Visit>
bool for_each_parameter(std::string_view text, Visit visit) {
    for (;;) {
        text = trim(text);
        if (text.empty()) return true;
        if (text.front() != ';') return false;
        text = trim(text.substr(1));
        if (text.empty() || text.front() == ';') continue;  // RFC 9110 section 5.6.6 allows it
        const std::string_view name = take_token(text);
        if (name.empty() || !text.starts_with('=')) return false;
        text.remove_prefix(1);
        std::string value;
        if (text.starts_with('"')) {
            text.remove_prefix(1);
            if (!take_quoted(text, value)) return false;
        } else {
            value = take_token(text);
            if (value.empty()) return false;
        }
        if (!visit(name, value)) return false;
    }
}

// Returns the name of a media type, and sets `rest` to its parameters. Returns nothing if it is
// malformed.
inline std::optional<std::string_view> take_media_type(std::string_view text,
                                                       std::string_view& rest) noexcept {
    rest = text = trim(text);
    if (take_token(rest).empty() || !rest.starts_with('/')) return std::nullopt;
    rest.remove_prefix(1);
    if (take_token(rest).empty()) return std::nullopt;
    return text.substr(0, text.size() - rest.size());
}

// Returns the value of a media type's parameter, or nothing if it is absent, present twice, or
// extended, or if the text is malformed.
inline std::optional<std::string> media_parameter(std::string_view parameters,
                                                  std::string_view name) {
    std::optional<std::string> found;
    const bool good = for_each_parameter(parameters, [&](std::string_view n, std::string& value) {
        if (is_extended(n, name)) return false;
        if (!equals_ignoring_case(n, name)) return true;
        if (found) return false;
        found = std::move(value);
        return true;
    });
    if (!good) found.reset();
    return found;
}

}  // namespace coppice::http::internal
