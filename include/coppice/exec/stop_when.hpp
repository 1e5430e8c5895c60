// stop_when: a sender that is stopped through a given token as well as the receiver's.
#pragma once
// Source: [exec.stop.when], which is for exposition only; counting_scope, spawn_future, and others
// need it. Model: tests/model/stop_when_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/internal/stop_registration.hpp>
#include <coppice/exec/write_env.hpp>

namespace coppice::execution {

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
            if (self_->fired_.exchange(true, internal::relaxed) &&
                !internal::planted("fused.run_twice"))
                return;
            static_cast<CallbackFn&&>(self_->callback_)();  // may destroy *self_
        }

    private:
        fused_stop_callback* self_;
    };

    [[no_unique_address]] CallbackFn callback_;
    internal::atomic<bool> fired_{false};
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
            fuse_tokens(this->state_->data, get_stop_token(execution::get_env(rcvr))),
            execution::get_env(rcvr));
    }
};

template <class Child, class Token, class Rcvr>
using stop_when_operation =
    adaptor_operation<Child, data_state<Token, Rcvr>, stop_when_receiver<Token, Rcvr>>;

struct stop_when_t {
    template <sender Sndr, stoppable_token Token>
    constexpr auto operator()(Sndr&& sndr, Token token) const;
};

// Decomposes as [tag, data, child]: data is the token.
template <class Token, class Child>
struct stop_when_sender {
    using sender_concept = sender_tag;
    using tag_type = stop_when_t;
    using decomposable = void;

    Token data;
    [[no_unique_address]] Child child;

    template <class Init>
    constexpr stop_when_sender(Token token,
                               Init&& init) noexcept(std::is_nothrow_constructible_v<Child, Init>)
        : data(static_cast<Token&&>(token)), child(static_cast<Init&&>(init)) {}

    constexpr auto get_env() const noexcept {
        return child_attrs<Child, set_value_t, set_error_t, set_stopped_t>(child);
    }
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return signatures_of<internal::like_t<Self, Child>, stop_when_env_t<Token, Env>...>();
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && noexcept(
        std::is_nothrow_constructible_v<stop_when_operation<Child, Token, Rcvr>, Child, Token,
                                        Rcvr>) -> stop_when_operation<Child, Token, Rcvr> {
        return {static_cast<Child&&>(child), static_cast<Token&&>(data), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
        requires std::copy_constructible<Child>
    auto connect(Rcvr rcvr) const& noexcept(
        std::is_nothrow_constructible_v<stop_when_operation<const Child&, Token, Rcvr>,
                                        const Child&, const Token&, Rcvr>)
        -> stop_when_operation<const Child&, Token, Rcvr> {
        return {child, data, static_cast<Rcvr&&>(rcvr)};
    }
};

// Also stops sndr when `token` is stopped. A token that cannot be stopped changes nothing.
template <sender Sndr, stoppable_token Token>
constexpr auto stop_when_t::operator()(Sndr&& sndr, Token token) const {
    if constexpr (unstoppable_token<Token>) {
        return std::decay_t<Sndr>(static_cast<Sndr&&>(sndr));
    } else {
        return stop_when_sender<Token, std::decay_t<Sndr>>(static_cast<Token&&>(token),
                                                           static_cast<Sndr&&>(sndr));
    }
}
inline constexpr stop_when_t stop_when{};

}  // namespace coppice::execution
