// Type lists and the exposition-only concepts of [exec.general]; every exec header uses it.
#pragma once

#include <coppice/base/internal/namespaces.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace coppice::execution::internal {

// An empty list of types. Cheap to name.
template <class... Ts>
struct type_list {};

template <class T, class... Ts>
inline constexpr bool one_of = (std::is_same_v<T, Ts> || ...);

// A false condition for static_asserts that fail only when the template is used.
template <class...>
inline constexpr bool always_false = false;

// Adds each of More to the set of types Set, without duplicates.
template <class Set, class... More>
struct set_insert {
    using type = Set;
};
template <template <class...> class Set, class... Ts, class T, class... More>
    requires one_of<T, Ts...>
struct set_insert<Set<Ts...>, T, More...> : set_insert<Set<Ts...>, More...> {};
template <template <class...> class Set, class... Ts, class T, class... More>
struct set_insert<Set<Ts...>, T, More...> : set_insert<Set<Ts..., T>, More...> {};

template <class Set, class... More>
using set_insert_t = typename set_insert<Set, More...>::type;

// Adds the elements of every other set to Set.
template <class Set, class... Others>
struct set_union {
    using type = Set;
};
template <class Set, template <class...> class Other, class... Ts, class... Others>
struct set_union<Set, Other<Ts...>, Others...> : set_union<set_insert_t<Set, Ts...>, Others...> {};

template <class Set, class... Others>
using set_union_t = typename set_union<Set, Others...>::type;

// Passes the template arguments of List to another template.
template <template <class...> class Target, class List>
struct with_elements;
template <template <class...> class Target, template <class...> class List, class... Ts>
struct with_elements<Target, List<Ts...>> {
    using type = Target<Ts...>;
};
template <template <class...> class Target, class List>
using with_elements_t = typename with_elements<Target, List>::type;

// [exec.general], [execution.syn]
template <class T>
concept movable_value =
    std::move_constructible<std::decay_t<T>> && std::constructible_from<std::decay_t<T>, T> &&
    !std::is_array_v<std::remove_reference_t<T>>;

template <class From, class To>
concept decays_to = std::same_as<std::decay_t<From>, To>;
template <class T>
concept class_type = decays_to<T, T> && std::is_class_v<T>;
template <class T>
concept queryable = std::destructible<T>;

// True if an F can be called with Args; as std::invocable, without pointers to members.
template <class F, class... Args>
concept callable =
    requires(F&& f, Args&&... args) { static_cast<F&&>(f)(static_cast<Args&&>(args)...); };
template <class F, class... Args>
concept nothrow_callable = callable<F, Args...> && requires(F&& f, Args&&... args) {
    { static_cast<F&&>(f)(static_cast<Args&&>(args)...) } noexcept;
};
template <class F, class... Args>
using call_result_t = decltype(std::declval<F>()(std::declval<Args>()...));

// True if decayed copies of all Ts can be made without an exception.
template <class... Ts>
inline constexpr bool nothrow_decay_copyable =
    (std::is_nothrow_constructible_v<std::decay_t<Ts>, Ts> && ...);

// T with the const and value category of Like: the type of a member T of a Like.
template <class Like, class T>
struct like {
    using type = T;
};
template <class Like, class T>
struct like<Like&, T> {
    using type = T&;
};
template <class Like, class T>
struct like<const Like&, T> {
    using type = const T&;
};
template <class Like, class T>
using like_t = typename like<Like, T>::type;

}  // namespace coppice::execution::internal
