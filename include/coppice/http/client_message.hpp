// The values of a client: options, requests, and answers, whole or read by pieces.
#pragma once

#include <coppice/base/clock.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/multiplexer.hpp>
#include <coppice/http/parse.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/io/secure_engine.hpp>
#include <coppice/task/task.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coppice::http {

namespace internal {

class client_call;
struct client_opened;
struct client_tasks;
// Ends the request on its loop, in this turn or a later one. That resets its connection unless all
// was read.
struct client_opened_end {
    void operator()(client_opened* opened) const noexcept;
};

}  // namespace internal

// Times and limits of a client; they apply to each request.
struct client_options {
    // Makes connections for https URLs: a tls::client_context (coppice/tls.hpp), which trusts what
    // the system trusts unless it says otherwise. The server must prove the name of the URL's host;
    // no option does without. Empty: an https URL fails with errc::protocol_not_supported.
    std::shared_ptr<const io::client_security> security = {};
    // What connections to https URLs leave for later ones to resume, which spares both sides most
    // of a handshake: so many are kept, at most 4 for each host and port, 10 KB each. Beyond this
    // the oldest is dropped. A session is offered once, one of TLS 1.2 until the server makes a new
    // one. 0: every connection shakes hands in full.
    std::size_t sessions_max = 64;
    // Speaks HTTP/2: http2::for_client() (coppice/http2.hpp). By ALPN, if `security` offers "h2"
    // and the server chooses it. Empty: HTTP/1.1 only.
    std::shared_ptr<const client_multiplexing> http2 = {};
    // Says that the servers of http URLs and of endpoints speak HTTP/2, which nothing else can tell
    // (prior knowledge). Needs `http2`.
    bool http2_in_the_clear = false;
    // limit for connecting, with the handshake of an https URL
    internal::duration connect = std::chrono::seconds(10);
    // from connected, or from all sent, to the head
    internal::duration answer = std::chrono::seconds(60);
    // without a byte of a body, in either direction
    internal::duration body = std::chrono::seconds(60);
    // For a whole request, from its beginning to the end of its answer's body. It includes
    // redirects, retries, the waits between them and for a turn, the source, and the sink. A read()
    // of open()'s answer that would wait beyond it fails with timed_out too.
    internal::duration total = internal::duration::max();
    // connections idle for longer are not used again
    internal::duration idle = std::chrono::seconds(20);
    std::size_t idle_connections_max = 64;  // kept; beyond this the oldest is closed
    http::limits limits = {};               // for an answer's head, and for a collected body
    // Connections in use and kept, to one host and port. 0: no limit. Further requests wait, first
    // come first served. Only a stop or a deadline ends that wait early.
    std::size_t connections_per_host_max = 0;
    std::size_t redirects_max = 0;  // per request; 0: a redirect is the answer
    // How often a request is retried; client.hpp says which requests are. The delay before a retry
    // is random, between half of a bound and the bound. The bound is `retry_delay` at first,
    // doubles each time, and stops at `retry_delay_max`. The client does not wait for a Retry-After
    // that asks for more than `retry_after_max`.
    std::size_t retries = 0;
    internal::duration retry_delay = std::chrono::milliseconds(100);
    internal::duration retry_delay_max = std::chrono::seconds(10);
    internal::duration retry_after_max = std::chrono::seconds(60);
};

// Takes a streamed body, piece by piece. Nothing is received while its task runs.
using body_sink = std::function<task<>(std::string_view piece)>;

// A request to send. Lifetime: the texts that it views outlive the request.
struct client_request {
    io::endpoint to = {};             // where the request is sent; not needed with `url`
    std::string_view target = "/";    // the path and the query, percent-encoded
    std::string_view method = "GET";  // as it is sent; case matters
    std::string_view host = {};       // the Host field; "": the endpoint's text
    // More field lines, each ended by CRLF; response::add() makes such lines. Fields that only the
    // client writes are refused: Host, Content-Length, Transfer-Encoding, Upgrade, and Connection
    // except for close.
    std::string_view fields = {};
    std::string_view body = {};
    std::shared_ptr<body_source> source = nullptr;  // instead of `body`
    body_sink sink = nullptr;                       // empty: the body is collected
    // "https://host:port/path?query", instead of `target` and `host`, which must keep their
    // defaults. The host is looked up, unless `to` says where to send the request, for example to a
    // Unix socket.
    std::string url = {};
    // Override the client's options of these names.
    std::optional<std::size_t> redirects_max = std::nullopt;
    std::optional<std::size_t> retries = std::nullopt;
    std::optional<internal::duration> total = std::nullopt;
};

// The head of an answer.
class client_head {
public:
    // Returns the code, 100 to 599. Lifetime: views are valid as long as the answer.
    int status() const noexcept { return status_; }
    // Returns the value of the first field of that name. Case is ignored.
    std::optional<std::string_view> find(std::string_view name) const noexcept;
    // Returns the values of all fields of that name, in order; for Set-Cookie. Cost: allocates.
    std::vector<std::string_view> find_all(std::string_view name) const;
    // Returns all fields, in order. Cost: allocates.
    std::vector<field> fields() const;
    // Returns a trailer field, once a chunked body has ended.
    std::optional<std::string_view> trailer(std::string_view name) const noexcept;
    // Returns the URL that has answered: the request's, or that of its last redirect. "" for a
    // request without a URL that was not redirected.
    std::string_view url() const noexcept { return url_; }

private:
    friend class internal::client_call;
    friend class client_answer;
    int status_ = 0;
    std::string head_;  // the field lines
    std::string trailers_;
    std::string url_;
};

// A whole answer.
class client_response : public client_head {
public:
    // Returns the body. Lifetime: the view is valid as long as the response.
    std::string_view body() const& noexcept { return body_; }
    std::string body() && noexcept { return std::move(body_); }

private:
    friend class internal::client_call;
    std::string body_;
};

// An answer whose body the caller reads as far as it wants. Nothing is received between reads, so a
// slow reader slows its server. Threads: any, one at a time; the loop receives. Lifetime: the loop
// outlives it, and the client outlives its reading. It may be moved and destroyed at any time,
// except while read() is awaited. Destroying it before the body's end resets the connection.
class client_answer : public client_head {
public:
    client_answer(client_answer&&) noexcept = default;
    client_answer& operator=(client_answer&&) noexcept = default;

    // Completes with the next piece of the body, "" at its end and from then on. The view is valid
    // until the next call. What a stop loses: nothing. Errors: as those of the client, and then the
    // same on every further call.
    // client_options::body limits each wait. Cost: allocates only where the input grows.
    task<std::string_view> read();

private:
    friend struct internal::client_tasks;
    using request_in_flight = std::unique_ptr<internal::client_opened, internal::client_opened_end>;
    client_answer(request_in_flight opened, client_head&& head) noexcept
        : client_head(std::move(head)), opened_(std::move(opened)) {}

    request_in_flight opened_;
};

}  // namespace coppice::http
