// JSON bodies by a library of one's choice: json_codec is the hook, and none is needed here.
#pragma once
// A program says once how its library reads and writes, for one type or for all that it takes:
//
//   template <class T>
//       requires nlohmann::detail::is_compatible_type<nlohmann::json, T>::value
//   struct coppice::http::json_codec<T> {
//       using malformed = nlohmann::json::exception;
//       static constexpr std::size_t depth_max = 100;
//       static T parse(std::string_view text) { return nlohmann::json::parse(text).get<T>(); }
//       static std::string print(const T& value) { return nlohmann::json(value).dump(); }
//   };
//
// `malformed` is what parse() throws for text that is no JSON, or none of that form: the client's
// fault, answered with 400. A parse() that returns std::optional<T> says it by nothing, and needs
// no `malformed`. For a better message it throws a status_error. Whatever else it throws is the
// program's fault, and answered with 500.
//
// What a client sends may be nested a million times, and a library that copies or writes by
// recursion, as nlohmann-json does, then overflows its stack. With `depth_max` a text that nests
// more arrays and objects than so many is refused with 400 before parse() sees it; and so is one
// with comments or strings in single quotes, which a parser may take but JSON does not have.

#include <coppice/http/message.hpp>
#include <coppice/http/parameters.hpp>
#include <coppice/task/task.hpp>

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace coppice::http {

// To be specialised, see above.
template <class T>
struct json_codec;

// Whether a T can be read from JSON, as its codec says.
template <class T>
concept json_readable = requires(std::string_view text) {
    { json_codec<T>::parse(text) } -> std::convertible_to<std::optional<T>>;
};

// Whether a T can be written as JSON, as its codec says.
template <class T>
concept json_writable = requires(const T& value) {
    { json_codec<T>::print(value) } -> std::convertible_to<std::string>;
};

namespace internal {

struct nothing_thrown {};
template <class Codec>
struct malformed_of {
    using type = nothing_thrown;
};
template <class Codec>
    requires requires { typename Codec::malformed; }
struct malformed_of<Codec> {
    using type = typename Codec::malformed;
};

// Errors: status_error: 415 unless the body is JSON in UTF-8 by its Content-Type; 400 for two.
void require_json(const request& r);
// Throws the status_error, 400, of a text that is no JSON of the form that is asked for.
[[noreturn]] void refuse_json();

// Throws the status_error, 400, of a text that nests more than `depth_max` arrays and objects, or
// that is no JSON because of '/' or '\'' outside strings. Cost: one pass.
void refuse_deep_json(std::string_view text, std::size_t depth_max);

// A body that its handler reads, whole. Errors: status_error, 413, beyond `bytes_max`;
// http::refused, as body_reader::read() and keep(). A body that has been read from stops the
// process.
task<std::string> read_whole(request& r, std::size_t bytes_max);

template <json_readable T>
T parse_json(std::string_view text) {
    if constexpr (requires { json_codec<T>::depth_max; }) {
        internal::refuse_deep_json(text, json_codec<T>::depth_max);
    }
    std::optional<T> value;
    try {
        value = json_codec<T>::parse(text);
    } catch (const status_error&) {
        throw;  // though `malformed` may be a base of it
    } catch (const typename malformed_of<json_codec<T>>::type&) {
        value.reset();
    }
    if (!value) internal::refuse_json();
    return *std::move(value);
}

}  // namespace internal

// An answer whose body is `value` as JSON. Errors: what json_codec<T>::print() throws.
template <json_writable T>
response json_response(const T& value, int status = 200) {
    return response::json(std::string(json_codec<T>::print(value)), status);
}

// The T in the body of a request, for handlers that get the body whole. Errors: status_error: 415
// unless the Content-Type is application/json or another that ends in +json, in UTF-8; 400 for what
// is malformed, and for two Content-Type fields. Whatever else json_codec<T>::parse() throws.
template <json_readable T>
T json_body(const request& r) {
    internal::require_json(r);
    return internal::parse_json<T>(r.body());
}

// The same for handlers that read_body() declares; once, and before anything else reads the body:
// otherwise std::logic_error. The text counts among server_options::buffered_bytes_max until
// the handler has ended. Errors: also status_error, 413, for a body of more than `bytes_max` bytes;
// http::refused, as body_reader::read() and keep(). Stops the caller if the client goes away.
// Stopping: the part of the body that was read is lost.
template <json_readable T>
task<T> read_json(request& r, std::size_t bytes_max = std::size_t{1} << 20) {
    internal::require_json(r);
    const std::string text = co_await internal::read_whole(r, bytes_max);
    co_return internal::parse_json<T>(text);
}

}  // namespace coppice::http
