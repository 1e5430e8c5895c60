// when_all: start several senders at once, complete with all their values when all have completed.
#pragma once
// The first failure asks the others to stop and decides how the whole completes. Each child has a
// slot of one finite stop source (P3409R1): child I's token is finite_inplace_stop_token<N, I>.
//
//   pending_   children that have not arrived. The last one to arrive completes the receiver.
//   outcome_   how it ends: see when_all_outcome
//
// A stop request from outside runs on_stop_, which passes it on to the children; the last of them
// may complete inside that call, and destroy this operation with the source in it. That is safe:
// the source knows that it died inside its own callback, and a completion on another thread waits
// in on_stop_.reset() until the callback is over. Source: [exec.when.all], P3409R1 7.5.

#include <coppice/base/atomic.hpp>
#include <coppice/exec/alternatives.hpp>
#include <coppice/exec/closure.hpp>
#include <coppice/exec/into_variant.hpp>
#include <coppice/exec/mapped_attrs.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/exec/stop_registration.hpp>
#include <coppice/exec/when_all_outcome.hpp>
#include <coppice/stop/finite.hpp>

namespace coppice::execution {

struct when_all_t;

// What child Index of Count sees.
template <std::size_t Count, std::size_t Index, class Env>
using when_all_env_t = stop_token_env<finite_inplace_stop_token<Count, Index>, Env>;

// What one child contributes.
template <class Fn>
struct when_all_child_signature {  // set_stopped
    using values = type_list<>;
    using failures = completion_signatures<Fn>;
};
template <class... Args>
struct when_all_child_signature<set_value_t(Args...)> {
    using values = type_list<product<std::decay_t<Args>...>>;
    using failures = exception_signature<!nothrow_decay_copyable<Args...>>;
};
template <class Error>
struct when_all_child_signature<set_error_t(Error)> {
    using values = type_list<>;
    using failures = set_union_t<completion_signatures<set_error_t(std::decay_t<Error>)>,
                                 exception_signature<!nothrow_decay_copyable<Error>>>;
};

template <class Sigs>
struct when_all_child {  // an error, or signatures that are not known yet
    using values = type_list<product<>>;
    using failures = Sigs;
};
template <class... Fns>
    requires(!(stores_results<Fns> && ...))
struct when_all_child<completion_signatures<Fns...>> {
    using values = type_list<product<>>;
    using failures =
        pipeline_error<in_algorithm<when_all_t>, got<Fns...>, wanted<decay_copyable_results>>;
};
template <class... Fns>
    requires(completion_signatures<Fns...>::count_of(set_value_t()) > 1)
struct when_all_child<completion_signatures<Fns...>> {
    using values = type_list<product<>>;
    using failures =
        pipeline_error<in_algorithm<when_all_t>, got<Fns...>, wanted<at_most_one_value_completion>>;
};
template <class... Fns>
    requires(completion_signatures<Fns...>::count_of(set_value_t()) <= 1) &&
            (stores_results<Fns> && ...)
struct when_all_child<completion_signatures<Fns...>> {
    using values = typename concatenated<typename when_all_child_signature<Fns>::values...>::type;
    using failures = signatures_union_t<typename when_all_child_signature<Fns>::failures...>;
};

// All children's values together, or nothing if some child never sends any.
template <class... Values>
struct when_all_values {
    static constexpr bool sends = false;
    using signature = completion_signatures<>;
};
template <class... Products>
struct when_all_values<type_list<Products>...> {
    static constexpr bool sends = true;
    template <class... Lists>
    struct joined;
    template <class... Ts>
    struct joined<product<Ts...>> {
        using type = completion_signatures<set_value_t(Ts...)>;
    };
    template <class... Ts, class... Us, class... Rest>
    struct joined<product<Ts...>, product<Us...>, Rest...>
        : joined<product<Ts..., Us...>, Rest...> {};
    using signature = typename joined<Products...>::type;
};

template <class... Sigs>
using when_all_signatures_t = signatures_union_t<
    typename when_all_values<typename when_all_child<Sigs>::values...>::signature,
    typename when_all_child<Sigs>::failures...>;

// The values of one child, once it has sent them. Written by the child; read by the last to arrive.
template <class Product>
class when_all_slot : immovable {
public:
    ~when_all_slot() {
        if (full_) values_.destroy();
    }
    template <class... Args>
    void keep(Args&&... args) {
        values_.construct(construct_each(), static_cast<Args&&>(args)...);
        full_ = true;
    }
    Product& values() noexcept { return values_.get(); }

private:
    manual_lifetime<Product> values_;
    bool full_ = false;
};

// Everything but the children's operations. Slots is a list of products, one per child; it is empty
// if values are never sent.
template <std::size_t Count, class Rcvr, class Sigs, class Slots>
class when_all_state;
template <std::size_t Count, class Rcvr, class Sigs, class... Products>
class when_all_state<Count, Rcvr, Sigs, type_list<Products...>> : immovable {
public:
    explicit when_all_state(Rcvr rcvr) noexcept : rcvr_(static_cast<Rcvr&&>(rcvr)) {}

    // Whether every child has arrived. relaxed: whoever asks knows it in another way, or is wrong
    bool over() const noexcept { return pending_.load(relaxed) == 0; }
    // Before the children are started.
    void listen() noexcept {
        on_stop_.engage(get_stop_token(execution::get_env(rcvr_)), request_stop_of(source_));
    }
    template <std::size_t Index>
    auto child_env() const noexcept {
        using Env = env_of_t<const Rcvr&>;
        return when_all_env_t<Count, Index, Env>(source_.template get_token<Index>(),
                                                 execution::get_env(rcvr_));
    }
    template <std::size_t Index, class... Args>
    void value(Args&&... args) noexcept {
        if constexpr (sizeof...(Products) != 0) {
            if (outcome_.all_sent()) {  // else nobody will send them
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
        arrive();
    }
    template <class Error>
    void error(Error&& error) noexcept {
        const bool first = outcome_.fail(static_cast<Error&&>(error));
        const bool late = planted("when_all.stop_after_arrival");
        if (first && !late) source_.request_stop();
        arrive();
        if (late) source_.request_stop();
    }
    void stopped() noexcept {
        if (outcome_.stop()) source_.request_stop();
        arrive();
    }

private:
    // The last thing a child does here: afterwards the operation may be gone.
    void arrive() noexcept {
        // edge when_all.arrive (release), edge when_all.arrive (acquire): the last sees all results
        if (pending_.fetch_sub(1, acq_rel) != 1) return;
        on_stop_.reset();
        if (!outcome_.all_sent()) {
            outcome_.deliver(rcvr_);
        } else if constexpr (sizeof...(Products) != 0) {
            send(typename flat::indices());
        }
    }

    // Which slot, and which value in it, the k-th value of all is.
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
        set_value(static_cast<Rcvr&&>(rcvr_), std::move(slots_.template get<flat::slot(Ks)>()
                                                            .values()
                                                            .template get<flat::element(Ks)>())...);
    }

    [[no_unique_address]] Rcvr rcvr_;
    tolerant_finite_stop_source<Count> source_;
    atomic<std::size_t> pending_{Count};
    when_all_outcome<Sigs> outcome_;
    [[no_unique_address]] product<when_all_slot<Products>...> slots_;
    [[no_unique_address]] stop_registration<stop_token_of_t<env_of_t<Rcvr>>,
                                            request_stop_of<tolerant_finite_stop_source<Count>>>
        on_stop_;
};

template <class State, std::size_t Index>
class when_all_receiver {
public:
    using receiver_concept = receiver_tag;
    explicit when_all_receiver(State& state) noexcept : state_(&state) {}
    template <class... Args>
    void set_value(Args&&... args) && noexcept {
        state_->template value<Index>(static_cast<Args&&>(args)...);
    }
    template <class Error>
    void set_error(Error&& error) && noexcept {
        state_->error(static_cast<Error&&>(error));
    }
    void set_stopped() && noexcept { state_->stopped(); }
    auto get_env() const noexcept { return state_->template child_env<Index>(); }

private:
    State* state_;
};

// One child's operation, constructed in place.
template <std::size_t Index, class Child, class State>
struct when_all_child_operation {
    using child_receiver = when_all_receiver<State, Index>;
    static constexpr bool nothrow = nothrow_connectable<Child, child_receiver>;
    when_all_child_operation(Child&& child, State& state) noexcept(nothrow)
        : operation(execution::connect(static_cast<Child&&>(child), child_receiver(state))) {}
    connect_result_t<Child, child_receiver> operation;
};

template <class Indices, class Rcvr, class... Children>
class when_all_operation;
template <std::size_t... Is, class Rcvr, class... Children>
class when_all_operation<std::index_sequence<Is...>, Rcvr, Children...> {
    static constexpr std::size_t count = sizeof...(Children);
    template <std::size_t Index, class Child>
    using child_signatures =
        completion_signatures_of_t<Child, when_all_env_t<count, Index, env_of_t<const Rcvr&>>>;
    using values =
        when_all_values<typename when_all_child<child_signatures<Is, Children>>::values...>;
    template <class... Lists>
    static auto slots_of(type_list<Lists...>)
        -> std::conditional_t<values::sends, typename concatenated<Lists...>::type, type_list<>>;
    using slots = decltype(slots_of(
        type_list<typename when_all_child<child_signatures<Is, Children>>::values...>()));
    using state_type =
        when_all_state<count, Rcvr, when_all_signatures_t<child_signatures<Is, Children>...>,
                       slots>;

    struct operations : when_all_child_operation<Is, Children, state_type>... {
        template <class Sndr>
        operations(Sndr&& sndr, state_type& state) noexcept(
            (when_all_child_operation<Is, Children, state_type>::nothrow && ...))
            : when_all_child_operation<Is, Children, state_type>(
                  static_cast<Children&&>(sndr.children.template get<Is>()), state)... {}
    };

public:
    using operation_state_concept = operation_state_tag;

    template <class Sndr>
    when_all_operation(Sndr&& sndr, Rcvr rcvr) noexcept(
        std::is_nothrow_constructible_v<operations, Sndr, state_type&>)
        : state_(static_cast<Rcvr&&>(rcvr)), operations_(static_cast<Sndr&&>(sndr), state_) {}
    when_all_operation(when_all_operation&&) = delete;
    ~when_all_operation() {
        COPPICE_CHECK(!started_ || state_.over(),
                      "an operation of when_all was destroyed while it was running");
    }

    // The last child's start may end this operation's life.
    void start() & noexcept {
        COPPICE_CHECK(!started_, "an operation of when_all was started twice");
        started_ = true;
        state_.listen();
        (execution::start(
             static_cast<when_all_child_operation<Is, Children, state_type>&>(operations_)
                 .operation),
         ...);
    }

private:
    state_type state_;
    operations operations_;
    bool started_ = false;
};

// The domains in which the children of a when_all may end it with Tag.
template <class Tag, class Env, class Indices, class... Children>
struct when_all_domains;
template <class Tag, class Env, std::size_t... Is, class... Children>
struct when_all_domains<Tag, Env, std::index_sequence<Is...>, Children...> {
    template <class Child, class ChildEnv>
    using in_any_way = typename concatenated<domains_with<set_value_t, Child, ChildEnv>,
                                             domains_with<set_error_t, Child, ChildEnv>,
                                             domains_with<set_stopped_t, Child, ChildEnv>>::type;
    using type = typename concatenated<
        in_any_way<Children, when_all_env_t<sizeof...(Children), Is, Env>>...>::type;
};
template <class Env, std::size_t... Is, class... Children>
struct when_all_domains<set_value_t, Env, std::index_sequence<Is...>, Children...> {
    using type = typename concatenated<
        domains_with<set_value_t, Children, when_all_env_t<sizeof...(Children), Is, Env>>...>::type;
};

// Decomposes as [tag, data, children...].
template <class... Children>
struct when_all_sender {
    using sender_concept = sender_tag;
    using tag_type = when_all_t;
    using decomposable = void;

    product<Children...> children;

    template <class... Inits>
    constexpr explicit when_all_sender(construct_each, Inits&&... inits) noexcept(
        (std::is_nothrow_constructible_v<Children, Inits> && ...))
        : children(construct_each(), static_cast<Inits&&>(inits)...) {}

    // Values are sent where one of the children sent its own; failures where any of them ended.
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
        std::is_nothrow_constructible_v<
            when_all_operation<std::index_sequence_for<Children...>, Rcvr, Children...>,
            when_all_sender, Rcvr>)
        -> when_all_operation<std::index_sequence_for<Children...>, Rcvr, Children...> {
        return {static_cast<when_all_sender&&>(*this), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
        requires(std::copy_constructible<Children> && ...)
    auto connect(Rcvr rcvr) const& noexcept(
        std::is_nothrow_constructible_v<
            when_all_operation<std::index_sequence_for<Children...>, Rcvr, const Children&...>,
            const when_all_sender&, Rcvr>)
        -> when_all_operation<std::index_sequence_for<Children...>, Rcvr, const Children&...> {
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
            like_t<Self, Children>, when_all_env_t<sizeof...(Children), Is, Env>>...>();
    }
};

// Sends all values together. At least one sender. Cost: no allocation, one atomic operation per
// child.
struct when_all_t {
    template <sender... Sndrs>
        requires(sizeof...(Sndrs) != 0)
    constexpr auto operator()(Sndrs&&... sndrs) const {
        using result = when_all_sender<std::decay_t<Sndrs>...>;
        static_assert(pipeline_check<result>::done);
        return result(construct_each(), static_cast<Sndrs&&>(sndrs)...);
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

    product<Children...> children;

    template <class... Inits>
    constexpr explicit when_all_with_variant_sender(construct_each, Inits&&... inits) noexcept(
        (std::is_nothrow_constructible_v<Children, Inits> && ...))
        : children(construct_each(), static_cast<Inits&&>(inits)...) {}

    constexpr env<> get_env() const noexcept { return {}; }
    // Without an environment it is not transformed.
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        using Same = when_all_sender<into_variant_sender<Children>...>;
        return signatures_of<like_t<std::remove_cvref_t<Self>, Same>, Env...>();
    }
};

// The same for senders with several value completions: sends a variant of tuples for each.
struct when_all_with_variant_t {
    template <sender... Sndrs>
        requires(sizeof...(Sndrs) != 0)
    constexpr auto operator()(Sndrs&&... sndrs) const {
        return when_all_with_variant_sender<std::decay_t<Sndrs>...>(construct_each(),
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
