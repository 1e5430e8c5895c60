// What algorithms compute their completion signatures with.
#pragma once

#include <coppice/exec/completion_signatures.hpp>
#include <coppice/exec/internal/pipeline_error.hpp>

#include <exception>

namespace coppice::execution::internal {

// Stands for the signatures of a sender that needs an environment to know them.
struct dependent_signatures {};

template <class Fn>
inline constexpr bool signature_has_value = signature_has_tag<set_value_t, Fn>;

// Applies Transform to Sigs if Sigs is a set of signatures. Otherwise returns Sigs, so that the
// first error is the one reported.
template <template <class...> class Transform, class Sigs, class... Args>
consteval auto transform_if_valid() noexcept {
    if constexpr (is_completion_signatures<Sigs>) {
        return typename Transform<Sigs, Args...>::type();
    } else {
        return Sigs();
    }
}

// The union of the given sets, or the first argument that is not a set.
template <class... Sets>
struct signatures_union;
template <>
struct signatures_union<> {
    using type = completion_signatures<>;
};
template <class... Sets>
    requires(is_completion_signatures<Sets> && ...)
struct signatures_union<Sets...> {
    using type = set_union_t<completion_signatures<>, Sets...>;
};
template <class Set, class... Sets>
    requires(!(is_completion_signatures<Set> && ... && is_completion_signatures<Sets>))
struct signatures_union<Set, Sets...> {
    // A pipeline_error wins over dependent_signatures: an environment will not repair it.
    using rest = typename signatures_union<Sets...>::type;
    using type = std::conditional_t<is_completion_signatures<Set> ||
                                        (!is_pipeline_error<Set> && is_pipeline_error<rest>),
                                    rest, Set>;
};
template <class... Sets>
using signatures_union_t = typename signatures_union<Sets...>::type;

// set_value_t() for void, set_value_t(T) otherwise. SET-VALUE-SIG of the draft.
template <class T>
struct value_signature {
    using type = set_value_t(T);
};
template <class T>
    requires std::is_void_v<T>
struct value_signature<T> {
    using type = set_value_t();
};
template <class T>
using value_signature_t = typename value_signature<T>::type;

// set_error_t(exception_ptr) if CanThrow, otherwise nothing.
template <bool CanThrow>
using exception_signature =
    std::conditional_t<CanThrow, completion_signatures<set_error_t(std::exception_ptr)>,
                       completion_signatures<>>;

// True if every result of the signature can be stored; the second: without an exception.
template <class Signature>
inline constexpr bool stores_results = false;
template <class Tag, class... Args>
inline constexpr bool stores_results<Tag(Args...)> =
    (std::is_constructible_v<std::decay_t<Args>, Args> && ...);
template <class Signature>
inline constexpr bool stores_results_nothrow = false;
template <class Tag, class... Args>
inline constexpr bool stores_results_nothrow<Tag(Args...)> = nothrow_decay_copyable<Args...>;

}  // namespace coppice::execution::internal
