// connect makes an operation from a sender and a receiver; start begins it.
#pragma once
// Operations are immovable and live where the caller puts them. The caller starts an operation once
// and keeps it until it has completed. An operation may be destroyed inside its own completion, so
// code that completes an operation touches nothing of it afterwards.
// Source: [exec.opstate], [exec.connect].

#include <coppice/exec/internal/connect_awaitable.hpp>
#include <coppice/exec/sender.hpp>

namespace coppice::execution {

// The type that an operation state names as operation_state_concept.
// Source: [exec.opstate.general].
struct operation_state_tag {};

// The type of start. Source: [exec.opstate.start].
struct start_t {
    // Begins an operation. It completes its receiver once: inside this call, or later on any
    // thread. The completion may destroy the operation.
    template <class Op>
        requires requires(Op& op) { op.start(); }
    constexpr void operator()(Op& op) const noexcept {
        static_assert(noexcept(op.start()), "an operation's start must be noexcept");
        static_assert(std::is_void_v<decltype(op.start())>, "an operation's start returns void");
        op.start();
    }
    template <class Op>
    void operator()(const Op&& op) const = delete;
};
inline constexpr start_t start{};

// A type whose objects start() can begin.
template <class Op>
concept operation_state =
    std::derived_from<typename Op::operation_state_concept, operation_state_tag> &&
    requires(Op& op) { start(op); };

namespace internal {

// The operation type of a pipeline whose error has been reported.
struct no_operation {
    using operation_state_concept = operation_state_tag;
    void start() & noexcept {}
};

template <class Sndr, class Rcvr>
concept has_connect_member = requires(Sndr&& sndr, Rcvr&& rcvr) {
    static_cast<Sndr&&>(sndr).connect(static_cast<Rcvr&&>(rcvr));
};

// A concept, so that evaluation stops at the first true part: how a sender with a connect member
// would be awaited may itself depend on how it connects.
template <class Sndr, class Rcvr>
concept connects = is_pipeline_error<signatures_of<Sndr, env_of_t<Rcvr>>> ||
                   has_connect_member<transformed_t<Sndr, env_of_t<Rcvr>>, Rcvr> ||
                   connects_by_awaiting<transformed_t<Sndr, env_of_t<Rcvr>>, Rcvr>;

}  // namespace internal

// The type of connect. Source: [exec.connect].
struct connect_t {
    // Returns the operation of `sndr` that completes `rcvr`; starts nothing. The sender is first
    // transformed by the domains of its completion and of its start. An awaitable is connected as a
    // coroutine that awaits it. A pipeline that does not type-check is reported here.
    // Errors: what connecting the sender throws; with an awaitable, also what allocation throws.
    // Cost: no allocation, except for the coroutine of an awaitable.
    template <class Sndr, class Rcvr>
        requires internal::connects<Sndr, Rcvr>
    constexpr auto operator()(Sndr&& sndr, Rcvr&& rcvr) const noexcept(is_nothrow<Sndr, Rcvr>()) {
        using Env = env_of_t<Rcvr>;
        using Sigs = signatures_of<Sndr, Env>;
        if constexpr (!is_completion_signatures<Sigs>) {
            static_assert(internal::diagnosis<Sigs>::reported);
            return internal::no_operation();
        } else {
            static_assert(receiver<Rcvr>, "connect: the second argument is not a receiver");
            static_assert(receiver_of<Rcvr, Sigs>,
                          "connect: the receiver lacks a completion function that the sender's "
                          "signatures call for");
            if constexpr (needs_transform<Sndr, Env>) {
                return attach(execution::transform_sender(static_cast<Sndr&&>(sndr),
                                                          execution::get_env(rcvr)),
                              static_cast<Rcvr&&>(rcvr));
            } else {
                return attach(static_cast<Sndr&&>(sndr), static_cast<Rcvr&&>(rcvr));
            }
        }
    }

private:
    template <class Sndr, class Rcvr>
    static constexpr auto attach(Sndr&& sndr, Rcvr&& rcvr) {
        if constexpr (internal::has_connect_member<Sndr, Rcvr>) {
            using Op = decltype(static_cast<Sndr&&>(sndr).connect(static_cast<Rcvr&&>(rcvr)));
            static_assert(operation_state<Op>, "connect must return an operation state");
            return static_cast<Sndr&&>(sndr).connect(static_cast<Rcvr&&>(rcvr));
        } else {
            return internal::connect_awaitable<std::decay_t<Sndr>, std::decay_t<Rcvr>>(
                static_cast<Sndr&&>(sndr), static_cast<Rcvr&&>(rcvr));
        }
    }
    template <class Sndr, class Rcvr>
    static consteval bool is_nothrow() noexcept {
        using Env = env_of_t<Rcvr>;
        if constexpr (!is_completion_signatures<signatures_of<Sndr, Env>>) {
            return true;
        } else if constexpr (internal::has_connect_member<transformed_t<Sndr, Env>, Rcvr>) {
            return noexcept(std::declval<transformed_t<Sndr, Env>>().connect(std::declval<Rcvr>()));
        } else {
            return false;
        }
    }
};
inline constexpr connect_t connect{};

// The operation state that connecting the two returns. Source: [exec.connect].
template <class Sndr, class Rcvr>
using connect_result_t = decltype(connect(std::declval<Sndr>(), std::declval<Rcvr>()));

// True if a Sndr can be connected to this receiver. Has this name in P2300R10; the draft has it for
// exposition only. Source: [exec.snd.concepts].
template <class Sndr, class Rcvr>
concept sender_to = sender_in<Sndr, env_of_t<Rcvr>> &&
                    receiver_of<Rcvr, completion_signatures_of_t<Sndr, env_of_t<Rcvr>>> &&
                    requires(Sndr&& sndr, Rcvr&& rcvr) {
                        connect(static_cast<Sndr&&>(sndr), static_cast<Rcvr&&>(rcvr));
                    };

// A receiver for compile-time questions only: may connecting in this environment throw?
template <class Env>
class probe_receiver {
public:
    using receiver_concept = receiver_tag;
    template <class... Args>
    void set_value(Args&&...) && noexcept {}
    template <class Error>
    void set_error(Error&&) && noexcept {}
    void set_stopped() && noexcept {}
    Env get_env() const noexcept { std::terminate(); }  // never called
};

// True if connecting the two throws nothing.
template <class Sndr, class Rcvr>
inline constexpr bool nothrow_connectable =
    noexcept(connect(std::declval<Sndr>(), std::declval<Rcvr>()));

}  // namespace coppice::execution
