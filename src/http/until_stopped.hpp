// until_stopped<T>: awaits what may be stopped, and gives nothing instead of passing the stop on.
#pragma once
// A stop ends a task and its awaiters without a result, up to whoever handles it: for handlers and
// producers that is this coroutine. Its frame owns theirs, and is destroyed by the awaiter.

#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/as_awaitable.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/exec/env.hpp>
#include <coppice/exec/queries.hpp>
#include <coppice/exec/timed_scheduler.hpp>
#include <coppice/io/context.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/task/frame_pool.hpp>
#include <coppice/task/task.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace coppice::http {

using namespace internal;

// What a handler or a producer, and all that it awaits, finds in its environment: when to stop, and
// timers for what is given a limited time, wherever it runs. What was given to a pool forks there.
struct waiting_env {
    inplace_stop_token stop;
    io::context& loop;
    const fork_team* team = nullptr;
};

// The same for what belongs to the loop, and is there again after whatever it awaits; and when
// nobody needs it any more.
struct loop_env : waiting_env {
    execution::instant deadline = execution::instant::never();
};

// The coroutine's first parameter is the environment.
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
        // What was awaited has stopped: goes on with the awaiter, which finds no result.
        std::coroutine_handle<> unhandled_stopped() noexcept { return continuation_; }
        auto get_env() const noexcept {
            auto waiting = execution::env(
                execution::prop(get_stop_token, env_.stop),
                execution::prop(execution::get_timed_scheduler, env_.loop.get_scheduler()),
                execution::prop(execution::get_fork_team_t(), env_.team));
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

// The result of a task, or nothing if it was stopped. Errors: what the task throws. The task is no
// value here: were there no memory for the frame, clang 19 would destroy a number's task twice,
// since it is passed in a register (task_in_memory).
template <class T>
until_stopped<T> result_of(waiting_env, task<T>&& awaited) {
    co_return co_await std::move(awaited);
}
// The same on the loop, for a task that begins there.
template <class T>
until_stopped<T, loop_env> result_on_loop(loop_env, task<T>&& awaited) {
    co_return co_await std::move(awaited);
}
// True: the task has ended; nothing: it was stopped.
inline until_stopped<bool> end_of(waiting_env, task<>&& awaited) {
    co_await std::move(awaited);
    co_return true;
}

}  // namespace coppice::http
