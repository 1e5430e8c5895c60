// A minimal tuple for the data of senders and closures; decomposes like the draft's.
#pragma once
// [exec.snd.expos] calls it product-type. One base class per element keeps it cheap to compile: no
// recursion, no constraints, no comparison. get<I>() supports `auto& [a, b] = product;`.

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/exec/internal/meta.hpp>

namespace coppice::execution::internal {

struct construct_each {};  // tags the constructor that takes one argument per element

template <std::size_t Index, class T>
struct product_element {
    constexpr product_element() = default;
    // Not an aggregate: g++ 12 would zero-initialize it over its neighbors.
    template <class Init>
    constexpr product_element(construct_each,
                              Init&& init) noexcept(std::is_nothrow_constructible_v<T, Init>)
        : value(static_cast<Init&&>(init)) {}

    [[no_unique_address]] T value;
};

template <class Indices, class... Ts>
struct product_elements;
template <std::size_t... Is, class... Ts>
struct product_elements<std::index_sequence<Is...>, Ts...> : product_element<Is, Ts>... {
    constexpr product_elements() = default;
    template <class... Us>
    constexpr explicit product_elements(construct_each, Us&&... us) noexcept(
        (std::is_nothrow_constructible_v<Ts, Us> && ...))
        : product_element<Is, Ts>(construct_each(), static_cast<Us&&>(us))... {}

    template <class F>
    constexpr decltype(auto) apply(F&& f) & {
        return static_cast<F&&>(f)(static_cast<product_element<Is, Ts>&>(*this).value...);
    }
    template <class F>
    constexpr decltype(auto) apply(F&& f) const& {
        return static_cast<F&&>(f)(static_cast<const product_element<Is, Ts>&>(*this).value...);
    }
    template <class F>
    constexpr decltype(auto) apply(F&& f) && {
        return static_cast<F&&>(f)(
            static_cast<Ts&&>(static_cast<product_element<Is, Ts>&>(*this).value)...);
    }
};

template <class... Ts>
struct product : product_elements<std::index_sequence_for<Ts...>, Ts...> {
    using product_elements<std::index_sequence_for<Ts...>, Ts...>::product_elements;
    constexpr product() = default;

    template <std::size_t Index>
    constexpr auto& get() & noexcept {
        return at<Index>(*this);
    }
    template <std::size_t Index>
    constexpr const auto& get() const& noexcept {
        return at<Index>(*this);
    }
    template <std::size_t Index>
    constexpr auto&& get() && noexcept {
        return std::move(at<Index>(*this));
    }

private:
    template <std::size_t Index, class T>
    static constexpr T& at(product_element<Index, T>& element) noexcept {
        return element.value;
    }
    template <std::size_t Index, class T>
    static constexpr const T& at(const product_element<Index, T>& element) noexcept {
        return element.value;
    }
};

template <std::size_t Index, class T>
T product_element_type(const product_element<Index, T>&);

}  // namespace coppice::execution::internal

template <class... Ts>
struct std::tuple_size<coppice::execution::internal::product<Ts...>>
    : std::integral_constant<std::size_t, sizeof...(Ts)> {};
template <std::size_t Index, class... Ts>
struct std::tuple_element<Index, coppice::execution::internal::product<Ts...>> {
    using type = decltype(coppice::execution::internal::product_element_type<Index>(
        std::declval<const coppice::execution::internal::product<Ts...>&>()));
};
