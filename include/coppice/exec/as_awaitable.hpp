// as_awaitable, with_awaitable_senders: awaiting a sender in a coroutine of any type.
#pragma once
// A sender that completes inside start() does not resume the coroutine from there. await_suspend
// returns false and the coroutine continues. A loop that awaits a million such senders therefore
// uses constant stack with every compiler and optimization level. Nothing is allocated: the
// operation lives in the coroutine's frame. Source: [exec.as.awaitable],
// [exec.with.awaitable.senders].

#include <coppice/exec/internal/awaiter_reference.hpp>
#include <coppice/exec/internal/refused_await.hpp>
#include <coppice/exec/internal/sender_awaitable.hpp>

namespace coppice::execution {

// Returns an awaitable for expr in a coroutine with this promise. Source: [exec.as.awaitable] p7.
struct as_awaitable_t {
    template <class T, class Promise>
    [[gnu::always_inline]] decltype(auto) operator()(T&& expr, Promise& promise) const {
        if constexpr (requires { static_cast<T&&>(expr).as_awaitable(promise); }) {
            using Result = decltype(static_cast<T&&>(expr).as_awaitable(promise));
            // is_awaitable would be wrong here: it asks await_transform, which calls this function.
            static_assert(internal::has_awaiter<Result, Promise>,
                          "as_awaitable must return an awaitable");
            return static_cast<T&&>(expr).as_awaitable(promise);
        } else if constexpr (adapts<T, Promise>()) {
            return adapted(static_cast<T&&>(expr), promise).as_awaitable(promise);
        } else if constexpr (internal::has_awaiter<T, Promise>) {
            return static_cast<T&&>(expr);
        } else if constexpr (internal::can_be_awaited<T, Promise>) {
            return internal::sender_awaitable<internal::awaited_sender_t<T, Promise>, Promise>(
                adapted(static_cast<T&&>(expr), promise), promise);
        } else {
            if constexpr (requires {
                              typename T::sender_concept;
                              requires internal::is_pipeline_error<
                                  signatures_of<T, env_of_t<Promise>>>;
                          }) {
                static_assert(internal::diagnosis<signatures_of<T, env_of_t<Promise>>>::reported);
            }
            return static_cast<T&&>(expr);
        }
    }

private:
    template <class T, class Promise>
    static consteval bool adapts() noexcept {
        if constexpr (internal::can_be_awaited<T, Promise>) {
            return requires(internal::awaited_sender_t<T, Promise> (*make)() noexcept,
                            Promise& promise) { make().as_awaitable(promise); };
        } else {
            return false;
        }
    }
    template <class T, class Promise>
    static constexpr decltype(auto) adapted(T&& expr, Promise& promise) {
        if constexpr (needs_transform<T, env_of_t<Promise>>) {
            return internal::adapt_for_await(
                execution::transform_sender(static_cast<T&&>(expr), execution::get_env(promise)));
        } else {
            return internal::adapt_for_await(static_cast<T&&>(expr));
        }
    }
};
inline constexpr as_awaitable_t as_awaitable{};

// True if as_awaitable turns T into an awaiter for a coroutine with this promise.
template <class AsAwaitable, class T, class Promise>
concept awaited_by = requires(T&& value, Promise& promise) {
    { AsAwaitable()(static_cast<T&&>(value), promise) } -> internal::has_awaiter<Promise>;
};

// True if T is a sender with several value completions in this environment.
template <class T, class Env>
inline constexpr bool sends_several_kinds = false;
template <class T, class Env>
    requires is_sender<std::remove_cvref_t<T>> && sender_in<T, Env>
inline constexpr bool sends_several_kinds<T, Env> = !single_sender<T, Env>;

// awaited_in: a coroutine with this promise may await T. refused_in: it may not, for a reason that
// can be told.
template <class T, class Promise>
concept awaited_in = awaited_by<as_awaitable_t, T, Promise>;
template <class T, class Promise>
concept refused_in = sends_several_kinds<T, env_of_t<Promise>> ||
                     (std::is_lvalue_reference_v<T> && is_sender<std::remove_cvref_t<T>> &&
                      awaited_in<std::remove_reference_t<T>, Promise>);
// Returns the explanation for a refused T.
template <class T, class Promise>
auto refused_await_of() noexcept {
    if constexpr (sends_several_kinds<T, env_of_t<Promise>>) {
        return internal::await_of_several_results<T>();
    } else {
        return internal::await_of_an_lvalue<T>();
    }
}

// Returns what a promise's await_transform returns for a value that as_awaitable may handle.
template <class Value, class Promise>
[[gnu::always_inline]] inline decltype(auto) awaited_as_it_is(Value&& value, Promise& promise) {
    using Result = internal::call_result_t<as_awaitable_t, Value, Promise&>;
    if constexpr (!awaited_in<Value, Promise> && refused_in<Value, Promise>) {
        return execution::refused_await_of<Value, Promise>();
    } else if constexpr (std::is_rvalue_reference_v<Result>) {
        using Awaiter =
            decltype(internal::awaiter_of(as_awaitable(static_cast<Value&&>(value), promise)));
        if constexpr (std::is_rvalue_reference_v<Awaiter>) {
            return internal::awaiter_reference<std::remove_reference_t<Awaiter>>(value);
        } else {
            return internal::awaiter_of(as_awaitable(static_cast<Value&&>(value), promise));
        }
    } else {
        return as_awaitable(static_cast<Value&&>(value), promise);
    }
}

// Base of promises whose coroutines await senders. A sender that completes with set_stopped acts
// like an uncatchable exception: unhandled_stopped() of the caller's promise takes over.
template <internal::class_type Promise>
class with_awaitable_senders {
public:
    // Sets the caller's coroutine: what is resumed at the end, and what a stop is passed to.
    template <class OtherPromise>
        requires(!std::same_as<OtherPromise, void>)
    void set_continuation(std::coroutine_handle<OtherPromise> h) noexcept {
        continuation_ = h;
        if constexpr (requires(OtherPromise& other) { other.unhandled_stopped(); }) {
            stopped_handler_ = [](void* address) noexcept -> std::coroutine_handle<> {
                return std::coroutine_handle<OtherPromise>::from_address(address)
                    .promise()
                    .unhandled_stopped();
            };
        } else {
            stopped_handler_ = &default_unhandled_stopped;
        }
    }
    // Returns the caller's coroutine; null if none was set.
    std::coroutine_handle<> continuation() const noexcept { return continuation_; }
    // Returns the coroutine to resume after a stop. Ends the process if the caller's promise has no
    // unhandled_stopped().
    std::coroutine_handle<> unhandled_stopped() noexcept {
        return stopped_handler_(continuation_.address());
    }
    template <class Value>
    decltype(auto) await_transform(Value&& value) {
        return execution::awaited_as_it_is(static_cast<Value&&>(value),
                                           static_cast<Promise&>(*this));
    }

private:
    [[noreturn]] static std::coroutine_handle<> default_unhandled_stopped(void*) noexcept {
        std::terminate();
    }

    std::coroutine_handle<> continuation_{};
    std::coroutine_handle<> (*stopped_handler_)(void*) noexcept = &default_unhandled_stopped;
};

}  // namespace coppice::execution
