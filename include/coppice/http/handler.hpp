// handler answers a request; filter sees requests before handlers, and answers after them.
#pragma once

#include <coppice/http/internal/answerer.hpp>
#include <coppice/http/request.hpp>
#include <coppice/http/response.hpp>
#include <coppice/task/task.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace coppice::http {

namespace internal {

struct filter_chain;

}  // namespace internal

// What a handler needs to run.
struct handler_needs {
    bool pool = false;  // computes for long, or blocks: runs on the pool if there is one
    bool body = false;  // reads the body itself, through request::incoming()
    friend constexpr handler_needs operator|(handler_needs a, handler_needs b) noexcept {
        return {a.pool || b.pool, a.body || b.body};
    }
};
// What offload() and read_body() return. A program that wraps handlers looks for it
// (is_declared_handler), wraps the function, and declares the wrapper with the same needs.
template <class F>
struct declared_handler {
    F function;
    handler_needs needs;
};
template <class F>
inline constexpr bool is_declared_handler = false;
template <class F>
inline constexpr bool is_declared_handler<declared_handler<F>> = true;

// Returns the function with these needs, in addition to those that it was declared with.
template <class F>
auto declare(F&& function, handler_needs needs) {
    if constexpr (is_declared_handler<std::remove_cvref_t<F>>) {
        function.needs = function.needs | needs;
        return std::remove_cvref_t<F>(std::forward<F>(function));
    } else {
        return declared_handler<std::decay_t<F>>{std::forward<F>(function), needs};
    }
}
// Declares a handler that computes for long or blocks. It runs on the pool in every model except
// `single`, which has no pool. On the pool it may fork, also through wait_for_tasks: such tasks run
// in parallel.
template <class F>
auto offload(F&& function) {
    return http::declare(std::forward<F>(function), {.pool = true});
}
// Declares a handler that reads the body piece by piece, through request::incoming(). It must
// return a task<response>. It starts when the head has arrived. It may answer before it has read
// the whole body; the connection is then closed.
template <class F>
auto read_body(F&& function) {
    return http::declare(std::forward<F>(function), {.body = true});
}

// A callable that takes a request& and returns a response or a task<response>.
// Threads: a server with several threads calls it on all of them at once. A task may end on another
// thread than it began on. Lifetime: the request and its views stay valid until the answer is made.
class handler {
public:
    // Hold the callable. Errors: std::invalid_argument for an empty function, and for a handler
    // that reads its body but returns no task; what copying the callable throws; what allocation
    // throws. Cost: one allocation.
    template <class F>
    handler(declared_handler<F> declared) : handler(std::move(declared.function)) {
        needs_ = declared.needs;
        starts_early_ = needs_.body;
        if (needs_.body && !is_asynchronous()) {
            throw std::invalid_argument("a handler that reads its body must return a task");
        }
    }
    template <class F>
        requires(!std::same_as<std::remove_cvref_t<F>, handler> &&
                 !is_declared_handler<std::remove_cvref_t<F>> &&
                 std::is_invocable_v<const std::decay_t<F>&, request&>)
    handler(F&& function)
        : callable_(std::make_unique<internal::answerer_of<std::decay_t<F>>>(
              std::in_place, std::forward<F>(function))) {}

    // Returns what offload() and read_body() have declared.
    handler_needs needs() const noexcept { return needs_; }
    // Returns true if start() is to be called, false if answer() is.
    bool is_asynchronous() const noexcept { return callable_->asynchronous; }
    // Returns true if the callable returns a response and no task, even behind filters that are
    // tasks.
    bool is_plain() const noexcept { return callable_->plain; }
    // Returns true if the handler, or a filter of its group, starts as soon as the head has
    // arrived.
    bool starts_early() const noexcept { return starts_early_; }
    // Returns the filters of its group, or nullptr if it has none.
    const internal::filter_chain* chain() const noexcept { return chain_; }
    // Returns its place in router::names().
    std::size_t route() const noexcept { return route_; }
    // Answers the request on this thread. Errors: what the handler throws.
    response answer(request& r) const { return callable_->answer(r); }
    // Runs the filters of its group that are tasks, and then the handler.
    task<response> start(request& r) const { return callable_->start(r); }

private:
    friend class router;

    // Puts the handler behind these filters, which must outlive it. `tasks`: some of them are
    // tasks, or are about to be. Errors: std::bad_alloc, and no change.
    void put_behind(const internal::filter_chain& chain, bool tasks);
    // Called when the chain has changed.
    void refresh() noexcept;

    std::unique_ptr<internal::answerer> callable_;
    const internal::filter_chain* chain_ = nullptr;
    std::size_t route_ = 0;
    handler_needs needs_;
    bool starts_early_ = false;
    bool behind_tasks_ = false;
};

// Sees requests before their handlers do, and answers before they are sent. For work that routes
// have in common and that does not wait. A filter that waits is a function; see next.hpp.
// Threads: as for handlers. Errors: as for handlers.
class filter {
public:
    virtual ~filter() = default;
    // Returns an answer to send instead of the handler's, or nothing. Called once for each request,
    // when its head has arrived. body() is "" then, and the server does not wait for it.
    virtual std::optional<response> before(const request&) const { return std::nullopt; }
    // May change the answer, including one that another filter or the server gave. Not called for
    // what the connection answers by itself: the refusal of a malformed head or body, which is no
    // request; the 413 for a chunked body that exceeds the limit while the server receives it for a
    // handler; the 503 for a request that there is no memory to receive; and the 503 for a handler
    // that does not end after its time is up and it was stopped.
    virtual void after(const request&, response&) const {}
};

}  // namespace coppice::http
