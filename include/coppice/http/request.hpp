// Requests as handlers and filters see them.
#pragma once

#include <coppice/base/clock.hpp>
#include <coppice/http/internal/parameter_value.hpp>
#include <coppice/http/internal/request_origin.hpp>
#include <coppice/http/internal/request_values.hpp>
#include <coppice/http/parameters.hpp>
#include <coppice/http/parse.hpp>
#include <coppice/http/trace_context.hpp>
#include <coppice/http/uri.hpp>
#include <coppice/io/secure_engine.hpp>
#include <coppice/stop/inplace.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coppice::io {
class context;
struct endpoint;
}  // namespace coppice::io

namespace coppice::http {

class body_reader;
class next_handler;
class request;
struct forwarded_client;

namespace internal {
// Counts bytes toward server_options::buffered_bytes_max, for what makes the body of the answer to
// `r`, until the body has ended. Returns false, and counts nothing, if they do not fit. Threads:
// the one on which the answer passes the filters.
[[nodiscard]] bool reserve_for_body(const request& r, std::size_t bytes) noexcept;
}  // namespace internal

// What a handler gets. It can be moved but not copied, since it owns the values that filters have
// set. Lifetime: it holds views; the head, the body, and the route table outlive it.
class request {
public:
    // Makes a request of a parsed head. A test may leave out the body, the route, and the server.
    request(const request_head& head, std::string_view body, const path_parameters& parameters = {},
            const internal::request_origin* origin = nullptr) noexcept
        : head_(&head), origin_(origin), body_(body), parameters_(parameters) {}

    // What was sent: the head, its parts (see request_head), and the body.
    const request_head& head() const noexcept { return *head_; }
    method verb() const noexcept { return head_->verb(); }
    std::string_view target() const noexcept { return head_->target(); }
    std::string_view path() const noexcept { return head_->path(); }
    std::string_view body() const noexcept { return body_; }
    // Returns the value of the first field of that name. Case is ignored.
    std::optional<std::string_view> find(std::string_view name) const noexcept {
        return head_->find(name);
    }
    // Returns what the route's pattern has captured.
    const path_parameters& parameters() const noexcept { return parameters_; }

    // Returns the token that is requested when the client has gone away, when the deadline has
    // passed, or when the server cuts off. The request is made on the loop's thread. It is never
    // made for a request that came from no server.
    inplace_stop_token stop_token() const noexcept {
        return origin_ == nullptr ? inplace_stop_token() : origin_->stop;
    }
    // Returns the time at which the answer must be made. A read() of incoming() moves it later by
    // the time that it has waited for the client. Threads: not during a read() on another thread.
    internal::time_point deadline() const noexcept {
        return origin_ == nullptr ? internal::time_point::max() : origin_->deadline;
    }
    // Returns the loop that owns the connection. Errors: a request that came from no server stops
    // the process.
    io::context& loop() const noexcept;
    // Returns the time of day of the server, which is the simulation's time in a simulation.
    // Threads: any.
    std::chrono::sys_seconds wall_time() const noexcept;
    // Returns the client's address, as a trusted proxy tells it (server_options::proxies and
    // forwarding) if the request came through one. After the client is gone it returns the address
    // only if it was asked for before; otherwise, and for a request that came from no server, the
    // address is unspecified. Threads: any. Cost: a lock; the first call also makes a system call.
    io::endpoint peer() const noexcept;
    // Returns true if the connection is encrypted, or if a trusted proxy (server_options::
    // forwarding) says that its client's is; false for a request that came from no server. Threads:
    // any.
    bool is_secure() const noexcept;
    // Returns what the handshake of the connection has agreed on: the version, the cipher, the host
    // that the client has named, and the certificate that it has shown, by which a handler may
    // authorize it. nullptr: the connection is in the clear, or the request came from no server.
    // This is the connection's own client, which may be a trusted proxy. Threads: any. Lifetime:
    // the request's. Cost: no allocation.
    const io::agreed_security* security() const noexcept;
    // Returns a text that tells this request from others in logs: the X-Request-Id of a trusted
    // proxy (server_options::forwarding) if it is 1 to 128 letters, digits, and any of -_.:+/=@~,
    // otherwise 32 hexadecimal digits. It is no secret: from one made here, others can be computed.
    // "" for a request that came from no server. Threads: any. Lifetime: the request's. Cost: the
    // first call of this or of trace() takes some 100 ns; no allocation.
    std::string_view id() const noexcept;
    // Returns the request's own span, in the trace of the client's traceparent if that is valid and
    // was sent once, otherwise in a trace of its own. Its text() is the traceparent to send to the
    // services that the handler asks. It is not valid for a request that came from no server.
    // Threads: any. Cost: as for id().
    trace_context trace() const noexcept;
    // Returns how long the request has waited: since its last byte was there to be received, or the
    // last byte of its head for a handler that reads the body, or since the answer to an earlier
    // request of its connection that was waited for. A loop that was busy does not know when a
    // request came meanwhile, and takes the middle of that time. If more was ready over epoll than
    // one turn of the loop takes, the rest counts for as long as such a wait has lately been. The
    // time of a new connection until it is accepted does not count. Zero for a request that came
    // from no server. Threads: any. Cost: a reading of the clock.
    internal::duration queued() const noexcept;
    // Returns the body as it arrives, for handlers declared with read_body(); body() is "" there.
    // Errors: any other request stops the process.
    body_reader& incoming() const noexcept;
    // Returns the first trailer field of that name, after a chunked body that has been read to its
    // end. A trailer never changes what a field of the head says (RFC 9110 section 6.5.1).
    std::optional<std::string_view> trailer(std::string_view name) const noexcept;

    // Returns the query parameter as sent: "" for a name without a value, nothing if it is absent.
    std::optional<std::string_view> query(std::string_view name) const noexcept {
        return query_value(head_->query(), name);
    }
    // Returns the first query parameter of that name as a T: std::string (decoded, '+' is a space),
    // std::string_view (as sent), an integer, bool ("true", "1", "false", "0"), a finite
    // floating-point number, or a type with `bool parse_parameter(std::string_view, T&)` in its
    // namespace, which gets the decoded text. Returns nothing if the parameter is absent or is not
    // a T. query(name), require_query() and optional_query() tell the two apart.
    template <class T>
    std::optional<T> query(std::string_view name) const {
        return internal::value_of<T>(query(name), internal::plus_sign::space);
    }
    // Returns a parameter that must be present. Errors: status_error, 400 with the parameter's
    // name, if it is absent or is not a T.
    template <class T>
    T require_query(std::string_view name) const {
        return internal::require_value<T>("query", name, query(name), internal::plus_sign::space);
    }
    // Returns a parameter that may be absent, or nothing. Errors: status_error, 400, if it is not a
    // T.
    template <class T>
    std::optional<T> optional_query(std::string_view name) const {
        return internal::optional_value<T>("query", name, query(name), internal::plus_sign::space);
    }
    // Returns every query parameter of that name, in order. Errors: status_error, 400, if one is
    // not a T.
    template <class T = std::string>
    std::vector<T> query_all(std::string_view name) const {
        return internal::all_query_values<T>(head_->query(), name);
    }
    // Returns the path parameter as a T; see query(). Returns nothing if the route has no parameter
    // of that name, or if it is not a T.
    template <class T = std::string>
    std::optional<T> parameter(std::string_view name) const {
        return internal::value_of<T>(parameters_.find(name), internal::plus_sign::literal);
    }
    // Returns the path parameter as a T. Errors: status_error, 400, if it is not a T;
    // std::out_of_range if the route has no parameter of that name.
    template <class T = std::string>
    T require_parameter(std::string_view name) const {
        return internal::require_path_value<T>(name, parameters_.find(name));
    }

    // Hands a value to the later filters and the handler of this request. A request holds one value
    // of each type; a second one replaces the first. The value is destroyed with the request, also
    // if the request is stopped. It is destroyed before the producer of a streamed body begins, as
    // are the locals of filters and handlers, so the producer must own what it needs. Errors: what
    // moving the value throws, and std::bad_alloc; nothing has changed then. Cost: one allocation.
    template <class T>
    T& set(T value) {
        return values_.set<T>(std::move(value));
    }
    // Returns the value of that type, or nullptr if none was set.
    template <class T>
    T* find() noexcept {
        return values_.find<T>();
    }
    template <class T>
    const T* find() const noexcept {
        return values_.find<T>();
    }
    // Returns a value that a filter must have set. Errors: std::out_of_range if none has.
    template <class T>
    T& get() {
        return values_.get<T>();
    }
    template <class T>
    const T& get() const {
        return values_.get<T>();
    }

private:
    friend class next_handler;
    friend bool internal::reserve_for_body(const request& r, std::size_t bytes) noexcept;

    forwarded_client client() const noexcept;

    const request_head* head_;
    const internal::request_origin* origin_;
    std::string_view body_;
    path_parameters parameters_;
    internal::request_values values_;
};

}  // namespace coppice::http
