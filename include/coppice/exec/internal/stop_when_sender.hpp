// The sender of stop_when, and the token that is stopped when either of two tokens is.
#pragma once
// Model: tests/model/stop_when_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/adaptor.hpp>
#include <coppice/exec/internal/child_attrs.hpp>
#include <coppice/exec/internal/stop_registration.hpp>

namespace coppice::execution {
struct stop_when_t;
}

namespace coppice::execution::internal {

template <class First, class Second, class CallbackFn>
class fused_stop_callback;

// A token that is stopped when either of two tokens is. Registering with it registers with both.
template <class First, class Second>
class fused_stop_token {
public:
    template <class CallbackFn>
    using callback_type = fused_stop_callback<First, Second, CallbackFn>;

    fused_stop_token(First first, Second second) noexcept
        : first_(static_cast<First&&>(first)), second_(static_cast<Second&&>(second)) {}
    bool operator==(const fused_stop_token&) const = default;

    bool stop_requested() const noexcept {
        return first_.stop_requested() || second_.stop_requested();
    }
    bool stop_possible() const noexcept {
        return first_.stop_possible() || second_.stop_possible();
    }

private:
    template <class, class, class>
    friend class fused_stop_callback;
    First first_;
    Second second_;
};

// Runs the function at most once, for the first of the two stops. The other stop's request finds
// that it came second, and leaves without touching the function. The destructor waits for that
// other request if it is inside. So nothing of this object is in use after the destructor has
// returned, on whatever thread it runs.
template <class First, class Second, class CallbackFn>
class fused_stop_callback : immovable {
public:
    template <class Init>
        requires std::constructible_from<CallbackFn, Init>
    explicit fused_stop_callback(fused_stop_token<First, Second> token, Init&& init) noexcept(
        std::is_nothrow_constructible_v<CallbackFn, Init>)
        : callback_(static_cast<Init&&>(init)),
          first_(token.first_, fire(*this)),
          second_(token.second_, fire(*this)) {}

private:
    class fire {
    public:
        explicit fire(fused_stop_callback& self) noexcept : self_(&self) {}
        void operator()() noexcept {
            // relaxed: only decides which of two calls runs the function; what the function reads
            // was written before both registrations
            if (self_->fired_.exchange(true, relaxed) && !planted("fused.run_twice")) return;
            static_cast<CallbackFn&&>(self_->callback_)();  // may destroy *self_
        }

    private:
        fused_stop_callback* self_;
    };

    [[no_unique_address]] CallbackFn callback_;
    atomic<bool> fired_{false};
    stop_callback_for_t<First, fire> first_;
    stop_callback_for_t<Second, fire> second_;
};

// The child's token type, given the receiver's token type.
template <class Token, class Outer>
using stop_when_token_t =
    std::conditional_t<unstoppable_token<Outer>, Token, fused_stop_token<Token, Outer>>;

template <class Token, class Outer>
stop_when_token_t<Token, Outer> fuse_tokens(const Token& token, const Outer& outer) noexcept {
    if constexpr (unstoppable_token<Outer>) {
        return token;
    } else {
        return fused_stop_token<Token, Outer>(token, outer);
    }
}

template <class Token, class Env>
using stop_when_env_t = stop_token_env<stop_when_token_t<Token, stop_token_of_t<Env>>, Env>;

template <class Token, class Rcvr>
class stop_when_receiver : public passing_receiver<data_state<Token, Rcvr>, Rcvr> {
public:
    using passing_receiver<data_state<Token, Rcvr>, Rcvr>::passing_receiver;
    auto get_env() const noexcept {
        using Env = env_of_t<const Rcvr&>;
        const Rcvr& rcvr = this->state_->rcvr;
        return stop_when_env_t<Token, Env>(
            internal::fuse_tokens(this->state_->data, get_stop_token(execution::get_env(rcvr))),
            execution::get_env(rcvr));
    }
};

template <class Token>
struct stop_when_algorithm {
    using tag_type = stop_when_t;
    template <class Child, class Rcvr>
    using operation =
        adaptor_operation<Child, data_state<Token, Rcvr>, stop_when_receiver<Token, Rcvr>>;

    template <class Sndr>
    static constexpr auto attrs(const Sndr& sndr) noexcept {
        return child_attrs<decltype(sndr.child), set_value_t, set_error_t, set_stopped_t>(
            sndr.child);
    }
    template <class Child, class... Env>
    static consteval auto signatures() noexcept {
        return signatures_of<Child, stop_when_env_t<Token, Env>...>();
    }
};
template <class Token, class Child>
using stop_when_sender = adaptor_sender<stop_when_algorithm<Token>, Token, Child>;

}  // namespace coppice::execution::internal
