// The senders of when_all and when_all_with_variant.
#pragma once
// Each child has a slot of one finite stop source (P3409R1): child I's token is
// finite_inplace_stop_token<N, I>. join.hpp says how the children meet, and what a stop from
// outside does; when_all_outcome.hpp, how the operation ends.

#include <coppice/exec/internal/attrs.hpp>
#include <coppice/exec/internal/into_variant_sender.hpp>
#include <coppice/exec/internal/join.hpp>
#include <coppice/exec/internal/when_all_outcome.hpp>
#include <coppice/exec/internal/when_all_signatures.hpp>

namespace coppice::execution {
struct when_all_with_variant_t;
}

namespace coppice::execution::internal {

// Slots is a list of products, one per child. It is empty if values are never sent.
template <std::size_t Count, class Rcvr, class Sigs, class Slots>
class when_all_state;
template <std::size_t Count, class Rcvr, class Sigs, class... Products>
class when_all_state<Count, Rcvr, Sigs, type_list<Products...>>
    : public when_all_join<when_all_state<Count, Rcvr, Sigs, type_list<Products...>>, Rcvr,
                           tolerant_finite_stop_source<Count>, Sigs> {
public:
    static constexpr char name[] = "when_all";

    template <class Sndr>
    when_all_state(Rcvr rcvr, const Sndr&) noexcept
        : when_all_state::when_all_join(static_cast<Rcvr&&>(rcvr), Count) {}

    template <std::size_t Index, class... Args>
    void value(join_place<Index>, Args&&... args) noexcept {
        if constexpr (sizeof...(Products) != 0) {
            this->keep(slots_.template get<Index>(), static_cast<Args&&>(args)...);
        } else {
            this->arrive();
        }
    }
    void send_values() noexcept {
        if constexpr (sizeof...(Products) != 0) send(typename flat::indices());
    }

private:
    // Maps k, the index among the values of all children, to a slot and a value in it.
    struct flat {
        static constexpr std::size_t sizes[sizeof...(Products) + 1] = {
            std::tuple_size_v<Products>..., 0};
        static constexpr std::size_t total = (std::size_t{0} + ... + std::tuple_size_v<Products>);
        using indices = std::make_index_sequence<total>;
        static consteval std::size_t slot(std::size_t k) noexcept {
            std::size_t s = 0;
            for (; k >= sizes[s]; ++s) k -= sizes[s];
            return s;
        }
        static consteval std::size_t element(std::size_t k) noexcept {
            for (std::size_t s = 0; k >= sizes[s]; ++s) k -= sizes[s];
            return k;
        }
    };
    template <std::size_t... Ks>
    void send(std::index_sequence<Ks...>) noexcept {
        set_value(static_cast<Rcvr&&>(this->rcvr_),
                  std::move(slots_.template get<flat::slot(Ks)>()
                                .values()
                                .template get<flat::element(Ks)>())...);
    }

    [[no_unique_address]] product<when_all_slot<Products>...> slots_;
};

template <class Indices, class Rcvr, class... Children>
struct when_all_types;
template <std::size_t... Is, class Rcvr, class... Children>
struct when_all_types<std::index_sequence<Is...>, Rcvr, Children...> {
    static constexpr std::size_t count = sizeof...(Children);
    template <std::size_t Index, class Child>
    using child_signatures =
        completion_signatures_of_t<Child, join_child_env_t<count, Index, env_of_t<const Rcvr&>>>;
    using values =
        when_all_values<typename when_all_child<child_signatures<Is, Children>>::values...>;
    template <class... Lists>
    static auto slots_of(type_list<Lists...>)
        -> std::conditional_t<values::sends, typename concatenated<Lists...>::type, type_list<>>;
    using slots = decltype(slots_of(
        type_list<typename when_all_child<child_signatures<Is, Children>>::values...>()));
    using state = when_all_state<count, Rcvr,
                                 when_all_signatures_t<child_signatures<Is, Children>...>, slots>;
    using children = join_children<state, std::index_sequence<Is...>, Children...>;
};
template <class Rcvr, class... Children>
using when_all_operation =
    join_operation<when_all_types<std::index_sequence_for<Children...>, Rcvr, Children...>>;

// The domains in which the children of a when_all may complete it with Tag.
template <class Tag, class Env, class Indices, class... Children>
struct when_all_domains;
template <class Tag, class Env, std::size_t... Is, class... Children>
struct when_all_domains<Tag, Env, std::index_sequence<Is...>, Children...> {
    template <class Child, class ChildEnv>
    using in_any_way = typename concatenated<domains_with<set_value_t, Child, ChildEnv>,
                                             domains_with<set_error_t, Child, ChildEnv>,
                                             domains_with<set_stopped_t, Child, ChildEnv>>::type;
    using type = typename concatenated<
        in_any_way<Children, join_child_env_t<sizeof...(Children), Is, Env>>...>::type;
};
template <class Env, std::size_t... Is, class... Children>
struct when_all_domains<set_value_t, Env, std::index_sequence<Is...>, Children...> {
    using type = typename concatenated<domains_with<
        set_value_t, Children, join_child_env_t<sizeof...(Children), Is, Env>>...>::type;
};

template <class... Children>
struct when_all_sender : join_sender<when_all_t, Children...> {
    using join_sender<when_all_t, Children...>::join_sender;

    // Values are sent where one of the children sends its values; failures where any child
    // completes.
    struct attrs {
        constexpr attrs() noexcept = default;
        template <completion_tag Tag, class Env>
        constexpr auto query(get_completion_domain_t<Tag>, const Env&) const noexcept {
            using domains =
                typename when_all_domains<Tag, Env, std::index_sequence_for<Children...>,
                                          Children...>::type;
            return typename common_domain_of<domains>::type();
        }
    };
    constexpr attrs get_env() const noexcept { return {}; }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return signatures<Self, Env...>(std::index_sequence_for<Children...>());
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && noexcept(
        std::is_nothrow_constructible_v<when_all_operation<Rcvr, Children...>, when_all_sender,
                                        Rcvr>) -> when_all_operation<Rcvr, Children...> {
        return {static_cast<when_all_sender&&>(*this), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
        requires(std::copy_constructible<Children> && ...)
    auto connect(Rcvr rcvr) const& noexcept(
        std::is_nothrow_constructible_v<when_all_operation<Rcvr, const Children&...>,
                                        const when_all_sender&, Rcvr>)
        -> when_all_operation<Rcvr, const Children&...> {
        return {*this, static_cast<Rcvr&&>(rcvr)};
    }

private:
    template <class Self, std::size_t... Is>
    static consteval auto signatures(std::index_sequence<Is...>) noexcept {
        return when_all_signatures_t<signatures_of<like_t<Self, Children>>...>();
    }
    template <class Self, class Env, std::size_t... Is>
    static consteval auto signatures(std::index_sequence<Is...>) noexcept {
        return when_all_signatures_t<signatures_of<
            like_t<Self, Children>, join_child_env_t<sizeof...(Children), Is, Env>>...>();
    }
};

// Becomes when_all(into_variant(children)...).
template <class... Children>
struct when_all_with_variant_sender : join_sender<when_all_with_variant_t, Children...> {
    using join_sender<when_all_with_variant_t, Children...>::join_sender;

    constexpr env<> get_env() const noexcept { return {}; }
    // The signatures of the sender that this one is transformed to in an environment.
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        using Same = when_all_sender<into_variant_sender<Children>...>;
        return signatures_of<like_t<std::remove_cvref_t<Self>, Same>, Env...>();
    }
};

}  // namespace coppice::execution::internal
