// cors, compression, and json_errors: filters that many services want; for router::use().
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
    // How long a browser may remember a permission. 0 or less: not at all. At most 2^31 - 1 seconds
    // (RFC 9111).
    std::chrono::seconds age = std::chrono::seconds(600);
};

// Makes a filter that answers preflight requests, and adds Access-Control-* to the answers for
// permitted origins. Other origins get their answers without these fields, so browsers hide the
// answers from scripts. Errors: std::invalid_argument for "*" with credentials, and for texts that
// no field may have.
std::shared_ptr<const filter> cors(cors_options options);

// What is compressed, and how well.
struct compression_options {
    std::size_t bytes_min = 512;       // smaller bodies stay as they are
    std::size_t bytes_max = 4u << 20;  // larger bodies stay as they are, unless they are streamed
    int level = 4;                     // 1 (fast) to 9 (small)
    // Answers for which it returns false stay as they are. Empty: permits all. See BREACH below.
    std::function<bool(const request&, const response&)> permits = {};
};

// Makes a filter that compresses text, JSON, and the like with gzip or deflate (zlib), as
// Accept-Encoding allows. It compresses whole bodies in memory and streamed ones piece by piece. A
// strong ETag becomes a weak one, since the bytes differ (RFC 9110 section 8.8.3). Answers stay as
// they are if they have a Content-Encoding, a Content-Range, or Cache-Control: no-transform, or are
// files that the kernel sends. A streamed body takes 264 KiB until it has ended, which count toward
// server_options::buffered_bytes_max; it stays as it is if they do not fit.
// BREACH: do not compress an answer that holds both a secret (a session, a CSRF token, a private
// message) and text from the sender of the request. Its compressed length reveals the secret
// through any encryption. An attacker who makes a browser repeat the request and sees the lengths
// guesses the secret byte by byte. A handler excludes its own answers with Cache-Control:
// no-transform. `permits` excludes others, for example those to requests with a Cookie. Answers
// without secrets, and answers without text from the request, are safe. Errors:
// std::invalid_argument for a level that zlib does not know.
std::shared_ptr<const filter> compression(compression_options options = {});

// Makes a filter that turns refusals and faults into JSON bodies, such as {"error": "there is no
// such note"}. It converts answers of 400 and above that are text/plain and not streamed, including
// those that a status_error and the server itself make. Bytes that are not UTF-8 become U+FFFD.
// Answers of another media type stay as they are.
std::shared_ptr<const filter> json_errors();

// Returns the coding that an Accept-Encoding allows and prefers: "gzip", "deflate", or "" for none
// (RFC 9110 section 12.5.3).
std::string_view choose_coding(std::string_view accept_encoding) noexcept;

}  // namespace coppice::http
