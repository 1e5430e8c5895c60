// The sender of when_any.
#pragma once
// join.hpp says how the children meet, and what a stop from outside does.
//
//   decided_   false -> true, by the first value or error; the child that sets it stores the result

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/internal/alternatives.hpp>
#include <coppice/exec/internal/join.hpp>

namespace coppice::execution {
struct when_any_t;
}

namespace coppice::execution::internal {

template <std::size_t Count, class Rcvr, class Sigs>
class when_any_state : public join_state<when_any_state<Count, Rcvr, Sigs>, Rcvr,
                                         tolerant_finite_stop_source<Count>> {
public:
    static constexpr char name[] = "when_any";

    template <class Sndr>
    when_any_state(Rcvr rcvr, const Sndr&) noexcept
        : when_any_state::join_state(static_cast<Rcvr&&>(rcvr), Count) {}

    template <class... Args>
    void value(std::size_t, Args&&... args) noexcept {
        decide(set_value_t(), static_cast<Args&&>(args)...);
    }
    template <class Error>
    void error(Error&& error) noexcept {
        decide(set_error_t(), static_cast<Error&&>(error));
    }
    void stopped(std::size_t) noexcept { this->arrive(); }
    void complete() noexcept {
        if (result_.empty()) {
            set_stopped(static_cast<Rcvr&&>(this->rcvr_));
        } else {
            result_.deliver(this->rcvr_);
        }
    }

private:
    template <class Tag, class... Args>
    void decide(Tag tag, Args&&... args) noexcept {
        // relaxed: only decides which child stores the result; arrive() publishes it
        const bool first = !decided_.exchange(true, relaxed);
        if (first) result_.keep(tag, static_cast<Args&&>(args)...);
        this->arrive(first);
    }

    atomic<bool> decided_{false};
    completion_store<Sigs> result_;  // written by the child that set decided_
};

template <class Indices, class Rcvr, class... Children>
struct when_any_types;
template <std::size_t... Is, class Rcvr, class... Children>
struct when_any_types<std::index_sequence<Is...>, Rcvr, Children...> {
    static constexpr std::size_t count = sizeof...(Children);
    using Sigs = signatures_union_t<completion_signatures_of_t<
        Children, join_child_env_t<count, Is, env_of_t<const Rcvr&>>>...>;
    using state = when_any_state<count, Rcvr, Sigs>;
    using children = join_children<state, std::index_sequence<Is...>, Children...>;
};
template <class Rcvr, class... Children>
using when_any_operation =
    join_operation<when_any_types<std::index_sequence_for<Children...>, Rcvr, Children...>>;

template <class... Children>
struct when_any_sender : join_sender<when_any_t, Children...> {
    using join_sender<when_any_t, Children...>::join_sender;

    constexpr env<> get_env() const noexcept { return {}; }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        using Sigs = decltype(signatures<Self, Env...>(std::index_sequence_for<Children...>()));
        return internal::transform_if_valid<when_any_delivered, Sigs>();
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && -> when_any_operation<Rcvr, Children...> {
        return {static_cast<when_any_sender&&>(*this), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
        requires(std::copy_constructible<Children> && ...)
    auto connect(Rcvr rcvr) const& -> when_any_operation<Rcvr, const Children&...> {
        return {*this, static_cast<Rcvr&&>(rcvr)};
    }

private:
    template <class Sigs>
    struct when_any_delivered;
    template <class... Fns>
    struct when_any_delivered<completion_signatures<Fns...>> {
        using complete =
            set_insert_t<delivered_signatures_t<completion_signatures<Fns...>>, set_stopped_t()>;
        using type = std::conditional_t<
            (stores_results<Fns> && ...), complete,
            pipeline_error<in_algorithm<when_any_t>, got<Fns...>, wanted<decay_copyable_results>>>;
    };
    template <class Self, std::size_t... Is>
    static consteval auto signatures(std::index_sequence<Is...>) noexcept {
        return signatures_union_t<signatures_of<like_t<Self, Children>>...>();
    }
    template <class Self, class Env, std::size_t... Is>
    static consteval auto signatures(std::index_sequence<Is...>) noexcept {
        return signatures_union_t<signatures_of<
            like_t<Self, Children>, join_child_env_t<sizeof...(Children), Is, Env>>...>();
    }
};

}  // namespace coppice::execution::internal
