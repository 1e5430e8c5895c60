// Server-sent events: an answer that never ends by itself, and tells a page what happens.
#pragma once
// A handler returns an answer whose producer sends events:
//
//   routes.get("/prices", [](request& r) {
//       return http::events(r, [](http::event_writer& out) -> task<> {
//           for (;;) co_await out.send({.data = co_await next_price()});
//       });
//   });
//
// Browsers read it with EventSource, which connects again when the answer ends. While the producer
// waits, the server sends comments, so that proxies keep the connection and a client that is gone
// is noticed. When the server drains, the producer is stopped and the answer ends properly.
//
// Source: HTML, section 9.2 (server-sent events).

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/request.hpp>
#include <coppice/http/response.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/task/task.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace coppice::http {

// What a page gets as one event.
struct page_event {
    // May have several lines. Nothing: the page gets no event, but `id` and `retry` count.
    std::optional<std::string_view> data = {};
    std::string_view name = {};               // "": "message"; one line
    std::optional<std::string_view> id = {};  // what Last-Event-ID says after a reconnect; one line
    std::optional<std::chrono::milliseconds> retry = {};  // the page's pause before it reconnects
};

// What a producer of events writes to. Threads: one at a time; send() may be awaited on any.
class event_writer : immovable {
public:
    // Completes when the kernel has taken the event: a client that does not read makes its producer
    // wait. Stops the caller if the client no longer reads. What a stop loses: nothing of an event
    // that has begun, whose rest is sent first by the next call, or at the end of the answer. It
    // begins once what was sent before it is whole. The caller resumes on the request's loop,
    // unless its task belongs to a scheduler. Errors: std::invalid_argument, and nothing is sent,
    // if `name` or `id` has a line break or a NUL, or `retry` is negative. Lifetime: the texts
    // outlive the call.
    virtual task<> send(const page_event& e) = 0;
    // Returns the token that is requested when the client has gone away or the server cuts off.
    virtual inplace_stop_token stop_token() const noexcept = 0;
    // Returns the token that is requested when the server drains; for events_options::end_at_drain
    // being false.
    virtual inplace_stop_token drain_token() const noexcept = 0;

protected:
    ~event_writer() = default;
};

struct events_options {
    // After so much time without an event, a comment is sent. At least 1 ms; max(): never.
    internal::duration comment_interval = std::chrono::seconds(15);
    // If true, a drain stops the producer, and the answer ends properly. If false, the producer
    // looks at drain_token(), and is cut off at the hard stop otherwise.
    bool end_at_drain = true;
};

namespace internal {

class event_producer {
public:
    virtual ~event_producer() = default;
    virtual task<> run(event_writer& out) = 0;
};
template <class F>
class event_producer_of final : public event_producer {
public:
    template <class G>
    event_producer_of(std::in_place_t, G&& g) : function_(std::forward<G>(g)) {}
    task<> run(event_writer& out) override { return function_(out); }

private:
    F function_;
};
response events_of(const request& r, std::unique_ptr<event_producer> producer,
                   const events_options& options);

}  // namespace internal

// Returns the answer to `r` whose body is the events of a task<>(event_writer&), with the fields
// that keep it from being stored. The callable lives until its coroutine has ended, so a lambda may
// capture; the request is gone when it begins. It begins on the request's loop. Errors: a request
// that came from no server stops the process; std::invalid_argument for options out of range. Cost:
// three allocations.
template <class F>
    requires std::is_invocable_r_v<task<>, std::decay_t<F>&, event_writer&>
response events(const request& r, F&& producer, const events_options& options = {}) {
    using producer_type = internal::event_producer_of<std::decay_t<F>>;
    return internal::events_of(
        r, std::make_unique<producer_type>(std::in_place, std::forward<F>(producer)), options);
}

// Returns the id of the last event that the page has got before it connected again; "" if there is
// none.
std::string_view last_event_id(const request& r) noexcept;

}  // namespace coppice::http
