// Receivers and senders: the concepts, and how a sender's completion signatures are found.
#pragma once
// In C++20 a sender is dependent if its get_completion_signatures is not a constant expression
// without an environment. Source: [exec.recv], [exec.snd.concepts], [exec.getcomplsigs].

#include <coppice/exec/domain.hpp>
#include <coppice/exec/internal/awaitable.hpp>
#include <coppice/exec/internal/fwd_env.hpp>
#include <coppice/exec/internal/refused_await.hpp>
#include <coppice/exec/internal/signature_sets.hpp>

namespace coppice::execution {

// The types that a receiver names as receiver_concept, and a sender as sender_concept.
struct receiver_tag {};
struct sender_tag {};

// A type that receives the completion of an operation. It has an environment, and moving it does
// not throw. Source: [exec.recv.concepts].
template <class Rcvr>
concept receiver =
    std::derived_from<typename std::remove_cvref_t<Rcvr>::receiver_concept, receiver_tag> &&
    requires(const std::remove_cvref_t<Rcvr>& rcvr) {
        { get_env(rcvr) } -> internal::queryable;
    } && std::move_constructible<std::remove_cvref_t<Rcvr>> &&
    std::constructible_from<std::remove_cvref_t<Rcvr>, Rcvr> &&
    std::is_nothrow_move_constructible_v<std::remove_cvref_t<Rcvr>> &&
    (!std::is_final_v<std::remove_cvref_t<Rcvr>>);

// True if Rcvr can be completed with this signature.
template <class Signature, class Rcvr>
inline constexpr bool valid_completion_for = false;
template <class Tag, class... Args, class Rcvr>
inline constexpr bool valid_completion_for<Tag(Args...), Rcvr> =
    internal::callable<Tag, std::remove_cvref_t<Rcvr>, Args...>;

// True if Rcvr can be completed with each of the signatures.
template <class Rcvr, class Completions>
inline constexpr bool has_completions = false;
template <class Rcvr, class... Sigs>
inline constexpr bool has_completions<Rcvr, completion_signatures<Sigs...>> =
    (valid_completion_for<Sigs, Rcvr> && ...);

// A receiver that can be completed in each of these ways. Has this name in P2300R10; the draft has
// it for exposition only.
template <class Rcvr, class Completions>
concept receiver_of = receiver<Rcvr> && has_completions<Rcvr, Completions>;

// A receiver that its child can make from the child's own address, and so need not store. Ours.
template <class Rcvr, class ChildOp>
concept inlinable_receiver = receiver<Rcvr> && requires(ChildOp* child) {
    {
        std::remove_cvref_t<Rcvr>::make_receiver_for(child)
    } noexcept -> std::same_as<std::remove_cvref_t<Rcvr>>;
};

// A class that declares itself a sender. Source: [exec.snd.concepts].
template <class Sndr>
concept is_sender = std::derived_from<typename Sndr::sender_concept, sender_tag>;
// The error for a sender that is awaited directly, in a coroutine whose promise does not call
// as_awaitable. Not for senders that have an awaiter of their own. (The default argument excludes
// types that are not classes: clang looks at the parameter's type before the constraint.)
template <class Sndr, class = typename std::remove_cvref_t<Sndr>::sender_concept>
    requires is_sender<std::remove_cvref_t<Sndr>> &&
             (!requires(Sndr&& sndr) { static_cast<Sndr&&>(sndr).operator co_await(); }) &&
             (!requires(Sndr&& sndr) { static_cast<Sndr&&>(sndr).await_ready(); })
internal::await_without_as_awaitable<Sndr> operator co_await(Sndr&&) noexcept {
    return {};
}

// True for senders and for awaitables. A program may specialize it.
template <class Sndr>
inline constexpr bool enable_sender =
    is_sender<Sndr> || internal::is_awaitable<Sndr, internal::env_promise<env<>>>;

// Describes work. Connecting it to a receiver makes an operation. Source: [exec.snd.concepts].
template <class Sndr>
concept sender = enable_sender<std::remove_cvref_t<Sndr>> &&
                 requires(const std::remove_cvref_t<Sndr>& sndr) {
                     { get_env(sndr) } -> internal::queryable;
                 } && std::move_constructible<std::remove_cvref_t<Sndr>> &&
                 std::constructible_from<std::remove_cvref_t<Sndr>, Sndr>;

struct connect_t;
namespace internal {

template <class Sndr, class... Args>
concept declares_signatures = requires {
    std::remove_reference_t<Sndr>::template get_completion_signatures<Sndr, Args...>();
};
template <class Sndr, class... Args>
concept has_constant_signatures = requires {
    typename std::bool_constant<(
        std::remove_reference_t<Sndr>::template get_completion_signatures<Sndr, Args...>(), true)>;
};
template <class Sndr>
concept has_signatures_member = requires {
    requires is_completion_signatures<typename std::remove_cvref_t<Sndr>::completion_signatures>;
};

// Stands in for the signatures of a sender that does not declare them.
template <class... Env>
consteval auto unknown_signatures() noexcept {
    if constexpr (sizeof...(Env) == 0) {
        return dependent_signatures();
    } else {
        return pipeline_error<in_algorithm<connect_t>, got<>,
                              wanted<completion_signatures_in_this_environment>>();
    }
}

// Returns the signatures of New, the sender that is connected in place of the original.
template <class New, class... Env>
consteval auto find_transformed_signatures() noexcept {
    using Plain = std::remove_reference_t<New>;
    if constexpr (has_constant_signatures<New, Env...>) {
        using Sigs =
            std::remove_cvref_t<decltype(Plain::template get_completion_signatures<New, Env...>())>;
        if constexpr (is_completion_signatures<Sigs> || is_pipeline_error<Sigs> ||
                      std::is_same_v<Sigs, dependent_signatures>) {
            return Sigs();
        } else {
            return internal::unknown_signatures<Env...>();
        }
    } else if constexpr (declares_signatures<New, Env...>) {
        return internal::unknown_signatures<Env...>();
    } else if constexpr (sizeof...(Env) != 0 && has_constant_signatures<New>) {
        return decltype(Plain::template get_completion_signatures<New>())();
    } else if constexpr (has_signatures_member<New>) {
        return typename std::remove_cvref_t<New>::completion_signatures();
    } else if constexpr (is_awaitable<New, env_promise<Env>...>) {
        return completion_signatures<value_signature_t<await_result_t<New, env_promise<Env>...>>,
                                     set_error_t(std::exception_ptr), set_stopped_t()>();
    } else {
        return internal::unknown_signatures<Env...>();
    }
}

// True if no environment can repair the sender's error. Such a sender is reported untransformed.
template <class Sndr>
inline constexpr bool is_beyond_repair =
    is_pipeline_error<decltype(internal::find_transformed_signatures<Sndr>())>;
template <class Sndr>
    requires(!has_tag<Sndr>)
inline constexpr bool is_beyond_repair<Sndr> = false;

template <class Sndr, class... Env>
consteval auto find_signatures() noexcept {
    if constexpr (sizeof...(Env) == 0 || is_beyond_repair<Sndr>) {
        return internal::find_transformed_signatures<Sndr>();
    } else {
        return internal::find_transformed_signatures<transformed_t<Sndr, Env...>, Env...>();
    }
}

}  // namespace internal

// A sender's signatures; or what stands in for them, dependent_signatures or a pipeline_error.
template <class Sndr, class... Env>
using signatures_of = decltype(internal::find_signatures<Sndr, Env...>());

// Returns how a sender can complete, in one environment or in all. Source: [exec.getcomplsigs].
template <class Sndr, class... Env>
    requires(sizeof...(Env) <= 1) && valid_completion_signatures<signatures_of<Sndr, Env...>>
consteval auto get_completion_signatures() noexcept -> signatures_of<Sndr, Env...> {
    return {};
}

// A sender whose completion signatures are known in this environment, or in all.
template <class Sndr, class... Env>
concept sender_in = sender<Sndr> && (sizeof...(Env) <= 1) && (internal::queryable<Env> && ...) &&
                    valid_completion_signatures<signatures_of<Sndr, Env...>>;
// A sender whose completion signatures depend on the environment.
template <class Sndr>
concept dependent_sender =
    sender<Sndr> && std::same_as<signatures_of<Sndr>, internal::dependent_signatures>;

// The completion signatures of a sender in this environment, or in all.
template <class Sndr, class... Env>
    requires sender_in<Sndr, Env...>
using completion_signatures_of_t = signatures_of<Sndr, Env...>;

// True if the sender may complete with set_stopped.
template <class Sndr, class Env = env<>>
    requires sender_in<Sndr, Env>
inline constexpr bool sends_stopped =
    completion_signatures_of_t<Sndr, Env>::count_of(set_stopped) != 0;

// Reports a pipeline error that no environment can repair, when the pipeline is built. Adaptors ask
// for pipeline_check<result>::done.
template <class Sndr, class Sigs = signatures_of<Sndr>>
struct pipeline_check {
    static constexpr bool done = true;
};
template <class Sndr, class Sigs>
    requires internal::is_pipeline_error<Sigs>
struct pipeline_check<Sndr, Sigs> : internal::diagnosis<Sigs> {
    static constexpr bool done = true;
};

}  // namespace coppice::execution
