// How the text of a parameter becomes a value, and how what is no value is refused.
#pragma once

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/http/internal/query.hpp>
#include <coppice/http/uri.hpp>

#include <charconv>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace coppice::http::internal {

// A user's type with this function in its namespace. The function sets `value` to what the decoded
// `text` means, or returns false.
template <class T>
concept parsed_by_its_own = requires(std::string_view text, T& value) {
    { parse_parameter(text, value) } -> std::same_as<bool>;
};

// What a value must be, for the message of a refusal.
enum class value_kind : unsigned char { text, boolean, integer, number, own };
struct value_form {
    value_kind kind;
    std::int64_t least = 0;  // of an integer
    std::uint64_t most = 0;
};
template <class T>
constexpr value_form form_of() noexcept {
    if constexpr (std::same_as<T, bool>) {
        return {value_kind::boolean};
    } else if constexpr (std::integral<T>) {
        return {value_kind::integer, static_cast<std::int64_t>(std::numeric_limits<T>::min()),
                static_cast<std::uint64_t>(std::numeric_limits<T>::max())};
    } else if constexpr (std::floating_point<T>) {
        return {value_kind::number};
    } else if constexpr (parsed_by_its_own<T>) {
        return {value_kind::own};
    } else {
        return {value_kind::text};
    }
}

// Reads "true" or "1", "false" or "0"; returns nothing for other texts.
std::optional<bool> parse_bool(std::string_view text) noexcept;

// Returns the finite number that all of `text` spells in decimal, such as "-1.5e3". Returns nothing
// for an empty text, a leading '+', a space, or a number that does not fit.
template <std::floating_point Number>
std::optional<Number> parse_number(std::string_view text) noexcept {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    // "inf" and "nan" are outside; the header of std::isfinite would declare log for all programs.
    constexpr Number most = std::numeric_limits<Number>::max();
    if (!(value >= -most && value <= most)) return std::nullopt;
    return value;
}

// Returns the value that a parameter spells, or nothing. Integers and bools are read as sent,
// without percent-decoding.
template <class T>
std::optional<T> parse_value(std::string_view raw, plus_sign plus) {
    if constexpr (std::same_as<T, std::string_view>) {
        return raw;
    } else if constexpr (std::same_as<T, bool>) {
        return parse_bool(raw);
    } else if constexpr (std::integral<T>) {
        return http::parse_integer<T>(raw);
    } else if constexpr (std::same_as<T, std::string>) {
        std::optional<T> text(std::in_place);
        if (!http::percent_decode(raw, *text, plus)) text.reset();
        return text;
    } else {
        static_assert(std::floating_point<T> || parsed_by_its_own<T>,
                      "coppice::http: a parameter is a std::string, a std::string_view, an "
                      "integer, a bool, a floating-point number, or a T with "
                      "bool parse_parameter(std::string_view, T&) in its namespace");
        std::string text;
        if (!http::percent_decode(raw, text, plus)) return std::nullopt;
        if constexpr (std::floating_point<T>) {
            return parse_number<T>(text);
        } else {
            std::optional<T> value(std::in_place);
            if (!parse_parameter(std::string_view(text), *value)) value.reset();
            return value;
        }
    }
}

// Throws the status_error for a parameter or form field that is absent or does not have the
// required form. The message quotes the beginning of what the client sent, without bytes that a
// terminal or a browser acts on.
[[noreturn]] void refuse_parameter(std::string_view kind, std::string_view name,
                                   std::optional<std::string_view> raw, const value_form&);
// Throws std::out_of_range: the route's pattern has no such parameter.
[[noreturn]] void refuse_unknown_parameter(std::string_view name);

// Returns the value of a parameter; nothing if it is absent or is not a T.
template <class T>
std::optional<T> value_of(std::optional<std::string_view> raw, plus_sign plus) {
    if (!raw) return std::nullopt;
    return parse_value<T>(*raw, plus);
}

// Returns the value of a parameter. Throws a status_error, 400, if it is absent or is not a T.
template <class T>
T require_value(std::string_view kind, std::string_view name, std::optional<std::string_view> raw,
                plus_sign plus) {
    std::optional<T> value = value_of<T>(raw, plus);
    if (!value) refuse_parameter(kind, name, raw, form_of<T>());
    return *std::move(value);
}

// Returns the value of a parameter, or nothing if it is absent. Throws a status_error, 400, if it
// is not a T.
template <class T>
std::optional<T> optional_value(std::string_view kind, std::string_view name,
                                std::optional<std::string_view> raw, plus_sign plus) {
    if (!raw) return std::nullopt;
    return require_value<T>(kind, name, raw, plus);
}

// Returns the value of a path parameter. Throws std::out_of_range if the route has none of that
// name, and a status_error, 400, if it is not a T.
template <class T>
T require_path_value(std::string_view name, std::optional<std::string_view> raw) {
    if (!raw) refuse_unknown_parameter(name);
    return require_value<T>("path", name, raw, plus_sign::literal);
}

// Returns all values of that name. Throws a status_error, 400, if one is not a T.
template <class T>
std::vector<T> all_query_values(std::string_view query, std::string_view name) {
    std::vector<T> all;
    while (const auto raw = next_query_value(query, name)) {
        all.push_back(require_value<T>("query", name, raw, plus_sign::space));
    }
    return all;
}

}  // namespace coppice::http::internal
