// connect_awaitable: the operation of an awaitable is a coroutine that awaits it.
#pragma once
// Source: [exec.connect].

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/sender.hpp>

#include <coroutine>
#include <exception>

namespace coppice::execution {

struct operation_state_tag;

namespace internal {

template <class Awaitable, class Rcvr>
class connect_awaitable_promise;

// The operation of an awaitable: a coroutine that awaits it and then completes the receiver.
template <class Awaitable, class Rcvr>
class awaitable_operation {
public:
    using operation_state_concept = operation_state_tag;
    using promise_type = connect_awaitable_promise<Awaitable, Rcvr>;

    explicit awaitable_operation(std::coroutine_handle<> coroutine) noexcept
        : coroutine_(coroutine) {}
    awaitable_operation(awaitable_operation&&) = delete;
    ~awaitable_operation() { coroutine_.destroy(); }
    void start() & noexcept {
        COPPICE_CHECK(!started_,
                      "an operation of an awaitable was started twice: connect its sender again");
        started_ = true;
        coroutine_.resume();
    }

private:
    std::coroutine_handle<> coroutine_;
    bool started_ = false;
};

template <class Awaitable, class Rcvr>
class connect_awaitable_promise
    : public with_await_transform<connect_awaitable_promise<Awaitable, Rcvr>> {
public:
    connect_awaitable_promise(Awaitable&, Rcvr& rcvr) noexcept : rcvr_(rcvr) {}
    std::suspend_always initial_suspend() noexcept { return {}; }
    [[noreturn]] std::suspend_always final_suspend() noexcept { std::terminate(); }
    [[noreturn]] void unhandled_exception() noexcept { std::terminate(); }
    [[noreturn]] void return_void() noexcept { std::terminate(); }
    std::coroutine_handle<> unhandled_stopped() noexcept {
        set_stopped(static_cast<Rcvr&&>(rcvr_));
        return std::noop_coroutine();
    }
    awaitable_operation<Awaitable, Rcvr> get_return_object() noexcept {
        return awaitable_operation<Awaitable, Rcvr>(
            std::coroutine_handle<connect_awaitable_promise>::from_promise(*this));
    }
    env_of_t<Rcvr> get_env() const noexcept { return execution::get_env(rcvr_); }

private:
    Rcvr& rcvr_;
};

// Awaited last. Completes the receiver after the coroutine has suspended, because the receiver may
// destroy the coroutine.
template <class Complete>
class suspend_and_complete {
public:
    explicit suspend_and_complete(Complete complete) noexcept : complete_(complete) {}
    static constexpr bool await_ready() noexcept { return false; }
    void await_suspend(std::coroutine_handle<>) noexcept {
        Complete complete = complete_;  // this awaiter is destroyed with the coroutine
        complete();
    }
    [[noreturn]] void await_resume() noexcept { std::terminate(); }

private:
    Complete complete_;
};

template <class Awaitable, class Rcvr>
awaitable_operation<Awaitable, Rcvr> connect_awaitable(Awaitable awaitable, Rcvr rcvr) {
    using Result = await_result_t<Awaitable, connect_awaitable_promise<Awaitable, Rcvr>>;
    std::exception_ptr error;
    try {
        if constexpr (std::is_void_v<Result>) {
            co_await static_cast<Awaitable&&>(awaitable);
            auto complete = [&rcvr]() noexcept { set_value(static_cast<Rcvr&&>(rcvr)); };
            co_await suspend_and_complete(complete);
        } else {
            auto&& result = co_await static_cast<Awaitable&&>(awaitable);
            auto complete = [&rcvr, &result]() noexcept {
                set_value(static_cast<Rcvr&&>(rcvr), static_cast<Result&&>(result));
            };
            co_await suspend_and_complete(complete);
        }
    } catch (...) {
        error = std::current_exception();
    }
    auto complete = [&rcvr, &error]() noexcept {
        set_error(static_cast<Rcvr&&>(rcvr), std::move(error));
    };
    co_await suspend_and_complete(complete);
}

template <class Sndr, class Rcvr>
concept connects_by_awaiting =
    is_awaitable<Sndr, connect_awaitable_promise<std::decay_t<Sndr>, std::decay_t<Rcvr>>>;

}  // namespace internal

}  // namespace coppice::execution
