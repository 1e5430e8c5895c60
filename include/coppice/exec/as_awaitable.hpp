// as_awaitable, with_awaitable_senders: awaiting a sender in a coroutine of any type.
#pragma once
// A sender that completes inside start() does not resume the coroutine from there. await_suspend
// returns false and the coroutine continues. A loop that awaits a million such senders therefore
// uses constant stack with every compiler and optimization level. Nothing is allocated: the
// operation lives in the coroutine's frame. Source: [exec.as.awaitable],
// [exec.with.awaitable.senders].

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/as_exception.hpp>
#include <coppice/exec/internal/starting.hpp>
#include <coppice/exec/value_types.hpp>

namespace coppice::execution {

// Holds the result of an awaited sender until the coroutine reads it.
template <class Value>
class awaited_result : immovable {
public:
    awaited_result() noexcept {}
    ~awaited_result() {
        if (outcome_ == outcome::value) value_.destroy();
    }
    template <class... Args>
    void set_value(Args&&... args) noexcept {
        if constexpr (std::is_nothrow_constructible_v<Value, Args...>) {
            value_.construct(static_cast<Args&&>(args)...);
            outcome_ = outcome::value;
        } else {
            try {
                value_.construct(static_cast<Args&&>(args)...);
                outcome_ = outcome::value;
            } catch (...) {
                error_ = std::current_exception();
            }
        }
    }
    template <class Error>
    void set_error(Error&& error) noexcept {
        error_ = execution::internal::as_exception(static_cast<Error&&>(error));
    }
    void set_stopped() noexcept { outcome_ = outcome::stopped; }

    bool stopped() const noexcept { return outcome_ == outcome::stopped; }
    Value&& get() {
        if (outcome_ != outcome::value) std::rethrow_exception(std::move(error_));
        return static_cast<Value&&>(value_.get());
    }

private:
    enum class outcome : unsigned char { error, value, stopped };

    manual_lifetime<Value> value_;
    std::exception_ptr error_;
    outcome outcome_ = outcome::error;
};

namespace internal {

struct no_value {};  // the result of a sender that sends nothing

}  // namespace internal

// Resumes the coroutine from a completion. Promise::resume_from_outside, if it exists, tells the
// promise that this resumption is no symmetric transfer (task/internal/transfer.hpp).
template <class Promise>
void resume_awaiting(std::coroutine_handle<> coroutine) {
    if constexpr (requires { Promise::resume_from_outside(coroutine); }) {
        Promise::resume_from_outside(coroutine);
    } else {
        coroutine.resume();
    }
}

template <class Sndr, class Promise>
class sender_awaitable {
    using value_type = single_sender_value_type<Sndr, env_of_t<Promise>>;
    using result_type =
        std::conditional_t<std::is_void_v<value_type>, internal::no_value, value_type>;

public:
    class awaitable_receiver {
    public:
        using receiver_concept = receiver_tag;
        explicit awaitable_receiver(sender_awaitable& awaitable) noexcept
            : awaitable_(&awaitable) {}

        template <class... Args>
            requires std::constructible_from<result_type, Args...>
        void set_value(Args&&... args) && noexcept {
            awaitable_->result_.set_value(static_cast<Args&&>(args)...);
            awaitable_->completed();
        }
        template <class Error>
        void set_error(Error&& error) && noexcept {
            awaitable_->result_.set_error(static_cast<Error&&>(error));
            awaitable_->completed();
        }
        void set_stopped() && noexcept {
            awaitable_->result_.set_stopped();
            awaitable_->completed();
        }
        auto get_env() const noexcept -> fwd_env_t<env_of_t<const Promise&>> {
            return execution::forward_env(
                execution::get_env(static_cast<const Promise&>(*awaitable_->promise_)));
        }

    private:
        sender_awaitable* awaitable_;
    };

    sender_awaitable(Sndr&& sndr,
                     Promise& promise) noexcept(nothrow_connectable<Sndr, awaitable_receiver>)
        : promise_(&promise),
          operation_(execution::connect(static_cast<Sndr&&>(sndr), awaitable_receiver(*this))) {}
    sender_awaitable(sender_awaitable&&) = delete;

    static constexpr bool await_ready() noexcept { return false; }
    // Returns false if the operation has completed already and the coroutine continues at once.
    bool await_suspend(std::coroutine_handle<Promise>) noexcept {
        {
            internal::starting start_call(this, mark_);
            execution::start(operation_);
            if (!start_call.has_completed()) return true;  // *this may be gone
        }
        if (!result_.stopped()) return false;
        resume_stopped();
        return true;
    }
    value_type await_resume() {
        if constexpr (std::is_void_v<value_type>) {
            result_.get();
        } else {
            return static_cast<value_type&&>(result_.get());
        }
    }

private:
    // Called by the receiver. The resumed coroutine may destroy *this.
    void completed() noexcept {
        if (internal::starting::takes_completion_of(this, mark_)) return;
        if (result_.stopped()) {
            resume_stopped();
        } else {
            execution::resume_awaiting<Promise>(
                std::coroutine_handle<Promise>::from_promise(*promise_));
        }
    }
    void resume_stopped() noexcept {
        execution::resume_awaiting<Promise>(promise_->unhandled_stopped());
    }

    Promise* promise_;
    const internal::starting* mark_;  // set before the start; see starting.hpp
    awaited_result<result_type> result_;
    connect_result_t<Sndr, awaitable_receiver> operation_;
};

template <class Sndr, class Promise>
concept awaitable_sender =
    single_sender<Sndr, env_of_t<Promise>> &&
    sender_to<Sndr, typename sender_awaitable<Sndr, Promise>::awaitable_receiver> &&
    requires(Promise& promise) {
        { promise.unhandled_stopped() } -> std::convertible_to<std::coroutine_handle<>>;
    };

// Applies the adaptor that a sender asks for when it is awaited. Source: [exec.as.awaitable] p8.
template <class Sndr>
constexpr decltype(auto) adapt_for_await(Sndr&& sndr) {
    if constexpr (requires {
                      get_await_completion_adaptor(get_env(sndr))(static_cast<Sndr&&>(sndr));
                  }) {
        return get_await_completion_adaptor(get_env(sndr))(static_cast<Sndr&&>(sndr));
    } else {
        return static_cast<Sndr>(static_cast<Sndr&&>(sndr));
    }
}
template <class Sndr, class Promise>
using awaited_sender_t =
    decltype(execution::adapt_for_await(std::declval<transformed_t<Sndr, env_of_t<Promise>>>()));

template <class Sndr, class Promise>
concept can_be_awaited = sender_in<Sndr, env_of_t<Promise>> &&
                         requires { typename single_sender_value_type<Sndr, env_of_t<Promise>>; };

// Returns an awaitable for expr in a coroutine with this promise. Source: [exec.as.awaitable] p7.
struct as_awaitable_t {
    template <class T, class Promise>
    [[gnu::always_inline]] decltype(auto) operator()(T&& expr, Promise& promise) const {
        if constexpr (requires { static_cast<T&&>(expr).as_awaitable(promise); }) {
            using Result = decltype(static_cast<T&&>(expr).as_awaitable(promise));
            // is_awaitable would be wrong here: it asks await_transform, which calls this function.
            static_assert(is_awaiter<decltype(awaiter_of(std::declval<Result>())), Promise>,
                          "as_awaitable must return an awaitable");
            return static_cast<T&&>(expr).as_awaitable(promise);
        } else if constexpr (adapts<T, Promise>()) {
            return adapted(static_cast<T&&>(expr), promise).as_awaitable(promise);
        } else if constexpr (is_awaiter<decltype(awaiter_of(static_cast<T&&>(expr))), Promise>) {
            return static_cast<T&&>(expr);
        } else if constexpr (can_be_awaited<T, Promise>) {
            return sender_awaitable<awaited_sender_t<T, Promise>, Promise>(
                adapted(static_cast<T&&>(expr), promise), promise);
        } else {
            if constexpr (requires {
                              typename T::sender_concept;
                              requires is_pipeline_error<signatures_of<T, env_of_t<Promise>>>;
                          }) {
                static_assert(internal::diagnosis<signatures_of<T, env_of_t<Promise>>>::reported);
            }
            return static_cast<T&&>(expr);
        }
    }

private:
    template <class T, class Promise>
    static consteval bool adapts() noexcept {
        if constexpr (can_be_awaited<T, Promise>) {
            return requires(awaited_sender_t<T, Promise> (*make)() noexcept, Promise& promise) {
                make().as_awaitable(promise);
            };
        } else {
            return false;
        }
    }
    template <class T, class Promise>
    static constexpr decltype(auto) adapted(T&& expr, Promise& promise) {
        if constexpr (needs_transform<T, env_of_t<Promise>>) {
            return execution::adapt_for_await(
                execution::transform_sender(static_cast<T&&>(expr), execution::get_env(promise)));
        } else {
            return execution::adapt_for_await(static_cast<T&&>(expr));
        }
    }
};
inline constexpr as_awaitable_t as_awaitable{};

// True if as_awaitable turns T into an awaiter for a coroutine with this promise.
template <class AsAwaitable, class T, class Promise>
concept awaited_by = requires(T&& value, Promise& promise) {
    {
        execution::awaiter_of(AsAwaitable()(static_cast<T&&>(value), promise))
    } -> is_awaiter<Promise>;
};

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
        return await_of_several_results<T>();
    } else {
        return await_of_an_lvalue<T>();
    }
}

// Awaits an awaiter through a reference. Needed because g++ 12 copies an awaiter given as an
// xvalue.
template <class Awaiter>
class awaiter_reference {
public:
    explicit awaiter_reference(Awaiter& awaiter) noexcept : awaiter_(awaiter) {}
    decltype(auto) await_ready() noexcept(noexcept(std::declval<Awaiter&>().await_ready())) {
        return awaiter_.await_ready();
    }
    // Result is in the signature because await_suspend's type may depend on the compiler: the two
    // then have different mangled names.
    template <class Promise, class Result = decltype(std::declval<Awaiter&>().await_suspend(
                                 std::declval<std::coroutine_handle<Promise>>()))>
    Result await_suspend(std::coroutine_handle<Promise> h) noexcept(
        noexcept(std::declval<Awaiter&>().await_suspend(h))) {
        return awaiter_.await_suspend(h);
    }
    decltype(auto) await_resume() noexcept(noexcept(std::declval<Awaiter&>().await_resume())) {
        return awaiter_.await_resume();
    }

private:
    Awaiter& awaiter_;
};

// Returns what a promise's await_transform returns for a value that as_awaitable may handle.
template <class Value, class Promise>
[[gnu::always_inline]] inline decltype(auto) awaited_as_it_is(Value&& value, Promise& promise) {
    using Result = internal::call_result_t<as_awaitable_t, Value, Promise&>;
    if constexpr (!awaited_in<Value, Promise> && refused_in<Value, Promise>) {
        return execution::refused_await_of<Value, Promise>();
    } else if constexpr (std::is_rvalue_reference_v<Result>) {
        using Awaiter = decltype(awaiter_of(as_awaitable(static_cast<Value&&>(value), promise)));
        if constexpr (std::is_rvalue_reference_v<Awaiter>) {
            return awaiter_reference<std::remove_reference_t<Awaiter>>(value);
        } else {
            return awaiter_of(as_awaitable(static_cast<Value&&>(value), promise));
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
    std::coroutine_handle<> continuation() const noexcept { return continuation_; }
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
