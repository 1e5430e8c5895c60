// Parameters as typed values, and status_error, which refuses malformed ones; used by requests.
#pragma once

#include <coppice/http/uri.hpp>

#include <charconv>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace coppice::http {

// Thrown by a handler or a filter: the server answers the request with this status and text, as
// text/plain. It is an answer and not a fault, so on_exception is not called for it.
class status_error : public std::runtime_error {
public:
    // `text` is sent to the client. Errors: a status outside 200 to 599 stops the process.
    status_error(int status, const std::string& text);
    int status() const noexcept { return status_; }

private:
    int status_;
};

// Makes a status_error with 400: `throw http::bad_request("the range is empty");`
status_error bad_request(const std::string& text);

namespace internal {

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
        return internal::parse_bool(raw);
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
            return internal::parse_number<T>(text);
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

}  // namespace internal

}  // namespace coppice::http
