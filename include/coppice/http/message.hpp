// Requests, responses, and responses as bytes.
#pragma once

#include <coppice/http/date.hpp>
#include <coppice/http/request.hpp>
#include <coppice/http/response.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace coppice::http {

// What the connection, not the handler, knows about an answer.
struct serialize_options {
    bool keep_alive = true;
    bool head_only = false;  // the request was HEAD: the same fields, no body
    // the request's; a 1.0 client must be told that it may keep the connection
    int minor_version = 1;
    std::string_view date = {};                // IMF-fixdate, see date_cache; "": no Date field
    std::string_view request_id = {};          // the value of X-Request-Id; "": no such field
    std::optional<std::uint64_t> length = {};  // of a body that is not in the response
    bool chunked = false;                      // write Transfer-Encoding instead of Content-Length
    bool unframed = false;  // write neither: the end of the connection ends the body
};

// Appends the answer's bytes to `out`. Cost: no allocation once `out` has the capacity; the body is
// copied once, into `out`.
void serialize(const response&, const serialize_options&, std::string& out);
inline void serialize(const response& answer, bool keep_alive, bool head_only, std::string& out) {
    serialize(answer, {.keep_alive = keep_alive, .head_only = head_only}, out);
}
// Appends the answer's head only, for callers that send the body from where it lies.
void serialize_head(const response&, const serialize_options&, std::string& out);

}  // namespace coppice::http
