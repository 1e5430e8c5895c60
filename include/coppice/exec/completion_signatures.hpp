// The three completions, and completion signatures: how a sender may complete, as a type.
#pragma once
// An operation completes once: set_value with its values, set_error with an error, or set_stopped.
// A sender lists its completions: completion_signatures<set_value_t(int), set_stopped_t()>.
// Source: [exec.cmplsig].

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/exec/internal/gathered.hpp>
#include <coppice/exec/internal/meta.hpp>

#include <exception>

namespace coppice::execution {

// The type of set_value. Source: [exec.set.value].
struct set_value_t {
    // Completes the receiver's operation with values. The receiver may destroy the operation.
    template <class Rcvr, class... Vs>
        requires(!std::is_lvalue_reference_v<Rcvr> && !std::is_const_v<Rcvr>) &&
                requires(Rcvr&& rcvr, Vs&&... vs) {
                    static_cast<Rcvr&&>(rcvr).set_value(static_cast<Vs&&>(vs)...);
                }
    constexpr void operator()(Rcvr&& rcvr, Vs&&... vs) const noexcept {
        using result = decltype(static_cast<Rcvr&&>(rcvr).set_value(static_cast<Vs&&>(vs)...));
        static_assert(noexcept(static_cast<Rcvr&&>(rcvr).set_value(static_cast<Vs&&>(vs)...)),
                      "a receiver's set_value must be noexcept");
        static_assert(std::is_void_v<result>, "a receiver's set_value must return void");
        static_cast<Rcvr&&>(rcvr).set_value(static_cast<Vs&&>(vs)...);
    }
};
// The type of set_error. Source: [exec.set.error].
struct set_error_t {
    // Completes the receiver's operation with an error. The receiver may destroy the operation.
    template <class Rcvr, class Error>
        requires(!std::is_lvalue_reference_v<Rcvr> && !std::is_const_v<Rcvr>) &&
                requires(Rcvr&& rcvr, Error&& error) {
                    static_cast<Rcvr&&>(rcvr).set_error(static_cast<Error&&>(error));
                }
    constexpr void operator()(Rcvr&& rcvr, Error&& error) const noexcept {
        using result = decltype(static_cast<Rcvr&&>(rcvr).set_error(static_cast<Error&&>(error)));
        static_assert(noexcept(static_cast<Rcvr&&>(rcvr).set_error(static_cast<Error&&>(error))),
                      "a receiver's set_error must be noexcept");
        static_assert(std::is_void_v<result>, "a receiver's set_error must return void");
        static_cast<Rcvr&&>(rcvr).set_error(static_cast<Error&&>(error));
    }
};
// The type of set_stopped. Source: [exec.set.stopped].
struct set_stopped_t {
    // Completes the receiver's operation as stopped. The receiver may destroy the operation.
    template <class Rcvr>
        requires(!std::is_lvalue_reference_v<Rcvr> && !std::is_const_v<Rcvr>) &&
                requires(Rcvr&& rcvr) { static_cast<Rcvr&&>(rcvr).set_stopped(); }
    constexpr void operator()(Rcvr&& rcvr) const noexcept {
        static_assert(noexcept(static_cast<Rcvr&&>(rcvr).set_stopped()),
                      "a receiver's set_stopped must be noexcept");
        static_assert(std::is_void_v<decltype(static_cast<Rcvr&&>(rcvr).set_stopped())>,
                      "a receiver's set_stopped must return void");
        static_cast<Rcvr&&>(rcvr).set_stopped();
    }
};
inline constexpr set_value_t set_value{};
inline constexpr set_error_t set_error{};
inline constexpr set_stopped_t set_stopped{};

namespace internal {

template <class Fn>
inline constexpr bool is_completion_signature = false;
template <class... Vs>
inline constexpr bool is_completion_signature<set_value_t(Vs...)> = true;
template <class Error>
inline constexpr bool is_completion_signature<set_error_t(Error)> = true;
template <>
inline constexpr bool is_completion_signature<set_stopped_t()> = true;

}  // namespace internal

// One way to complete: set_value_t(Vs...), set_error_t(Error), or set_stopped_t().
template <class Fn>
concept completion_signature = internal::is_completion_signature<Fn>;

// True if the signature Fn has this tag.
template <class Tag, class Fn>
inline constexpr bool signature_has_tag = false;
template <class Tag, class... Args>
inline constexpr bool signature_has_tag<Tag, Tag(Args...)> = true;

// The ways in which a sender completes.
template <completion_signature... Fns>
struct completion_signatures {
    // Returns the number of signatures with a tag: count_of(set_value).
    template <class Tag>
    static constexpr std::size_t count_of(Tag) noexcept {
        return (std::size_t{0} + ... + (signature_has_tag<Tag, Fns> ? 1 : 0));
    }
    // Calls fn with a null pointer to each signature.
    template <class Fn>
    static constexpr void for_each(Fn&& fn) {
        (fn(static_cast<Fns*>(nullptr)), ...);
    }
};

// True if T is a completion_signatures<...>.
template <class T>
inline constexpr bool is_completion_signatures = false;
template <class... Fns>
inline constexpr bool is_completion_signatures<completion_signatures<Fns...>> = true;
// is_completion_signatures as a concept.
template <class Sigs>
concept valid_completion_signatures = is_completion_signatures<Sigs>;

// In the draft, thrown by a sender that needs an environment to know its signatures.
struct dependent_sender_error : std::exception {};

// Variant<Tuple<Args...>...> over the signatures with Tag.
template <class Tag, valid_completion_signatures Completions, template <class...> class Tuple,
          template <class...> class Variant>
using gather_signatures = typename internal::gathered<Tag, Completions, Tuple, Variant>::type;

}  // namespace coppice::execution
