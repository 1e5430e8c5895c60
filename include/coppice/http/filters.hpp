// cors, compression and json_errors: filters that many services want; for router::use().
#pragma once

#include <coppice/http/handler.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace coppice::http {

// Which other sites' scripts may use this service (the Fetch standard, CORS protocol).
struct cors_options {
    std::vector<std::string> origins = {"*"};  // exact, "https://example.org"; "*" is any
    std::vector<std::string> methods = {"GET", "HEAD", "POST"};
    std::vector<std::string> fields = {};   // request fields that scripts may set
    std::vector<std::string> exposed = {};  // answer fields that scripts may read
    bool credentials = false;               // not together with "*"
    // Of a remembered permission. 0 or less: none is remembered; at most 2^31 - 1, as RFC 9111 has
    // it.
    std::chrono::seconds age = std::chrono::seconds(600);
};

// Answers preflight requests, and adds Access-Control-* to the answers of permitted origins; others
// get theirs without, so that browsers keep them from scripts.
// Errors: std::invalid_argument for "*" with credentials, and for texts that no field can have.
std::shared_ptr<const filter> cors(cors_options options);

// What is compressed, and how well.
struct compression_options {
    std::size_t bytes_min = 512;       // smaller bodies stay as they are
    std::size_t bytes_max = 4u << 20;  // so do larger ones that are not streamed
    int level = 4;                     // 1 (fast) to 9 (small)
    // Answers for which it says false stay as they are; empty: none. See BREACH below.
    std::function<bool(const request&, const response&)> permits = {};
};

// Compresses text, JSON and the like with gzip or deflate (zlib), as Accept-Encoding allows; whole
// bodies in memory, streamed ones piece by piece. A strong ETag becomes a weak one, since the bytes
// differ (RFC 9110 section 8.8.3). Answers that have a Content-Encoding, a Content-Range or
// Cache-Control: no-transform, and files sent by the kernel, stay as they are.
// BREACH: an answer that holds a secret (a session, a CSRF token, a private message) beside text of
// the request's sender tells the secret by its compressed length, through any encryption: an
// attacker who makes a browser ask again and again, and sees the lengths, guesses it byte by byte.
// Such answers are not to be compressed. A handler excludes its own with Cache-Control:
// no-transform; `permits` excludes others, those to requests with a Cookie for example. Answers
// without secrets, and those in which nothing is of the request, are safe. Errors:
// std::invalid_argument for a level that zlib does not know.
std::shared_ptr<const filter> compression(compression_options options = {});

// Gives refusals and faults a body of JSON, {"error": "there is no such note"}: answers of 400 and
// more that are text/plain and not streamed, those that a status_error and the server itself make
// among them. What is no UTF-8 in a text becomes U+FFFD. Answers in which a handler says it in
// another type stay as they are.
std::shared_ptr<const filter> json_errors();

// The coding that an Accept-Encoding allows and prefers: "gzip", "deflate", or "" for none (RFC
// 9110 section 12.5.3).
std::string_view choose_coding(std::string_view accept_encoding) noexcept;

}  // namespace coppice::http
