// How the body of a request becomes a value through its json_codec.
#pragma once

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/http/parameters.hpp>
#include <coppice/http/request.hpp>
#include <coppice/task/task.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace coppice::http {

template <class T>
struct json_codec;

}  // namespace coppice::http

namespace coppice::http::internal {

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

// Checks the Content-Type. Errors: status_error: 415 unless it says JSON in UTF-8; 400 for two such
// fields.
void require_json(const request& r);
// Throws a status_error, 400, for a text that is not JSON of the expected form.
[[noreturn]] void refuse_json();

// Throws a status_error, 400, for a text that nests more than `depth_max` arrays and objects, or
// that has '/' or '\'' outside strings. Cost: one pass over the text.
void refuse_deep_json(std::string_view text, std::size_t depth_max);

// Reads a whole body, for a handler declared with read_body(). Errors: status_error, 413, beyond
// `bytes_max`; http::refused, as body_reader::read() and keep(); std::logic_error for a body that
// was read from before.
task<std::string> read_whole(request& r, std::size_t bytes_max);

template <class T>
T parse_json(std::string_view text) {
    if constexpr (requires { json_codec<T>::depth_max; }) {
        refuse_deep_json(text, json_codec<T>::depth_max);
    }
    std::optional<T> value;
    try {
        value = json_codec<T>::parse(text);
    } catch (const status_error&) {
        throw;  // even if `malformed` is one of its bases
    } catch (const typename malformed_of<json_codec<T>>::type&) {
        value.reset();
    }
    if (!value) refuse_json();
    return *std::move(value);
}

}  // namespace coppice::http::internal
