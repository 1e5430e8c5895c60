// sender_awaitable: the awaiter of a sender; its operation lives in the coroutine's frame.
#pragma once
// A sender that completes inside start() does not resume the coroutine from there. await_suspend
// returns false and the coroutine continues, so a loop that awaits such senders uses constant stack
// with every compiler and optimization level.

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/as_exception.hpp>
#include <coppice/exec/internal/starting.hpp>
#include <coppice/exec/value_types.hpp>

namespace coppice::execution::internal {

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
        error_ = as_exception(static_cast<Error&&>(error));
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

struct no_value {};  // the result of a sender that sends nothing

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
    using result_type = std::conditional_t<std::is_void_v<value_type>, no_value, value_type>;

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
            return internal::forward_env(
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
            starting start_call(this, mark_);
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
        if (starting::takes_completion_of(this, mark_)) return;
        if (result_.stopped()) {
            resume_stopped();
        } else {
            internal::resume_awaiting<Promise>(
                std::coroutine_handle<Promise>::from_promise(*promise_));
        }
    }
    void resume_stopped() noexcept {
        internal::resume_awaiting<Promise>(promise_->unhandled_stopped());
    }

    Promise* promise_;
    const starting* mark_;  // set before the start; see starting.hpp
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
    decltype(internal::adapt_for_await(std::declval<transformed_t<Sndr, env_of_t<Promise>>>()));

template <class Sndr, class Promise>
concept can_be_awaited = sender_in<Sndr, env_of_t<Promise>> &&
                         requires { typename single_sender_value_type<Sndr, env_of_t<Promise>>; };

}  // namespace coppice::execution::internal
