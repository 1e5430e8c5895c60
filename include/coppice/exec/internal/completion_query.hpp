// How get_completion_scheduler and get_completion_domain find their answer.
#pragma once
// Source: TRY-QUERY, RECURSE-QUERY, and HIDE-SCHED of [exec.get.compl.sched].

#include <coppice/exec/env.hpp>

namespace coppice::execution {

struct set_value_t;
struct set_error_t;
struct set_stopped_t;
struct scheduler_tag;
struct default_domain;
struct get_scheduler_t;
struct get_domain_t;
template <class Tag>
struct get_completion_scheduler_t;
template <class Tag = void>
struct get_completion_domain_t;

namespace internal {

template <class Tag>
concept completion_tag = one_of<Tag, set_value_t, set_error_t, set_stopped_t>;

// What the scheduler concept requires of a type's declarations; enough to recognize one in a query.
template <class T>
concept declares_scheduler =
    std::derived_from<typename std::remove_cvref_t<T>::scheduler_concept, scheduler_tag>;

// Names default_domain, which is incomplete here, so that it is needed only later (domain.hpp).
template <class>
struct default_domain_for {
    using type = default_domain;
};

// Asks with the arguments if the object accepts them, otherwise without.
template <class Q, class Tag, class... Args>
concept try_queryable = has_query<Q, Tag, Args...> || has_query<Q, Tag>;
template <class Tag, class Q, class... Args>
    requires try_queryable<Q, Tag, Args...>
constexpr decltype(auto) try_query(const Q& object, const Args&... args) noexcept {
    if constexpr (has_query<Q, Tag, const Args&...>) {
        static_assert(noexcept(object.query(Tag(), args...)), "a query must not throw");
        return object.query(Tag(), args...);
    } else {
        static_assert(noexcept(object.query(Tag())), "a query must not throw");
        return object.query(Tag());
    }
}

// An environment without its scheduler and domain, so that asking a scheduler about itself in this
// environment terminates.
template <class Env>
class hide_scheduler {
public:
    constexpr explicit hide_scheduler(const Env& base) noexcept : base_(base) {}
    template <class Query, class... Args>
        requires(!one_of<Query, get_scheduler_t, get_domain_t>) && has_query<Env, Query, Args...>
    constexpr decltype(auto) query(Query tag, Args&&... args) const
        noexcept(noexcept(std::declval<const Env&>().query(tag, static_cast<Args&&>(args)...))) {
        return base_.query(tag, static_cast<Args&&>(args)...);
    }

private:
    const Env& base_;
};

// A scheduler may complete on another one; follows them until one names itself.
template <class Sch, class... Envs>
constexpr auto settled(Sch sch, const Envs&... envs) noexcept {
    using ask = get_completion_scheduler_t<set_value_t>;
    if constexpr (!try_queryable<Sch, ask, Envs...>) {
        return sch;
    } else {
        auto next = try_query<ask>(sch, envs...);
        if constexpr (std::is_same_v<decltype(next), Sch>) {
            while (!(next == sch)) {
                sch = next;
                next = try_query<ask>(sch, envs...);
            }
            return sch;
        } else {
            return internal::settled(std::move(next), envs...);
        }
    }
}

template <class Tag, class Q, class... Envs>
consteval auto find_domain_by_scheduler() noexcept {
    if constexpr (callable<get_completion_scheduler_t<Tag>, const Q&, const Envs&...>) {
        using Sch = call_result_t<get_completion_scheduler_t<Tag>, const Q&, const Envs&...>;
        using ask = get_completion_domain_t<set_value_t>;
        if constexpr (try_queryable<Sch, ask, Envs...>) {
            return type_list<std::decay_t<decltype(try_query<ask>(
                std::declval<const Sch&>(), std::declval<const Envs&>()...))>>();
        } else if constexpr (has_query<Sch, get_domain_t>) {
            return type_list<std::decay_t<decltype(std::declval<const Sch&>().query(
                std::declval<get_domain_t>()))>>();
        } else if constexpr (declares_scheduler<Q> && sizeof...(Envs) != 0) {
            return type_list<default_domain>();
        } else {
            return type_list<>();
        }
    } else {
        return type_list<>();
    }
}
// Returns a list of the domain of a Q; empty if it is not known.
template <class Tag, class Q, class... Envs>
consteval auto find_domain() noexcept {
    using ask = get_completion_domain_t<Tag>;
    if constexpr (try_queryable<Q, ask, Envs...>) {
        return type_list<std::decay_t<decltype(try_query<ask>(std::declval<const Q&>(),
                                                              std::declval<const Envs&>()...))>>();
    } else if constexpr (std::is_void_v<Tag>) {
        return internal::find_domain<set_value_t, Q, Envs...>();
    } else {
        return internal::find_domain_by_scheduler<Tag, Q, Envs...>();
    }
}
template <class Tag, class Q, class... Envs>
using found_domain = decltype(find_domain<Tag, Q, Envs...>());
template <class Domain>
constexpr Domain only_of(type_list<Domain>) noexcept {
    return Domain();
}

}  // namespace internal

}  // namespace coppice::execution
