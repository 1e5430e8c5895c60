// client: sends HTTP/1.1 requests over connections that it keeps and reuses; on one loop.
#pragma once
// A request is a task. It takes a kept connection to the endpoint, or makes one, and sends. It ends
// when the answer's body has ended, either in memory or piece by piece in a sink. It can be stopped
// at any moment and from any thread: by its awaiter (timeout, when_any, a scope, a deadline), or by
// a token of its own. It then completes as stopped, and its connection is closed. The server may
// nevertheless have acted on it; see docs/stopping.md. Being stoppable costs no allocation.
//
// A request has either an endpoint and a target, or a URL. The host of a URL is looked up, and its
// addresses are raced (io::connect_options). For an https URL, client_options::security says how to
// encrypt, and the server must prove that it is the URL's host. Errors of the handshake are those
// of tls_category(), and are not retried. A redirect from https to http is not followed: it fails
// with errc::protocol_not_supported.
//
// The client sends only what is exactly one request. Method, target, host, and fields may come from
// an untrusted source: a text that would be malformed, or would end the request elsewhere, fails
// with errc::invalid_argument.
//
// The client sends a large or streamed body while it receives the answer. An answer of 300 or more
// that arrives before the body has been sent stops the sending and the body's source, and is the
// result. After an answer below 300 the client still sends the rest, unless the server closes; if
// the server does not take the rest in time, the request ends as timed_out. A failed send therefore
// never loses an answer.
//
// The server may have closed a kept connection in the meantime. If that shows before any byte of an
// answer has arrived, the client sends the request once more, on a new connection, provided that
// its method is idempotent and its body is not streamed (RFC 9110 section 9.2.2, RFC 9112 section
// 9.3.1).
//
// Four things bound the duration of a request. Each wait has a limit, and the whole request has one
// if `total` is set: both fail with timed_out. A deadline in the environment ends the request as
// stopped. A timeout around the request arrives as a stop when its time is up; the client does not
// know that time beforehand.
//
// A client follows redirects if redirects_max allows it (RFC 9110 section 15.4). 303 asks for the
// other URL with GET, and so do 301 and 302 after POST; 307 and 308 repeat the request.
// Authorization, Cookie, and Proxy-Authorization are not sent to another scheme, host, or port. A
// streamed body cannot be repeated, so the redirect is then the answer, as it is without a
// Location. One redirect more than allowed fails with errc::too_many_links. A Location that is not
// a URL fails with bad_message.
//
// A client retries if `retries` allows it, and only requests that are idempotent and have no
// streamed body. It retries when no connection can be made, when one is lost before a byte of an
// answer, and after 429, 502, 503, and 504, not before the time that Retry-After names. It does not
// retry if that would be after `total` or after the deadline in the environment. In that case, and
// when no retries are left, the last answer or error is the result. A timeout around the request
// may expire during the wait.
//
// The client reads answers as strictly as the server reads requests: what two programs could read
// differently is an error. Errors are thrown as std::system_error: those of the sockets; timed_out;
// bad_message for an answer that is not HTTP/1.1; message_size for an answer beyond a limit;
// protocol_not_supported if a server of HTTP/2 answers a request over HTTP/1.1 only;
// connection_aborted for an answer that ends too early. A reset counts as too early also where the
// end of the connection ends the body.

#include <coppice/base/lifetime.hpp>
#include <coppice/http/client_message.hpp>
#include <coppice/http/internal/client_core.hpp>
#include <coppice/http/internal/client_tasks.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/stop/concepts.hpp>
#include <coppice/stop/never.hpp>
#include <coppice/task/task.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace coppice::http {

// Threads: any may await a request. A request that begins on another thread is posted to the loop
// and runs there, with its source and its sink. Its awaiter resumes on its own scheduler, or on the
// loop if it has none, as a handler's task has none. Everything else is for the loop's thread,
// except the sources of stop tokens. Lifetime: the client outlives its requests; the loop outlives
// the client.
class client : immovable {
public:
    // Makes a client without connections. Errors: std::invalid_argument for an option out of its
    // range.
    explicit client(io::context& loop, client_options options = {})
        : core_(loop, std::move(options)) {}
    // Closes the kept connections, and therefore must run on the loop's thread while any are kept
    // and the loop runs.
    ~client() = default;

    // Sends a request and completes with its answer. Errors: see above; a request that its token
    // stops completes with set_stopped. What a stop loses: whether the server has acted. Lifetime:
    // the texts that the request views outlive the task. Cost: off the loop, one more frame and
    // what posting costs; with a URL, what its text and its look-up allocate.
    template <stoppable_token Token = never_stop_token>
    task<client_response> send(client_request r, Token token = {}) {
        return internal::client_tasks::send(core_, std::move(r), std::move(token));
    }
    // Send a GET request. Errors, stops, cost: as send(). Lifetime: `target` outlives the task.
    template <stoppable_token Token = never_stop_token>
    task<client_response> get(const io::endpoint& to, std::string_view target, Token token = {}) {
        return send({.to = to, .target = target}, std::move(token));
    }
    template <stoppable_token Token = never_stop_token>
    task<client_response> get(std::string_view url, Token token = {}) {
        return send({.url = std::string(url)}, std::move(token));
    }
    // Send a POST request. Errors, stops, cost: as send(). Lifetime: `target` and `body` outlive
    // the task.
    template <stoppable_token Token = never_stop_token>
    task<client_response> post(const io::endpoint& to, std::string_view target,
                               std::string_view body, Token token = {}) {
        return send({.to = to, .target = target, .method = "POST", .body = body}, std::move(token));
    }
    template <stoppable_token Token = never_stop_token>
    task<client_response> post(std::string_view url, std::string_view body, Token token = {}) {
        return send({.method = "POST", .body = body, .url = std::string(url)}, std::move(token));
    }

    // Send a request, and complete with its answer once the head has arrived; read() then returns
    // the body. A request body that is streamed, or larger than 16 KiB, is sent before that, unless
    // the answer refuses it. Lifetime: the request's views outlive the answer. Errors: as send();
    // invalid_argument for a sink. Cost: allocates the call.
    template <stoppable_token Token = never_stop_token>
    task<client_answer> open(client_request r, Token token = {}) {
        return internal::client_tasks::open(core_, std::move(r), std::move(token));
    }
    template <stoppable_token Token = never_stop_token>
    task<client_answer> open(std::string_view url, Token token = {}) {
        return open({.url = std::string(url)}, std::move(token));
    }

    // Closes the kept connections. Threads: this and the counts below: the loop's.
    void close_idle() noexcept { core_.close_idle(); }
    // Return how many connections are kept, and how many were made so far.
    std::size_t idle_connections() const noexcept { return core_.idle_connections(); }
    std::size_t connections_made() const noexcept { return core_.made; }
    // Return how many of these have resumed an earlier one's security, and how many sessions are
    // kept for more to do so.
    std::size_t connections_resumed() const noexcept { return core_.resumed; }
    std::size_t sessions() const noexcept { return core_.sessions(); }

private:
    internal::client_core core_;
};

}  // namespace coppice::http
