// Says what can be awaited in which coroutine. Awaitables are senders, so sender.hpp needs it.
#pragma once
// Source: [exec.awaitable]. If the promise has an await_transform, it is taken into account.

#include <coppice/exec/env.hpp>

#include <coroutine>

namespace coppice::execution::internal {

template <class T>
inline constexpr bool is_coroutine_handle = false;
template <class Promise>
inline constexpr bool is_coroutine_handle<std::coroutine_handle<Promise>> = true;

template <class T>
concept await_suspend_result = std::is_void_v<T> || std::same_as<T, bool> || is_coroutine_handle<T>;

// Stands in for an awaiter where there is none, and says why. Ours.
template <class T>
concept explains_why_not = requires { typename std::remove_cvref_t<T>::is_refused_await; };

template <class Awaiter, class Promise = void>
concept is_awaiter =
    !explains_why_not<Awaiter> && requires(Awaiter& awaiter, std::coroutine_handle<Promise> h) {
        awaiter.await_ready() ? 1 : 0;
        { awaiter.await_suspend(h) } -> await_suspend_result;
        awaiter.await_resume();
    };

// Returns the awaiter that co_await would use: applies operator co_await. Second half of the
// draft's GET-AWAITER.
template <class T>
decltype(auto) awaiter_of(T&& awaitable) {
    if constexpr (requires { static_cast<T&&>(awaitable).operator co_await(); }) {
        return static_cast<T&&>(awaitable).operator co_await();
    } else if constexpr (requires { operator co_await(static_cast<T&&>(awaitable)); }) {
        return operator co_await(static_cast<T&&>(awaitable));
    } else {
        return static_cast<T&&>(awaitable);
    }
}
// Returns the awaiter in a coroutine whose promise may have an await_transform.
template <class T, class Promise>
decltype(auto) awaiter_of(T&& awaitable, Promise& promise) {
    if constexpr (requires { promise.await_transform(static_cast<T&&>(awaitable)); }) {
        return internal::awaiter_of(promise.await_transform(static_cast<T&&>(awaitable)));
    } else {
        return internal::awaiter_of(static_cast<T&&>(awaitable));
    }
}
// True if T has an awaiter for a coroutine whose promise transforms nothing.
template <class T, class Promise>
concept has_awaiter = is_awaiter<decltype(internal::awaiter_of(std::declval<T>())), Promise>;

// True if T is awaitable in a coroutine with this promise type; without one, in any coroutine.
template <class T, class... Promise>
inline constexpr bool is_awaitable_in = false;
template <class T>
    requires requires(T (*make)() noexcept) {
        { internal::awaiter_of(make()) } -> is_awaiter;
    }
inline constexpr bool is_awaitable_in<T> = true;
template <class T, class Promise>
    requires requires(T (*make)() noexcept, Promise& promise) {
        { internal::awaiter_of(make(), promise) } -> is_awaiter<Promise>;
    }
inline constexpr bool is_awaitable_in<T, Promise> = true;
template <class T, class... Promise>
concept is_awaitable = is_awaitable_in<T, Promise...>;

// The type of the await expression. The language calls await_resume on an lvalue ([expr.await]).
template <class Awaiter>
using resume_result_t = decltype(std::declval<Awaiter&>().await_resume());
template <class T, class... Promise>
using await_result_t =
    resume_result_t<decltype(internal::awaiter_of(std::declval<T>(), std::declval<Promise&>()...))>;

template <class T, class Promise>
concept has_as_awaitable = requires(T&& value, Promise& promise) {
    { static_cast<T&&>(value).as_awaitable(promise) } -> is_awaitable<Promise>;
};

// An await_transform for promises that honors as_awaitable members and passes everything else.
template <class Derived>
struct with_await_transform {
    template <class T>
    T&& await_transform(T&& value) noexcept {
        return static_cast<T&&>(value);
    }
    template <has_as_awaitable<Derived> T>
    auto await_transform(T&& value) noexcept(
        noexcept(static_cast<T&&>(value).as_awaitable(std::declval<Derived&>())))
        -> decltype(static_cast<T&&>(value).as_awaitable(std::declval<Derived&>())) {
        return static_cast<T&&>(value).as_awaitable(static_cast<Derived&>(*this));
    }
};

// Stands in for the promise of a coroutine with this environment. Never defined: for types only.
template <class Env>
struct env_promise : with_await_transform<env_promise<Env>> {
    void get_return_object() noexcept;
    std::suspend_always initial_suspend() noexcept;
    std::suspend_always final_suspend() noexcept;
    void unhandled_exception() noexcept;
    void return_void() noexcept;
    std::coroutine_handle<> unhandled_stopped() noexcept;
    const Env& get_env() const noexcept;
};

}  // namespace coppice::execution::internal
