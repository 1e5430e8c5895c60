// when_all: runs several senders concurrently; completes with all values when all have completed.
#pragma once
// The first failure asks the others to stop and decides how the operation completes. Each child has
// a slot of one finite stop source (P3409R1): child I's token is finite_inplace_stop_token<N, I>.
// join.hpp says how the children meet, and what a stop from outside does.
//
//   outcome_   how the operation ends: see when_all_outcome
//
// Source: [exec.when.all], P3409R1 7.5.

#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/alternatives.hpp>
#include <coppice/exec/internal/join.hpp>
#include <coppice/exec/internal/mapped_attrs.hpp>
#include <coppice/exec/internal/when_all_outcome.hpp>
#include <coppice/exec/into_variant.hpp>
#include <coppice/exec/scheduler.hpp>

namespace coppice::execution {

struct when_all_t;

// What one child's signature contributes.
template <class Fn>
struct when_all_child_signature {  // set_stopped
    using values = internal::type_list<>;
    using failures = completion_signatures<Fn>;
};
template <class... Args>
struct when_all_child_signature<set_value_t(Args...)> {
    using values = internal::type_list<internal::product<std::decay_t<Args>...>>;
    using failures = exception_signature<!nothrow_decay_copyable<Args...>>;
};
template <class Error>
struct when_all_child_signature<set_error_t(Error)> {
    using values = internal::type_list<>;
    using failures = internal::set_union_t<completion_signatures<set_error_t(std::decay_t<Error>)>,
                                           exception_signature<!nothrow_decay_copyable<Error>>>;
};

template <class Sigs>
struct when_all_child {  // an error, or signatures that are not known yet
    using values = internal::type_list<internal::product<>>;
    using failures = Sigs;
};
template <class... Fns>
    requires(!(stores_results<Fns> && ...))
struct when_all_child<completion_signatures<Fns...>> {
    using values = internal::type_list<internal::product<>>;
    using failures =
        pipeline_error<in_algorithm<when_all_t>, got<Fns...>, wanted<decay_copyable_results>>;
};
template <class... Fns>
    requires(completion_signatures<Fns...>::count_of(set_value_t()) > 1)
struct when_all_child<completion_signatures<Fns...>> {
    using values = internal::type_list<internal::product<>>;
    using failures =
        pipeline_error<in_algorithm<when_all_t>, got<Fns...>, wanted<at_most_one_value_completion>>;
};
template <class... Fns>
    requires(completion_signatures<Fns...>::count_of(set_value_t()) <= 1) &&
            (stores_results<Fns> && ...)
struct when_all_child<completion_signatures<Fns...>> {
    using values =
        typename internal::concatenated<typename when_all_child_signature<Fns>::values...>::type;
    using failures = signatures_union_t<typename when_all_child_signature<Fns>::failures...>;
};

// The values of all children together; nothing if some child never sends values.
template <class... Values>
struct when_all_values {
    static constexpr bool sends = false;
    using signature = completion_signatures<>;
};
template <class... Products>
struct when_all_values<internal::type_list<Products>...> {
    static constexpr bool sends = true;
    template <class... Lists>
    struct joined;
    template <class... Ts>
    struct joined<internal::product<Ts...>> {
        using type = completion_signatures<set_value_t(Ts...)>;
    };
    template <class... Ts, class... Us, class... Rest>
    struct joined<internal::product<Ts...>, internal::product<Us...>, Rest...>
        : joined<internal::product<Ts..., Us...>, Rest...> {};
    using signature = typename joined<Products...>::type;
};

template <class... Sigs>
using when_all_signatures_t = signatures_union_t<
    typename when_all_values<typename when_all_child<Sigs>::values...>::signature,
    typename when_all_child<Sigs>::failures...>;

// Holds the values of one child. Written by the child; read by the last child to arrive.
template <class Product>
class when_all_slot : immovable {
public:
    ~when_all_slot() {
        if (full_) values_.destroy();
    }
    template <class... Args>
    void keep(Args&&... args) {
        values_.construct(internal::construct_each(), static_cast<Args&&>(args)...);
        full_ = true;
    }
    Product& values() noexcept { return values_.get(); }

private:
    manual_lifetime<Product> values_;
    bool full_ = false;
};

// Slots is a list of products, one per child. It is empty if values are never sent.
template <std::size_t Count, class Rcvr, class Sigs, class Slots>
class when_all_state;
template <std::size_t Count, class Rcvr, class Sigs, class... Products>
class when_all_state<Count, Rcvr, Sigs, internal::type_list<Products...>>
    : public join_state<when_all_state<Count, Rcvr, Sigs, internal::type_list<Products...>>, Rcvr,
                        internal::tolerant_finite_stop_source<Count>> {
public:
    static constexpr char name[] = "when_all";

    template <class Sndr>
    when_all_state(Rcvr rcvr, const Sndr&) noexcept
        : when_all_state::join_state(static_cast<Rcvr&&>(rcvr), Count) {}

    template <std::size_t Index, class... Args>
    void value(join_place<Index>, Args&&... args) noexcept {
        if constexpr (sizeof...(Products) != 0) {
            if (outcome_.all_sent()) {  // otherwise they will not be sent
                auto& slot = slots_.template get<Index>();
                if constexpr (nothrow_decay_copyable<Args...>) {
                    slot.keep(static_cast<Args&&>(args)...);
                } else {
                    try {
                        slot.keep(static_cast<Args&&>(args)...);
                    } catch (...) {
                        error(std::current_exception());
                        return;
                    }
                }
            }
        }
        this->arrive();
    }
    template <class Error>
    void error(Error&& error) noexcept {
        this->arrive(outcome_.fail(static_cast<Error&&>(error)));
    }
    void stopped(std::size_t) noexcept { this->arrive(outcome_.stop()); }
    void complete() noexcept {
        if (!outcome_.all_sent()) {
            outcome_.deliver(this->rcvr_);
        } else if constexpr (sizeof...(Products) != 0) {
            send(typename flat::indices());
        }
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

    when_all_outcome<Sigs> outcome_;
    [[no_unique_address]] internal::product<when_all_slot<Products>...> slots_;
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
    static auto slots_of(internal::type_list<Lists...>)
        -> std::conditional_t<values::sends, typename internal::concatenated<Lists...>::type,
                              internal::type_list<>>;
    using slots = decltype(slots_of(
        internal::type_list<typename when_all_child<child_signatures<Is, Children>>::values...>()));
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
    using in_any_way =
        typename internal::concatenated<domains_with<set_value_t, Child, ChildEnv>,
                                        domains_with<set_error_t, Child, ChildEnv>,
                                        domains_with<set_stopped_t, Child, ChildEnv>>::type;
    using type = typename internal::concatenated<
        in_any_way<Children, join_child_env_t<sizeof...(Children), Is, Env>>...>::type;
};
template <class Env, std::size_t... Is, class... Children>
struct when_all_domains<set_value_t, Env, std::index_sequence<Is...>, Children...> {
    using type = typename internal::concatenated<domains_with<
        set_value_t, Children, join_child_env_t<sizeof...(Children), Is, Env>>...>::type;
};

// Decomposes as [tag, data, children...].
template <class... Children>
struct when_all_sender {
    using sender_concept = sender_tag;
    using tag_type = when_all_t;
    using decomposable = void;

    internal::product<Children...> children;

    template <class... Inits>
    constexpr explicit when_all_sender(internal::construct_each, Inits&&... inits) noexcept(
        (std::is_nothrow_constructible_v<Children, Inits> && ...))
        : children(internal::construct_each(), static_cast<Inits&&>(inits)...) {}

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
        return when_all_signatures_t<signatures_of<internal::like_t<Self, Children>>...>();
    }
    template <class Self, class Env, std::size_t... Is>
    static consteval auto signatures(std::index_sequence<Is...>) noexcept {
        return when_all_signatures_t<signatures_of<
            internal::like_t<Self, Children>, join_child_env_t<sizeof...(Children), Is, Env>>...>();
    }
};

// Sends all values together. Takes at least one sender. Cost: no allocation, one atomic operation
// per child.
struct when_all_t {
    template <sender... Sndrs>
        requires(sizeof...(Sndrs) != 0)
    constexpr auto operator()(Sndrs&&... sndrs) const {
        using result = when_all_sender<std::decay_t<Sndrs>...>;
        static_assert(pipeline_check<result>::done);
        return result(internal::construct_each(), static_cast<Sndrs&&>(sndrs)...);
    }
};
inline constexpr when_all_t when_all{};

struct when_all_with_variant_t;
// Decomposes as [tag, data, children...]; becomes when_all(into_variant(children)...).
template <class... Children>
struct when_all_with_variant_sender {
    using sender_concept = sender_tag;
    using tag_type = when_all_with_variant_t;
    using decomposable = void;

    internal::product<Children...> children;

    template <class... Inits>
    constexpr explicit when_all_with_variant_sender(
        internal::construct_each,
        Inits&&... inits) noexcept((std::is_nothrow_constructible_v<Children, Inits> && ...))
        : children(internal::construct_each(), static_cast<Inits&&>(inits)...) {}

    constexpr env<> get_env() const noexcept { return {}; }
    // The signatures of the sender that this one is transformed to in an environment.
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        using Same = when_all_sender<into_variant_sender<Children>...>;
        return signatures_of<internal::like_t<std::remove_cvref_t<Self>, Same>, Env...>();
    }
};

// As when_all, for senders with several value completions: sends a variant of tuples for each.
struct when_all_with_variant_t {
    template <sender... Sndrs>
        requires(sizeof...(Sndrs) != 0)
    constexpr auto operator()(Sndrs&&... sndrs) const {
        return when_all_with_variant_sender<std::decay_t<Sndrs>...>(internal::construct_each(),
                                                                    static_cast<Sndrs&&>(sndrs)...);
    }
    template <sender_for<when_all_with_variant_t> Sndr, class Env>
    constexpr auto transform_sender(set_value_t, Sndr&& sndr, const Env&) const {
        return static_cast<Sndr&&>(sndr).children.apply([](auto&&... children) {
            return when_all(into_variant(static_cast<decltype(children)>(children))...);
        });
    }
};
inline constexpr when_all_with_variant_t when_all_with_variant{};

}  // namespace coppice::execution
