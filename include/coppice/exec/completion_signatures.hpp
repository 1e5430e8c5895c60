// Completion signatures: the ways in which a sender completes, as a type; and errors about them.
#pragma once
// An algorithm computes its signatures from its child's in one place. If it cannot, it returns a
// pipeline_error instead. The error passes up the pipeline as if it were a set of signatures. The
// first user that needs a real set reports it, by one static_assert that names the algorithm, what
// it got, and what it wanted. Source: [exec.cmplsig]; the errors are ours (C++20 cannot throw at
// compile time).

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/exec/internal/meta.hpp>

#include <exception>

namespace coppice::execution {

// Completes an operation with values. Source: [exec.set.value].
struct set_value_t {
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
// Completes an operation with an error. Source: [exec.set.error].
struct set_error_t {
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
// Completes an operation that was stopped. Source: [exec.set.stopped].
struct set_stopped_t {
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

template <class Fn>
inline constexpr bool is_completion_signature = false;
template <class... Vs>
inline constexpr bool is_completion_signature<set_value_t(Vs...)> = true;
template <class Error>
inline constexpr bool is_completion_signature<set_error_t(Error)> = true;
template <>
inline constexpr bool is_completion_signature<set_stopped_t()> = true;

template <class Fn>
concept completion_signature = is_completion_signature<Fn>;

template <class Tag, class Fn>
inline constexpr bool signature_has_tag = false;
template <class Tag, class... Args>
inline constexpr bool signature_has_tag<Tag, Tag(Args...)> = true;

// The ways in which a sender completes. Source: [exec.cmplsig].
template <completion_signature... Fns>
struct completion_signatures {
    template <class Tag>
    static constexpr std::size_t count_of(Tag) noexcept {
        return (std::size_t{0} + ... + (signature_has_tag<Tag, Fns> ? 1 : 0));
    }
    template <class Fn>
    static constexpr void for_each(Fn&& fn) {
        (fn(static_cast<Fns*>(nullptr)), ...);
    }
};

template <class T>
inline constexpr bool is_completion_signatures = false;
template <class... Fns>
inline constexpr bool is_completion_signatures<completion_signatures<Fns...>> = true;
template <class Sigs>
concept valid_completion_signatures = is_completion_signatures<Sigs>;

// In the draft, thrown by a sender that needs an environment to know its signatures.
struct dependent_sender_error : std::exception {};

// Stands for the signatures of a sender that needs an environment to know them.
struct dependent_signatures {};

// Stands for the signatures of a pipeline that does not type-check.
template <class Algorithm, class Got, class Wanted>
struct pipeline_error {};
// The words of pipeline errors. Each appears in a compiler's message.
template <class Algorithm>
struct in_algorithm {};
template <class... Ts>
struct got {};
template <class... Ts>
struct wanted {};
template <class... Args>
struct callable_with_arguments {};
template <class... Args>
struct callable_returning_a_sender_with_arguments {};
struct one_value_completion {};
struct at_most_one_value_completion {};
struct decay_copyable_results {};
struct completion_signatures_in_this_environment {};
struct value_of_this_query_in_the_environment {};
struct start_scheduler_in_the_environment {};
struct infallible_start_scheduler {};
struct known_completion_scheduler {};
struct only_value_and_stopped_completions {};

template <class T>
inline constexpr bool is_pipeline_error = false;
template <class Algorithm, class Got, class Wanted>
inline constexpr bool is_pipeline_error<pipeline_error<Algorithm, Got, Wanted>> = true;

template <class Fn>
inline constexpr bool signature_has_value = signature_has_tag<set_value_t, Fn>;

namespace internal {

// Reports an error. Each error is reported once per translation unit.
template <class Error>
struct diagnosis {
    static_assert(always_false<Error>,
                  "coppice: this pipeline does not type-check; the pipeline_error in this message "
                  "names the algorithm, what it got and what it wanted");
    static constexpr bool reported = true;
};

}  // namespace internal

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
    using type = internal::set_union_t<completion_signatures<>, Sets...>;
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

// META-APPLY of the draft: passes a pack to a template with a fixed number of parameters.
template <bool>
struct indirect_apply {
    template <template <class...> class T, class... As>
    using apply = T<As...>;
};
template <template <class...> class T, class... As>
using meta_apply =
    typename indirect_apply<internal::always_false<As...> || true>::template apply<T, As...>;

template <class Tag, template <class...> class Tuple, class Signature>
struct gather_one {
    using type = internal::type_list<>;
};
template <class Tag, template <class...> class Tuple, class... Args>
struct gather_one<Tag, Tuple, Tag(Args...)> {
    using type = internal::type_list<meta_apply<Tuple, Args...>>;
};

namespace internal {

template <class... Lists>
struct concatenated {
    using type = type_list<>;
};
template <class... Ts>
struct concatenated<type_list<Ts...>> {
    using type = type_list<Ts...>;
};
template <class... Ts, class... Us, class... Lists>
struct concatenated<type_list<Ts...>, type_list<Us...>, Lists...>
    : concatenated<type_list<Ts..., Us...>, Lists...> {};

}  // namespace internal

template <template <class...> class Variant, class List>
struct apply_to_list;
template <template <class...> class Variant, class... Ts>
struct apply_to_list<Variant, internal::type_list<Ts...>> {
    using type = meta_apply<Variant, Ts...>;
};

namespace internal {

template <class Tag, class Completions, template <class...> class Tuple,
          template <class...> class Variant>
struct gathered;
template <class Tag, class... Fns, template <class...> class Tuple,
          template <class...> class Variant>
struct gathered<Tag, completion_signatures<Fns...>, Tuple, Variant>
    : apply_to_list<Variant,
                    typename concatenated<typename gather_one<Tag, Tuple, Fns>::type...>::type> {};

}  // namespace internal

// Variant<Tuple<Args...>...> over the signatures with Tag. Source: [exec.cmplsig].
template <class Tag, valid_completion_signatures Completions, template <class...> class Tuple,
          template <class...> class Variant>
using gather_signatures = typename internal::gathered<Tag, Completions, Tuple, Variant>::type;

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

}  // namespace coppice::execution
