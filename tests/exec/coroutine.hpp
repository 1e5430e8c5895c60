// A coroutine type for tests: lazy, awaits senders, can be awaited; not the library's task.
#pragma once

#include <coppice/exec/as_awaitable.hpp>

#include <coroutine>
#include <exception>
#include <memory>
#include <utility>

namespace probes {

namespace ex = coppice::execution;

// A query that the promise's environment answers with 31.
struct my_query : coppice::forwarding_query_t {
    template <class Env>
        requires ex::has_query<Env, my_query>
    int operator()(const Env& env) const noexcept {
        return env.query(*this);
    }
};

// A lazy coroutine that awaits senders, and can be awaited.
template <class T>
class coroutine {
public:
    class promise_type;
    using handle = std::coroutine_handle<promise_type>;

    explicit coroutine(handle h) noexcept : handle_(h) {}
    coroutine(coroutine&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
    ~coroutine() {
        if (handle_) handle_.destroy();
    }

    class awaiter {
    public:
        explicit awaiter(handle h) noexcept : handle_(h) {}
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> caller) noexcept {
            handle_.promise().set_continuation(caller);
            return handle_;
        }
        T await_resume() {
            promise_type& p = handle_.promise();
            if (p.error) std::rethrow_exception(p.error);
            return std::move(*p.value);
        }

    private:
        handle handle_;
    };
    awaiter operator co_await() && noexcept { return awaiter(handle_); }

private:
    handle handle_;
};

template <class T>
class coroutine<T>::promise_type : public ex::with_awaitable_senders<promise_type> {
public:
    class last_awaiter {
    public:
        last_awaiter() noexcept = default;
        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(handle h) const noexcept {
            return h.promise().continuation();
        }
        void await_resume() const noexcept {}
    };
    coroutine get_return_object() noexcept { return coroutine(handle::from_promise(*this)); }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    last_awaiter final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept { error = std::current_exception(); }
    void return_value(T v) { value = std::make_unique<T>(std::move(v)); }
    auto get_env() const noexcept { return ex::prop(my_query(), 31); }

    std::unique_ptr<T> value;
    std::exception_ptr error;
};

}  // namespace probes
