// task_operation: a task that is connected to a receiver, and what it completes with.
#pragma once

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/completion_signatures.hpp>
#include <coppice/exec/sender.hpp>
#include <coppice/task/internal/task_promise.hpp>
#include <coppice/task/internal/task_root.hpp>
#include <coppice/task/internal/transfer.hpp>

#include <coroutine>
#include <type_traits>
#include <utility>

namespace coppice::execution::internal {

// The completion signatures of a task<T>. Errors is completion_signatures<set_error_t(E)...>.
template <class T, class Errors>
struct task_completions;
template <class T, class... Errors>
struct task_completions<T, completion_signatures<Errors...>> {
    using type = completion_signatures<set_value_t(T), Errors..., set_stopped_t()>;
};
template <class... Errors>
struct task_completions<void, completion_signatures<Errors...>> {
    using type = completion_signatures<set_value_t(), Errors..., set_stopped_t()>;
};

template <class T, class Env, class Rcvr>
class task_operation final : task_waiter {
    using promise_type = task_promise<T, Env>;
    using outer_type = std::decay_t<env_of_t<Rcvr>>;

public:
    using operation_state_concept = operation_state_tag;

    // Takes the coroutine last, so that `connected` still owns it if the environment cannot be
    // made.
    task_operation(task<T, Env>& connected, Rcvr rcvr)
        : rcvr_(static_cast<Rcvr&&>(rcvr)),
          root_(execution::get_env(rcvr_)),
          coroutine_(connected.take_coroutine()) {}
    ~task_operation() {
        if (coroutine_) coroutine_.destroy();
        COPPICE_CHECK(
            !running_,
            "an operation of task was destroyed while it was running: keep it until it completes");
    }
    void start() & noexcept {
        const auto coroutine = std::exchange(coroutine_, {});
        COPPICE_CHECK(coroutine,
                      "an operation of task was started twice: connect its sender again");
        running_ = true;
        root_.listen(execution::get_env(rcvr_));
        coroutine.promise().begin(root_.context(), *this, starts::detached, outcome_);
        resume_from_outside(coroutine);
    }

private:
    std::coroutine_handle<> child_ended() noexcept override {
        end();
        outcome_.deliver(
            [this](auto&& value) noexcept { this->send(static_cast<decltype(value)>(value)); },
            [this](auto&& error) noexcept {
                execution::set_error(static_cast<Rcvr&&>(rcvr_),
                                     static_cast<decltype(error)>(error));
            });
        return std::noop_coroutine();
    }
    after_stop child_stopped() noexcept override {
        end();
        execution::set_stopped(static_cast<Rcvr&&>(rcvr_));
        return after_stop::nothing();
    }

    // Called before the receiver is completed, which may destroy this operation.
    void end() noexcept {
        root_.reset();
        running_ = false;
    }
    template <class V>
    void send(V&& value) noexcept {
        if constexpr (std::is_void_v<T>) {
            execution::set_value(static_cast<Rcvr&&>(rcvr_));
        } else if constexpr (std::is_reference_v<T>) {
            execution::set_value(static_cast<Rcvr&&>(rcvr_), *value);
        } else {
            execution::set_value(static_cast<Rcvr&&>(rcvr_), static_cast<V&&>(value));
        }
    }

    [[no_unique_address]] Rcvr rcvr_;
    task_root<Env, outer_type> root_;
    std::coroutine_handle<promise_type> coroutine_;  // null once the operation has started
    typename promise_type::outcome_type outcome_;
    // Written by the thread that starts the operation, and by the one that completes it.
    bool running_ = false;
};

}  // namespace coppice::execution::internal
