// What a client is told and what it gives: options, requests, and the answers' heads.
#pragma once

#include <coppice/base/clock.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/parse.hpp>
#include <coppice/io/endpoint.hpp>
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

// Times and limits of a client, for each of its requests.
struct client_options {
    internal::duration connect = std::chrono::seconds(10);  // until connected
    // from connected, or all sent, to the head
    internal::duration answer = std::chrono::seconds(60);
    internal::duration body = std::chrono::seconds(60);  // without a byte of a body, either way
    // For all of a request, from its beginning to the end of its answer's body: redirects, tries,
    // the waits between them and for a turn, the source and the sink. A read() of open()'s answer
    // that would wait for longer is timed_out too.
    internal::duration total = internal::duration::max();
    internal::duration idle = std::chrono::seconds(20);  // older connections are not used again
    std::size_t idle_connections_max = 64;               // kept; beyond, the oldest is closed
    http::limits limits = {};  // of an answer's head, and of a collected body
    // In use and kept, to one host and port; 0: as many as there are requests. Further requests
    // wait, first come first; only their stop and their deadline end that.
    std::size_t connections_per_host_max = 0;
    std::size_t redirects_max = 0;  // followed for one request; 0: a redirect is the answer
    // How often a request is tried again; client.hpp says which. Between two tries passes a random
    // time: up to `retry_delay`, twice as much each time, up to `retry_delay_max`, and at least
    // half of that. A Retry-After that asks for more than `retry_after_max` is not waited for.
    std::size_t retries = 0;
    internal::duration retry_delay = std::chrono::milliseconds(100);
    internal::duration retry_delay_max = std::chrono::seconds(10);
    internal::duration retry_after_max = std::chrono::seconds(60);
};

// Takes a streamed body, piece by piece; nothing is received while its task runs.
using body_sink = std::function<task<>(std::string_view piece)>;

// What to ask. Views: they outlive the request.
struct client_request {
    io::endpoint to;
    std::string_view target = "/";
    std::string_view method = "GET";
    std::string_view host = {};  // the Host field; "": the endpoint's text
    // More lines, each ended by CRLF; see response::add() to make them. Not those that only the
    // client writes: Host, Content-Length, Transfer-Encoding, Upgrade, Connection but for close.
    std::string_view fields = {};
    std::string_view body = {};
    std::shared_ptr<body_source> source = nullptr;  // in place of `body`
    body_sink sink = nullptr;                       // empty: the body is collected
    // "http://host:port/path?query", in place of `target` and `host`, which stay as they are. The
    // host is looked up, unless `to` says where to ask it: a Unix socket, for one.
    std::string url = {};
    // In place of the client's options of these names.
    std::optional<std::size_t> redirects_max = std::nullopt;
    std::optional<std::size_t> retries = std::nullopt;
    std::optional<internal::duration> total = std::nullopt;
};

// The head of an answer.
class client_head {
public:
    // The code, 100 to 599. Lifetime: views are the answer's.
    int status() const noexcept { return status_; }
    // The first field of that name, whatever its case.
    std::optional<std::string_view> find(std::string_view name) const noexcept;
    // All of that name, in their order: Set-Cookie. Cost: allocates.
    std::vector<std::string_view> find_all(std::string_view name) const;
    // All of them, in their order. Cost: allocates.
    std::vector<field> fields() const;
    // Behind a chunked body, once that has ended.
    std::optional<std::string_view> trailer(std::string_view name) const noexcept;
    // Who has answered: the request's URL, or that of its last redirect. "" for a request without a
    // URL that was not redirected.
    std::string_view url() const noexcept { return url_; }

private:
    friend class client_call;
    friend class client_answer;
    int status_ = 0;
    std::string head_;  // the field lines
    std::string trailers_;
    std::string url_;
};

// A whole answer.
class client_response : public client_head {
public:
    // Lifetime: the view is the response's.
    std::string_view body() const& noexcept { return body_; }
    std::string body() && noexcept { return std::move(body_); }

private:
    friend class client_call;
    std::string body_;
};

}  // namespace coppice::http
