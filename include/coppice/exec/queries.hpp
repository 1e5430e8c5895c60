// The query objects of [exec.queries]: what senders, receivers, and schedulers can be asked.
#pragma once
// Each is a function object: query(object) calls object.query(tag), which must not throw. Queries
// that the draft has in std are in coppice::, those of std::execution in coppice::execution::.

#include <coppice/exec/env.hpp>
#include <coppice/exec/internal/completion_query.hpp>
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

// The type of get_allocator. Source: [exec.get.allocator].
struct get_allocator_t : forwarding_query_t {
    // Returns the allocator for what an operation in `env` allocates.
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

// The type of get_stop_token. Source: [exec.get.stop.token].
struct get_stop_token_t {
    // Returns the token through which an operation in `env` learns of a stop request;
    // never_stop_token if `env` names none.
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

// The type that a scheduler names as scheduler_concept.
struct scheduler_tag {};

// The type of get_completion_scheduler<Tag>. Source: [exec.get.compl.sched].
template <class Tag>
struct get_completion_scheduler_t {
    // Returns the scheduler on which a sender with the attributes `object` completes with Tag. If
    // `object` is a scheduler: the one on which it runs its work.
    template <class Q, class... Envs>
        requires internal::completion_tag<Tag> &&
                 (internal::try_queryable<Q, get_completion_scheduler_t, Envs...> ||
                  (sizeof...(Envs) != 0 && internal::declares_scheduler<Q>))
    constexpr auto operator()(const Q& object, const Envs&... envs) const noexcept {
        if constexpr (internal::try_queryable<Q, get_completion_scheduler_t, Envs...>) {
            auto settled = internal::settled(
                internal::try_query<get_completion_scheduler_t>(object, envs...), envs...);
            static_assert(internal::declares_scheduler<decltype(settled)>,
                          "get_completion_scheduler must return a scheduler");
            return settled;
        } else {
            return Q(object);
        }
    }
    static constexpr bool query(forwarding_query_t) noexcept { return true; }
};
// Returns the scheduler on which a sender completes with Tag. Source: [exec.get.compl.sched].
template <class Tag>
inline constexpr get_completion_scheduler_t<Tag> get_completion_scheduler{};

// Returns the domain whose customizations apply to a sender where it completes with Tag; with void,
// the domain of the sender as a whole. Source: [exec.get.compl.domain].
template <class Tag>
struct get_completion_domain_t {
    // Returns the domain of `Q` in the environments. Not callable if it is not known.
    template <class Q, class... Envs>
        requires(std::is_void_v<Tag> || internal::completion_tag<Tag>) &&
                (!std::is_same_v<internal::found_domain<Tag, Q, Envs...>, internal::type_list<>>)
    constexpr auto operator()(const Q&, const Envs&...) const noexcept {
        return internal::only_of(internal::found_domain<Tag, Q, Envs...>());
    }
    static constexpr bool query(forwarding_query_t) noexcept { return true; }
};
template <class Tag = void>
inline constexpr get_completion_domain_t<Tag> get_completion_domain{};

// Returns the scheduler that an environment belongs to. Source: [exec.get.scheduler].
struct get_scheduler_t {
    template <class Env>
        requires has_query<Env, get_scheduler_t>
    constexpr auto operator()(const Env& env) const noexcept {
        static_assert(noexcept(env.query(*this)), "get_scheduler must not throw");
        static_assert(internal::declares_scheduler<decltype(env.query(*this))>,
                      "get_scheduler must return a scheduler");
        return get_completion_scheduler<set_value_t>(env.query(*this),
                                                     internal::hide_scheduler<Env>(env));
    }
    static constexpr bool query(forwarding_query_t) noexcept { return true; }
};
inline constexpr get_scheduler_t get_scheduler{};

// The type of get_domain. Source: [exec.get.domain].
struct get_domain_t {
    // Returns the domain of operations that start in `env`: the domain that `env` names, otherwise
    // its scheduler's domain, otherwise default_domain.
    template <class Env>
    constexpr auto operator()(const Env& env) const noexcept {
        if constexpr (has_query<Env, get_domain_t>) {
            return std::decay_t<decltype(env.query(*this))>();
        } else if constexpr (has_query<Env, get_scheduler_t>) {
            using Sch = internal::call_result_t<get_scheduler_t, const Env&>;
            return internal::call_result_t<get_completion_domain_t<set_value_t>, const Sch&,
                                           const internal::hide_scheduler<Env>&>();
        } else {
            return typename internal::default_domain_for<Env>::type();
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
        static_assert(internal::declares_scheduler<decltype(env.query(*this))>,
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
        static_assert(internal::declares_scheduler<decltype(env.query(*this))>,
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

// The type of get_forward_progress_guarantee. Source: [exec.get.fwd.progress].
struct get_forward_progress_guarantee_t {
    // Returns what a scheduler's execution agents guarantee; weakly_parallel if it does not say.
    template <internal::declares_scheduler Sch>
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
