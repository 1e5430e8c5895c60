// value_types_of_t and its relatives: a sender's results as types of the standard library.
#pragma once
// Include this header only where results reach the user as tuples and variants.
// Source: [execution.syn] p1 to p3, [exec.cmplsig].

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/exec/sender.hpp>

#include <tuple>
#include <variant>

namespace coppice::execution {

namespace internal {

template <class... Ts>
using decayed_tuple = std::tuple<std::decay_t<Ts>...>;

}  // namespace internal

// The variant of no types. There are no objects of it.
struct empty_variant {
    empty_variant() = delete;
};
// A std::variant of the decayed types, each once; empty_variant for none.
template <class... Ts>
struct make_variant {
    using type = internal::with_elements_t<
        std::variant, internal::set_insert_t<internal::type_list<>, std::decay_t<Ts>...>>;
};
template <>
struct make_variant<> {
    using type = empty_variant;
};
template <class... Ts>
using variant_or_empty = typename make_variant<Ts...>::type;

// The values that a sender may send: a Variant of a Tuple for each value completion.
template <class Sndr, class Env = env<>, template <class...> class Tuple = internal::decayed_tuple,
          template <class...> class Variant = variant_or_empty>
    requires sender_in<Sndr, Env>
using value_types_of_t =
    gather_signatures<set_value_t, completion_signatures_of_t<Sndr, Env>, Tuple, Variant>;

// The errors that a sender may send: a Variant of their types.
template <class Sndr, class Env = env<>, template <class...> class Variant = variant_or_empty>
    requires sender_in<Sndr, Env>
using error_types_of_t = gather_signatures<set_error_t, completion_signatures_of_t<Sndr, Env>,
                                           std::type_identity_t, Variant>;

// The type of a sender's one value completion: void for no value, T for one, a tuple for several.
template <class Values>
struct single_value {};
template <>
struct single_value<internal::type_list<>> {
    using type = void;
};
template <>
struct single_value<internal::type_list<internal::type_list<>>> {
    using type = void;
};
template <class T>
struct single_value<internal::type_list<internal::type_list<T>>> {
    using type = std::decay_t<T>;
};
template <class T, class U, class... Ts>
struct single_value<internal::type_list<internal::type_list<T, U, Ts...>>> {
    using type = internal::decayed_tuple<T, U, Ts...>;
};
template <class Sndr, class... Env>
using single_sender_value_type =
    typename single_value<gather_signatures<set_value_t, completion_signatures_of_t<Sndr, Env...>,
                                            internal::type_list, internal::type_list>>::type;

// A sender with at most one value completion.
template <class Sndr, class... Env>
concept single_sender =
    sender_in<Sndr, Env...> && requires { typename single_sender_value_type<Sndr, Env...>; };

}  // namespace coppice::execution
