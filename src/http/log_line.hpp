// log_line: what a line of the access log is made of, and its forms; for logging.cpp.
#pragma once

#include <coppice/http/access_log.hpp>
#include <coppice/http/parse.hpp>
#include <coppice/http/trace_context.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace coppice::http {

// Lifetime: it holds views.
struct log_line {
    std::string_view client;             // "127.0.0.1:80", "[::1]:80", "unix:", or "unspecified"
    std::string_view date;               // IMF-fixdate
    const request_head* head = nullptr;  // nullptr: bytes that are no request
    std::string_view protocol;           // "HTTP/1.1"
    int status = 0;
    std::uint64_t body_bytes = 0;
    std::uint64_t microseconds = 0;  // from the request's bytes to its answer
    // Only for the formats that have_marks() names.
    std::string_view id = {};
    trace_context trace = {};
    std::optional<trace_context> parent = {};
};

// Returns true if a line has an id and a trace.
inline bool have_marks(access_log_format format) noexcept {
    return format == access_log_format::traced || format == access_log_format::json;
}

// Appends the line, with its end. Errors: std::bad_alloc. Cost: no allocation if `out` has the
// capacity.
void append_log_line(const log_line& line, access_log_format format, std::string& out);

}  // namespace coppice::http
