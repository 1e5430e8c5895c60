// Takes senders apart: the algorithm's tag, its data, and its children.
#pragma once
// `auto& [tag, data, child] = sndr` works for the senders of this library, as the draft promises
// for its own. They name their tag as a type, tag_type, and do not store it. Two objects of one
// empty type may not share an address, so stored tags would make nested senders larger and harder
// to optimize. A user's sender that its own algorithm transforms names its tag likewise, or is an
// aggregate whose first member is the tag. Source: tag_of_t of [exec.snd.concepts].

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/exec/internal/product.hpp>

namespace coppice::execution::internal {

// A sender that names its tag may have data, and one child or several.
template <class Sndr>
concept names_its_tag = requires { typename std::remove_cvref_t<Sndr>::tag_type; };
template <class Sndr>
concept has_data = requires(Sndr& sndr) { sndr.data; };
template <class Sndr>
concept has_child = requires(Sndr& sndr) { sndr.child; };
template <class Sndr>
concept has_children = requires(Sndr& sndr) { sndr.children; };

template <class Sndr>
inline constexpr std::size_t count_of_children = has_child<Sndr> ? 1 : 0;
template <has_children Sndr>
inline constexpr std::size_t count_of_children<Sndr> = std::tuple_size_v<decltype(Sndr::children)>;

// Returns what each name of a structured binding is bound to.
template <std::size_t Index, class Sndr>
    requires names_its_tag<Sndr>
constexpr decltype(auto) get(Sndr&& sndr) noexcept {
    using Plain = std::remove_cvref_t<Sndr>;
    if constexpr (Index == 0) {
        return typename Plain::tag_type();
    } else if constexpr (Index == 1 && !has_data<Plain>) {
        return product<>();
    } else if constexpr (Index == 1) {
        return (static_cast<Sndr&&>(sndr).data);
    } else if constexpr (has_child<Plain>) {
        return (static_cast<Sndr&&>(sndr).child);
    } else {
        return static_cast<Sndr&&>(sndr).children.template get<Index - 2>();
    }
}

// The parts of an aggregate are counted by what it can be initialized with.
template <class Aggregate>
struct tag_probe {
    template <class T>
        requires std::is_empty_v<T> && (!std::is_base_of_v<T, Aggregate>)
    constexpr operator T() const noexcept;
};
struct part_probe {
    template <class T>
    constexpr operator T() const noexcept;
};
template <class T, class... Parts>
concept initialised_by = requires { T{tag_probe<T>(), Parts()...}; };

template <class T>
consteval std::size_t count_parts() noexcept {
    using p = part_probe;
    if constexpr (!std::is_aggregate_v<T> || initialised_by<T, p, p, p, p>) {
        return 0;  // not an aggregate, or more than two children: such a sender must name its tag
    } else if constexpr (initialised_by<T, p, p, p>) {
        return 4;
    } else if constexpr (initialised_by<T, p, p>) {
        return 3;
    } else {
        return initialised_by<T, p> ? 2 : 0;
    }
}
template <std::size_t Parts, class T>
constexpr auto first_part(const T& sndr) noexcept {
    if constexpr (Parts == 2) {
        auto& [tag, data] = sndr;
        return type_list<std::remove_cvref_t<decltype(tag)>>();
    } else if constexpr (Parts == 3) {
        auto& [tag, data, child] = sndr;
        return type_list<std::remove_cvref_t<decltype(tag)>>();
    } else {
        auto& [tag, data, first, second] = sndr;
        return type_list<std::remove_cvref_t<decltype(tag)>>();
    }
}

template <class Sndr>
struct tag_of {};
template <names_its_tag Sndr>
struct tag_of<Sndr> {
    using type = typename Sndr::tag_type;
};
template <class Sndr>
    requires(!names_its_tag<Sndr>) && (internal::count_parts<Sndr>() != 0)
struct tag_of<Sndr> {
    template <class Tag>
    static constexpr Tag only(type_list<Tag>) noexcept;
    using type = decltype(only(
        internal::first_part<internal::count_parts<Sndr>()>(std::declval<const Sndr&>())));
};

// An unqualified sender type of this library: the tuple protocol is specialized for it.
template <class Sndr>
concept decomposable_sender =
    names_its_tag<Sndr> && std::is_class_v<Sndr> && std::same_as<Sndr, std::remove_cv_t<Sndr>> &&
    requires { typename Sndr::decomposable; };

template <class Sndr>
concept has_tag = requires { typename tag_of<std::remove_cvref_t<Sndr>>::type; };

// The algorithm that made a sender.
template <has_tag Sndr>
using tag_of_t = typename tag_of<std::remove_cvref_t<Sndr>>::type;

// True if Sndr was made by the algorithm Tag.
template <class Sndr, class Tag>
concept sender_for = has_tag<Sndr> && std::same_as<tag_of_t<Sndr>, Tag>;

}  // namespace coppice::execution::internal

template <coppice::execution::internal::decomposable_sender Sndr>
struct std::tuple_size<Sndr>
    : std::integral_constant<std::size_t,
                             2 + coppice::execution::internal::count_of_children<Sndr>> {};
template <std::size_t Index, coppice::execution::internal::decomposable_sender Sndr>
struct std::tuple_element<Index, Sndr> {
    using type = std::remove_cvref_t<decltype(coppice::execution::internal::get<Index>(
        std::declval<const Sndr&>()))>;
};
