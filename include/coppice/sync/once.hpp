// async_once: a value that is made by the first task to need it, while the others wait.
#pragma once

#include <coppice/sync/internal/once_operation.hpp>
#include <coppice/token/transform.hpp>

#include <type_traits>
#include <utility>

namespace coppice {

// Makes one T, when a task first asks for it, however many tasks ask meanwhile.
//
//   async_once<connection> shared;
//   connection& c = co_await shared.get([&] { return connect_to(address); });
//
// The first get() calls its function, and awaits the task that the function returns; the others
// wait. If the function throws, all waiters get the same exception, and the next get() tries again.
// If the get() that runs the function is stopped, the oldest waiter takes over with its own
// function. A stop or a deadline that ends a waiting get() has no effect on the others.
//
// Threads: any; the function runs on the scheduler of the task that calls get(). Blocks: never,
// except for the few instructions that another thread needs to change the queue. Cost: when the
// value is there, one load and a task's frame; no allocation in steady state. Lifetime: outlives
// its operations and the references. Misuse: a function that calls get() on the same object waits
// forever; destroying it while an operation waits stops the process. Source: std::call_once.
template <class T>
class async_once : immovable {
public:
    async_once() noexcept = default;
    ~async_once() {
        if (state_.is_done()) state_.value.destroy();
    }

    // Result: T&, the value that `make` or another caller's function has made. `make` returns a T
    // or a task<T>; it is called at most once. With use_await, this is a task. Errors: the
    // exception of the function that ran. Other tokens are given the code of a std::system_error,
    // not_enough_memory for std::bad_alloc, and state_not_recoverable for any other exception; the
    // reference that goes with an error must not be used.
    template <class F, class Token = use_await_t>
    [[nodiscard]] auto get(F make, Token&& token = Token()) -> decltype(auto) {
        if constexpr (std::is_same_v<std::remove_cvref_t<Token>, use_await_t>) {
            return internal::get_once<execution::env<>>(state_, std::move(make));
        } else {
            return completion_token_transform<void(std::error_code, T&)>(
                static_cast<Token&&>(token),
                internal::once_initiation<T, F>(state_, std::move(make)));
        }
    }
    // Returns the value, or nullptr if there is none yet. Never waits.
    T* try_get() noexcept { return state_.is_done() ? &state_.value.get() : nullptr; }

private:
    internal::once_state<T> state_;
};

}  // namespace coppice
