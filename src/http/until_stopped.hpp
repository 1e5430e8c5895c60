// until_stopped<T>: awaits what may be stopped, and gives nothing instead of passing the stop on.
#pragma once
// A stop ends a task and its awaiters without a result, up to a coroutine that handles it. For
// handlers and producers that is this coroutine. Its frame owns theirs, and the awaiter destroys
// it.

#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/as_awaitable.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/exec/env.hpp>
#include <coppice/exec/queries.hpp>
#include <coppice/exec/timed_scheduler.hpp>
#include <coppice/io/context.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/task/internal/frame_pool.hpp>
#include <coppice/task/task.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace coppice::http {

using namespace internal;

// What a handler or a producer, and everything that it awaits, finds in its environment: when to
// stop, and timers for time limits, wherever it runs. Work on a pool forks there.
struct waiting_env {
    inplace_stop_token stop;
    io::context& loop;
    const fork_team* team = nullptr;
};

// The same environment for work that belongs to the loop: it returns to the loop after each await,
// and has a deadline.
struct loop_env : waiting_env {
    execution::instant deadline = execution::instant::never();
};

// The first parameter of the coroutine is the environment.
template <class T, class Env = waiting_env>
class [[nodiscard]] until_stopped {
public:
    class promise_type {
    public:
        template <class... Rest>
        explicit promise_type(const Env& env, const Rest&...) noexcept : env_(env) {}
        static void* operator new(std::size_t bytes) { return frame_pool::allocate(bytes); }
        static void operator delete(void* memory, std::size_t bytes) noexcept {
            frame_pool::deallocate(memory, bytes);
        }
        until_stopped get_return_object() noexcept {
            return until_stopped(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        struct final_awaiter {
            constexpr final_awaiter() noexcept = default;
            bool await_ready() const noexcept { return false; }
            std::coroutine_handle<> await_suspend(
                std::coroutine_handle<promise_type> self) const noexcept {
                return self.promise().continuation_;
            }
            void await_resume() const noexcept {}
        };
        final_awaiter final_suspend() const noexcept { return {}; }
        void return_value(T value) { result_.emplace(std::move(value)); }
        void unhandled_exception() noexcept { error_ = std::current_exception(); }
        template <class Awaited>
        decltype(auto) await_transform(Awaited&& awaited) {
            return execution::as_awaitable(static_cast<Awaited&&>(awaited), *this);
        }
        // Called when the awaited operation was stopped: resumes the awaiter, which finds no
        // result.
        std::coroutine_handle<> unhandled_stopped() noexcept { return continuation_; }
        auto get_env() const noexcept {
            auto waiting = execution::env(
                execution::prop(get_stop_token, env_.stop),
                execution::prop(execution::get_timed_scheduler, env_.loop.get_scheduler()),
                execution::prop(execution::internal::get_fork_team_t(), env_.team));
            if constexpr (std::same_as<Env, loop_env>) {
                return execution::env(
                    execution::prop(execution::get_scheduler, env_.loop.get_scheduler()),
                    execution::prop(execution::get_deadline, env_.deadline), waiting);
            } else {
                return waiting;
            }
        }

    private:
        friend until_stopped;
        const Env env_;
        std::coroutine_handle<> continuation_;
        std::optional<T> result_;
        std::exception_ptr error_;
    };

    until_stopped(until_stopped&&) = delete;
    ~until_stopped() { coroutine_.destroy(); }

    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> continuation) const noexcept {
        coroutine_.promise().continuation_ = continuation;
        return coroutine_;
    }
    std::optional<T> await_resume() const {
        if (coroutine_.promise().error_) std::rethrow_exception(coroutine_.promise().error_);
        return std::move(coroutine_.promise().result_);
    }

private:
    explicit until_stopped(std::coroutine_handle<promise_type> coroutine) noexcept
        : coroutine_(coroutine) {}
    std::coroutine_handle<promise_type> coroutine_;
};

// Gives the result of a task, or nothing if it was stopped. Errors: what the task throws. The task
// is passed by reference: if it were passed by value and there were no memory for the frame, clang
// 19 would destroy a task of a number twice, since it passes such a task in a register
// (task_in_memory).
template <class T>
until_stopped<T> result_of(waiting_env, task<T>&& awaited) {
    co_return co_await std::move(awaited);
}
// Gives the result of a task that begins on the loop, in the same way.
template <class T>
until_stopped<T, loop_env> result_on_loop(loop_env, task<T>&& awaited) {
    co_return co_await std::move(awaited);
}
// Gives true if the task has ended, nothing if it was stopped.
inline until_stopped<bool> end_of(waiting_env, task<>&& awaited) {
    co_await std::move(awaited);
    co_return true;
}

}  // namespace coppice::http
