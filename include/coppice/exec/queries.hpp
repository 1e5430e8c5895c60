// The query objects of [exec.queries]: what senders, receivers, and schedulers can be asked.
#pragma once
// Each is a function object: query(object) calls object.query(tag), which must not throw. Queries
// that the draft has in std are in coppice::, those of std::execution in coppice::execution::.

#include <coppice/exec/env.hpp>
#include <coppice/stop/concepts.hpp>
#include <coppice/stop/never.hpp>

namespace coppice {

namespace internal {

// Source: [allocator.requirements.general].
template <class Alloc>
concept simple_allocator = requires(Alloc alloc, std::size_t n) {
    { *alloc.allocate(n) } -> std::same_as<typename Alloc::value_type&>;
    alloc.deallocate(alloc.allocate(n), n);
} && std::copy_constructible<Alloc> && std::equality_comparable<Alloc>;

}  // namespace internal

// Returns the allocator for what an operation allocates. Source: [exec.get.allocator].
struct get_allocator_t : forwarding_query_t {
    template <class Env>
        requires execution::has_query<Env, get_allocator_t>
    constexpr decltype(auto) operator()(const Env& env) const noexcept {
        static_assert(noexcept(env.query(*this)), "get_allocator must not throw");
        static_assert(internal::simple_allocator<std::remove_cvref_t<decltype(env.query(*this))>>,
                      "get_allocator must return an allocator");
        return env.query(*this);
    }
    static constexpr bool query(forwarding_query_t) noexcept { return true; }
};
inline constexpr get_allocator_t get_allocator{};

// Returns the token through which an operation learns of a stop request; never_stop_token if the
// environment names none. Source: [exec.get.stop.token].
struct get_stop_token_t {
    template <class Env>
    constexpr decltype(auto) operator()(const Env& env) const noexcept {
        if constexpr (execution::has_query<Env, get_stop_token_t>) {
            static_assert(noexcept(env.query(*this)), "get_stop_token must not throw");
            static_assert(stoppable_token<std::remove_cvref_t<decltype(env.query(*this))>>,
                          "get_stop_token must return a stoppable_token");
            return env.query(*this);
        } else {
            return never_stop_token();
        }
    }
    static constexpr bool query(forwarding_query_t) noexcept { return true; }
};
inline constexpr get_stop_token_t get_stop_token{};

// The type of an environment's stop token; never_stop_token if it names none.
template <class T>
using stop_token_of_t = std::remove_cvref_t<decltype(get_stop_token(std::declval<T>()))>;

}  // namespace coppice

namespace coppice::execution {

struct set_value_t;
struct set_error_t;
struct set_stopped_t;
struct scheduler_tag {};  // the type that a scheduler names as scheduler_concept
struct default_domain;

// Names default_domain, which is incomplete here, so that it is needed only later (domain.hpp).
template <class>
struct default_domain_for {
    using type = default_domain;
};

template <class Tag>
concept completion_tag = internal::one_of<Tag, set_value_t, set_error_t, set_stopped_t>;

// What the scheduler concept requires of a type's declarations; enough to recognize one in a query.
template <class T>
concept declares_scheduler =
    std::derived_from<typename std::remove_cvref_t<T>::scheduler_concept, scheduler_tag>;

// TRY-QUERY: asks with the arguments if the object accepts them, otherwise without.
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

struct get_scheduler_t;
struct get_domain_t;

// HIDE-SCHED: an environment without its scheduler and domain, so that asking a scheduler about
// itself in this environment terminates.
template <class Env>
class hide_scheduler {
public:
    constexpr explicit hide_scheduler(const Env& base) noexcept : base_(base) {}
    template <class Query, class... Args>
        requires(!internal::one_of<Query, get_scheduler_t, get_domain_t>) &&
                has_query<Env, Query, Args...>
    constexpr decltype(auto) query(Query tag, Args&&... args) const
        noexcept(noexcept(std::declval<const Env&>().query(tag, static_cast<Args&&>(args)...))) {
        return base_.query(tag, static_cast<Args&&>(args)...);
    }

private:
    const Env& base_;
};

// Returns the scheduler on which a sender completes with Tag. Asked of a scheduler: the one on
// which it runs its work. Source: [exec.get.compl.sched].
template <class Tag>
struct get_completion_scheduler_t {
    template <class Q, class... Envs>
        requires completion_tag<Tag> && (try_queryable<Q, get_completion_scheduler_t, Envs...> ||
                                         (sizeof...(Envs) != 0 && declares_scheduler<Q>))
    constexpr auto operator()(const Q& object, const Envs&... envs) const noexcept {
        if constexpr (try_queryable<Q, get_completion_scheduler_t, Envs...>) {
            auto settled = settle(try_query<get_completion_scheduler_t>(object, envs...), envs...);
            static_assert(declares_scheduler<decltype(settled)>,
                          "get_completion_scheduler must return a scheduler");
            return settled;
        } else {
            return Q(object);
        }
    }
    static constexpr bool query(forwarding_query_t) noexcept { return true; }

private:
    // RECURSE-QUERY: a scheduler may complete on another one; follows them until one names itself.
    template <class Sch, class... Envs>
    static constexpr auto settle(Sch sch, const Envs&... envs) noexcept {
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
                return settle(std::move(next), envs...);
            }
        }
    }
};
// Returns the scheduler on which a sender completes with Tag. Source: [exec.get.compl.sched].
template <class Tag>
inline constexpr get_completion_scheduler_t<Tag> get_completion_scheduler{};

// Returns the domain whose customizations apply to a sender where it completes with Tag; with void,
// the domain of the sender as a whole. Source: [exec.get.compl.domain].
template <class Tag = void>
struct get_completion_domain_t {
    template <class Q, class... Envs>
    static consteval auto find() noexcept {
        if constexpr (try_queryable<Q, get_completion_domain_t, Envs...>) {
            return internal::type_list<std::decay_t<decltype(try_query<get_completion_domain_t>(
                std::declval<const Q&>(), std::declval<const Envs&>()...))>>();
        } else if constexpr (std::is_void_v<Tag>) {
            return get_completion_domain_t<set_value_t>::template find<Q, Envs...>();
        } else {
            return find_by_scheduler<Q, Envs...>();
        }
    }
    template <class Q, class... Envs>
    using found = decltype(find<Q, Envs...>());

    template <class Q, class... Envs>
        requires(std::is_void_v<Tag> || completion_tag<Tag>) &&
                (!std::is_same_v<found<Q, Envs...>, internal::type_list<>>)
    constexpr auto operator()(const Q&, const Envs&...) const noexcept {
        return only(found<Q, Envs...>());
    }
    static constexpr bool query(forwarding_query_t) noexcept { return true; }

private:
    template <class Domain>
    static constexpr Domain only(internal::type_list<Domain>) noexcept {
        return Domain();
    }
    template <class Q, class... Envs>
    static consteval auto find_by_scheduler() noexcept {
        if constexpr (internal::callable<get_completion_scheduler_t<Tag>, const Q&,
                                         const Envs&...>) {
            using Sch =
                internal::call_result_t<get_completion_scheduler_t<Tag>, const Q&, const Envs&...>;
            using ask = get_completion_domain_t<set_value_t>;
            if constexpr (try_queryable<Sch, ask, Envs...>) {
                return internal::type_list<std::decay_t<decltype(try_query<ask>(
                    std::declval<const Sch&>(), std::declval<const Envs&>()...))>>();
            } else if constexpr (has_query<Sch, get_domain_t>) {
                return internal::type_list<std::decay_t<decltype(std::declval<const Sch&>().query(
                    std::declval<get_domain_t>()))>>();
            } else if constexpr (declares_scheduler<Q> && sizeof...(Envs) != 0) {
                return internal::type_list<default_domain>();
            } else {
                return internal::type_list<>();
            }
        } else {
            return internal::type_list<>();
        }
    }
};
template <class Tag = void>
inline constexpr get_completion_domain_t<Tag> get_completion_domain{};

// Returns the scheduler that an environment belongs to. Source: [exec.get.scheduler].
struct get_scheduler_t {
    template <class Env>
        requires has_query<Env, get_scheduler_t>
    constexpr auto operator()(const Env& env) const noexcept {
        static_assert(noexcept(env.query(*this)), "get_scheduler must not throw");
        static_assert(declares_scheduler<decltype(env.query(*this))>,
                      "get_scheduler must return a scheduler");
        return get_completion_scheduler<set_value_t>(env.query(*this), hide_scheduler<Env>(env));
    }
    static constexpr bool query(forwarding_query_t) noexcept { return true; }
};
inline constexpr get_scheduler_t get_scheduler{};

// Returns the domain of operations that start in an environment. Source: [exec.get.domain].
struct get_domain_t {
    template <class Env>
    constexpr auto operator()(const Env& env) const noexcept {
        if constexpr (has_query<Env, get_domain_t>) {
            return std::decay_t<decltype(env.query(*this))>();
        } else if constexpr (has_query<Env, get_scheduler_t>) {
            using Sch = internal::call_result_t<get_scheduler_t, const Env&>;
            return internal::call_result_t<get_completion_domain_t<set_value_t>, const Sch&,
                                           const hide_scheduler<Env>&>();
        } else {
            return typename default_domain_for<Env>::type();
        }
    }
    static constexpr bool query(forwarding_query_t) noexcept { return true; }
};
inline constexpr get_domain_t get_domain{};

// Returns the scheduler on which an operation is started. Source: [exec.get.start.scheduler].
struct get_start_scheduler_t {
    template <class Env>
        requires has_query<Env, get_start_scheduler_t>
    constexpr decltype(auto) operator()(const Env& env) const noexcept {
        static_assert(noexcept(env.query(*this)), "get_start_scheduler must not throw");
        static_assert(declares_scheduler<decltype(env.query(*this))>,
                      "get_start_scheduler must return a scheduler");
        return env.query(*this);
    }
    static constexpr bool query(forwarding_query_t) noexcept { return true; }
};
inline constexpr get_start_scheduler_t get_start_scheduler{};

// Returns a scheduler to which blocked work may be delegated.
// Source: [exec.get.delegation.scheduler].
struct get_delegation_scheduler_t {
    template <class Env>
        requires has_query<Env, get_delegation_scheduler_t>
    constexpr decltype(auto) operator()(const Env& env) const noexcept {
        static_assert(noexcept(env.query(*this)), "get_delegation_scheduler must not throw");
        static_assert(declares_scheduler<decltype(env.query(*this))>,
                      "get_delegation_scheduler must return a scheduler");
        return env.query(*this);
    }
    static constexpr bool query(forwarding_query_t) noexcept { return true; }
};
inline constexpr get_delegation_scheduler_t get_delegation_scheduler{};

// Returns the adaptor that a sender wants applied when it is awaited. Source:
// [exec.get.await.adapt].
struct get_await_completion_adaptor_t {
    template <class Env>
        requires has_query<Env, get_await_completion_adaptor_t>
    constexpr decltype(auto) operator()(const Env& env) const noexcept {
        static_assert(noexcept(env.query(*this)), "get_await_completion_adaptor must not throw");
        return env.query(*this);
    }
    static constexpr bool query(forwarding_query_t) noexcept { return true; }
};
inline constexpr get_await_completion_adaptor_t get_await_completion_adaptor{};

// From the strongest guarantee to the weakest. Source: [exec.get.fwd.progress].
enum class forward_progress_guarantee { concurrent, parallel, weakly_parallel };

// Returns what a scheduler's execution agents guarantee; weakly_parallel if it does not say.
// Source: [exec.get.fwd.progress].
struct get_forward_progress_guarantee_t {
    template <declares_scheduler Sch>
    constexpr auto operator()(const Sch& sch) const noexcept {
        if constexpr (has_query<Sch, get_forward_progress_guarantee_t>) {
            static_assert(noexcept(sch.query(*this)), "this query must not throw");
            return sch.query(*this);
        } else {
            return forward_progress_guarantee::weakly_parallel;
        }
    }
};
inline constexpr get_forward_progress_guarantee_t get_forward_progress_guarantee{};

}  // namespace coppice::execution
