// JSON bodies through a library of your choice: json_codec is the hook; none is required.
#pragma once
// A program specializes json_codec once, for one type or for every type that its library takes:
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
// `malformed` is the exception that parse() throws for text that is not JSON, or not JSON of the
// expected form. That is the client's fault, and is answered with 400. A parse() that returns
// std::optional<T> may return nothing instead, and then needs no `malformed`. For a better message
// it throws a status_error. Any other exception is the program's fault, and is answered with 500.
//
// A client may send JSON that is nested a million levels deep. A library that copies or writes
// recursively, as nlohmann-json does, then overflows its stack: its codec needs `depth_max`. Text
// that nests more arrays and objects is refused with 400 before parse() sees it. So is text with
// comments or strings in single quotes, which JSON does not have, though a parser may take them.

#include <coppice/http/internal/json_body.hpp>
#include <coppice/http/request.hpp>
#include <coppice/http/response.hpp>
#include <coppice/task/task.hpp>

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace coppice::http {

// Specialized by the program; see above.
template <class T>
struct json_codec;

// True if a T can be read from JSON through its codec.
template <class T>
concept json_readable = requires(std::string_view text) {
    { json_codec<T>::parse(text) } -> std::convertible_to<std::optional<T>>;
};

// True if a T can be written as JSON through its codec.
template <class T>
concept json_writable = requires(const T& value) {
    { json_codec<T>::print(value) } -> std::convertible_to<std::string>;
};

// Makes an answer whose body is `value` as JSON. Errors: what json_codec<T>::print() throws.
template <json_writable T>
response json_response(const T& value, int status = 200) {
    return response::json(std::string(json_codec<T>::print(value)), status);
}

// Returns the T in the body of a request, for handlers that get the body whole. Errors:
// status_error: 415 unless the Content-Type is application/json or another type that ends in +json,
// in UTF-8; 400 for malformed JSON, and for two Content-Type fields. Also throws whatever else
// json_codec<T>::parse() throws.
template <json_readable T>
T json_body(const request& r) {
    internal::require_json(r);
    return internal::parse_json<T>(r.body());
}

// Reads the body and returns the T in it, for handlers declared with read_body(). It must be the
// only reader of the body. The text counts toward server_options::buffered_bytes_max until the
// handler has ended. Errors: as json_body(); status_error, 413, for a body of more than `bytes_max`
// bytes; std::logic_error if the body was read from before; http::refused, as body_reader::read()
// and keep(). Stops the caller if the client goes away. Stopping: the part of the body that was
// read is lost.
template <json_readable T>
task<T> read_json(request& r, std::size_t bytes_max = std::size_t{1} << 20) {
    internal::require_json(r);
    const std::string text = co_await internal::read_whole(r, bytes_max);
    co_return internal::parse_json<T>(text);
}

}  // namespace coppice::http
