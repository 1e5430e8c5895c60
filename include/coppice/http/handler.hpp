// handler, filter and router: what answers requests, and which handler answers which.
#pragma once

#include <coppice/http/message.hpp>
#include <coppice/http/router.hpp>
#include <coppice/task/task.hpp>

#include <concepts>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace coppice::http {

// What a handler declares about itself.
struct handler_needs {
    bool pool = false;  // it computes for long, or blocks: not on a loop if there is a pool
    bool body = false;  // it reads the body itself, through request::incoming()
    friend constexpr handler_needs operator|(handler_needs a, handler_needs b) noexcept {
        return {a.pool || b.pool, a.body || b.body};
    }
};
template <class F>
struct declared_handler {
    F function;
    handler_needs needs;
};
template <class F>
inline constexpr bool is_declared_handler = false;
template <class F>
inline constexpr bool is_declared_handler<declared_handler<F>> = true;

template <class F>
auto declare(F&& function, handler_needs needs) {
    if constexpr (is_declared_handler<std::remove_cvref_t<F>>) {
        function.needs = function.needs | needs;
        return std::remove_cvref_t<F>(std::forward<F>(function));
    } else {
        return declared_handler<std::decay_t<F>>{std::forward<F>(function), needs};
    }
}
// The handler is CPU-heavy, or blocks: it runs on the pool in every model but `single`, which has
// none. There it may fork, by wait_for_tasks too: such tasks run side by side.
template <class F>
auto offload(F&& function) {
    return http::declare(std::forward<F>(function), {.pool = true});
}
// The handler, which returns a task<response>, starts when the head is there, and reads the body
// piece by piece. It may answer without having read all of it; the connection is closed then.
template <class F>
auto read_body(F&& function) {
    return http::declare(std::forward<F>(function), {.body = true});
}

// A callable that takes a request& and returns a response, or a task<response>.
// Threads: a server with several threads calls it on all of them at once. The request and its views
// stay valid until the answer is made; a task may end on another thread than it began on.
class handler {
public:
    // Errors: std::invalid_argument when a handler that reads its body returns no task; what
    // copying the callable, and allocation, throw. Cost: one allocation.
    template <class F>
    handler(declared_handler<F> declared) : handler(std::move(declared.function)) {
        needs_ = declared.needs;
        if (needs_.body && !is_asynchronous()) {
            throw std::invalid_argument("a handler that reads its body must return a task");
        }
    }
    template <class F>
        requires(!std::same_as<std::remove_cvref_t<F>, handler> &&
                 !is_declared_handler<std::remove_cvref_t<F>> &&
                 std::is_invocable_v<const std::decay_t<F>&, request&>)
    handler(F&& function)
        : callable_(std::make_unique<model<std::decay_t<F>>>(std::forward<F>(function))) {
        using answer = std::invoke_result_t<const std::decay_t<F>&, request&>;
        static_assert(std::same_as<answer, response> || std::same_as<answer, task<response>>,
                      "coppice::http: a handler must return a response or a task<response>");
    }

    // Where it runs, and when it starts: what offload() and read_body() have declared.
    handler_needs needs() const noexcept { return needs_; }
    // Whether to call start() (true) or answer() (false).
    bool is_asynchronous() const noexcept { return callable_->asynchronous; }
    response answer(request& r) const { return callable_->answer(r); }
    task<response> start(request& r) const { return callable_->start(r); }

private:
    struct callable {
        explicit callable(bool is_async) noexcept : asynchronous(is_async) {}
        virtual ~callable() = default;
        virtual response answer(request&) const = 0;
        virtual task<response> start(request&) const = 0;
        const bool asynchronous;
    };
    template <class F>
    struct model final : callable {
        static constexpr bool is_async =
            std::same_as<std::invoke_result_t<const F&, request&>, task<response>>;
        template <class G>
        explicit model(G&& g) : callable(is_async), function(std::forward<G>(g)) {}
        response answer(request& r) const override {
            if constexpr (is_async) {
                return response(500);  // never called
            } else {
                return function(r);
            }
        }
        task<response> start(request& r) const override {
            if constexpr (is_async) {
                return function(r);
            } else {
                return completed(function, r);
            }
        }
        static task<response> completed(const F& f, request& r) { co_return f(r); }
        F function;
    };
    std::unique_ptr<callable> callable_;
    handler_needs needs_;
};

// Looks at requests before their handlers do, and at answers before they are sent; for what all
// routes have in common. Threads: as handlers. Errors: as those of handlers.
class filter {
public:
    virtual ~filter() = default;
    // An answer in place of the handler's, or nothing. Called once for each request, when its head
    // is there: body() is "", and what has not been received is not waited for.
    virtual std::optional<response> before(const request&) const { return std::nullopt; }
    // May change the answer, also one that another filter or the server gave to this request. What
    // is no request, because its head or its body is malformed, is refused without filters.
    virtual void after(const request&, response&) const {}
};

// Collects handlers before a server starts. Patterns: see router.hpp.
// Errors: std::invalid_argument for a malformed pattern or one that exists, and no change.
class router {
public:
    // Every request passes the filters in the order in which they were given, every answer in the
    // opposite order.
    router& use(std::shared_ptr<const filter> f) {
        filters_.push_back(std::move(f));
        return *this;
    }
    // In the order of use().
    const std::vector<std::shared_ptr<const filter>>& filters() const noexcept { return filters_; }
    // Whether a handler was declared with offload().
    bool wants_pool() const noexcept { return wants_pool_; }

    // A handler of one method at the pattern. GET's also answers HEAD where that has none.
    router& get(std::string_view pattern, handler h) {
        return add(method::get, pattern, std::move(h));
    }
    router& post(std::string_view pattern, handler h) {
        return add(method::post, pattern, std::move(h));
    }
    router& put(std::string_view pattern, handler h) {
        return add(method::put, pattern, std::move(h));
    }
    router& del(std::string_view pattern, handler h) {
        return add(method::del, pattern, std::move(h));
    }
    router& patch(std::string_view pattern, handler h) {
        return add(method::patch, pattern, std::move(h));
    }
    router& options(std::string_view pattern, handler h) {
        return add(method::options, pattern, std::move(h));
    }
    router& head(std::string_view pattern, handler h) {
        return add(method::head, pattern, std::move(h));
    }
    // Every method that has no handler of its own there.
    router& any(std::string_view pattern, handler h) {
        wants_pool_ = wants_pool_ || h.needs().pool;
        routes_.add_any(pattern, std::move(h));
        return *this;
    }

    // The handler of such a request, or why there is none. Lifetime: `path` and this router outlive
    // the result.
    internal::route_match<handler> match(method verb, std::string_view path) const noexcept {
        return routes_.match(verb, path);
    }

private:
    router& add(method verb, std::string_view pattern, handler&& h) {
        wants_pool_ = wants_pool_ || h.needs().pool;
        routes_.add(verb, pattern, std::move(h));
        return *this;
    }
    internal::route_table<handler> routes_;
    std::vector<std::shared_ptr<const filter>> filters_;
    bool wants_pool_ = false;
};

}  // namespace coppice::http
