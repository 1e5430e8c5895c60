// handler and router: what answers requests, and which handler answers which.
#pragma once

#include <coppice/http/message.hpp>
#include <coppice/http/router.hpp>
#include <coppice/task/task.hpp>

#include <concepts>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

namespace coppice::http {

// A callable that takes a request& and returns a response, or a task<response>.
// Threads: a server with several loops calls it on all of them at once. The request and its views
// stay valid until the answer is made; a task may end on another thread than it began on.
class handler {
public:
    template <class F>
        requires(!std::same_as<std::remove_cvref_t<F>, handler> &&
                 std::is_invocable_v<const std::decay_t<F>&, request&>)
    handler(F&& function)
        : callable_(std::make_unique<model<std::decay_t<F>>>(std::forward<F>(function))) {
        using answer = std::invoke_result_t<const std::decay_t<F>&, request&>;
        static_assert(std::same_as<answer, response> || std::same_as<answer, task<response>>,
                      "coppice::http: a handler must return a response or a task<response>");
    }

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
};

// Collects handlers before a server starts. Patterns: see router.hpp.
// Errors: std::invalid_argument for a malformed pattern or one that exists, and no change.
class router {
public:
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
    router& head(std::string_view pattern, handler h) {
        return add(method::head, pattern, std::move(h));
    }
    // Every method that has no handler of its own there.
    router& any(std::string_view pattern, handler h) {
        routes_.add_any(pattern, std::move(h));
        return *this;
    }

    route_match<handler> match(method verb, std::string_view path) const noexcept {
        return routes_.match(verb, path);
    }

private:
    router& add(method verb, std::string_view pattern, handler&& h) {
        routes_.add(verb, pattern, std::move(h));
        return *this;
    }
    route_table<handler> routes_;
};

}  // namespace coppice::http
