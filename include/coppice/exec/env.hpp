// Environments: prop, env, get_env, and how adaptors pass a receiver's environment to their child.
#pragma once
// An environment answers queries: env.query(tag, args...). Environments are small values or hold
// pointers. Queries do not throw. Source: [exec.queryable], [exec.envs], [exec.snd.expos].

#include <coppice/exec/internal/product.hpp>

#include <exception>

namespace coppice {

// Returns true if adaptors pass this query on. Source: [exec.fwd.env].
struct forwarding_query_t {
    template <class Query>
    constexpr bool operator()(const Query& query) const noexcept {
        if constexpr (requires { query.query(*this); }) {
            static_assert(noexcept(query.query(*this)), "forwarding_query must not throw");
            static_assert(std::is_same_v<decltype(query.query(*this)), bool>,
                          "forwarding_query must answer with bool");
            return query.query(*this);
        } else {
            return std::derived_from<Query, forwarding_query_t>;
        }
    }
};
inline constexpr forwarding_query_t forwarding_query{};

}  // namespace coppice

namespace coppice::execution {

template <class Query>
concept is_forwarding_query = forwarding_query(Query{});

template <class Env, class Query, class... Args>
concept has_query = requires(const Env& env, Query query, Args&&... args) {
    env.query(query, static_cast<Args&&>(args)...);
};

template <class ValueType>
struct prop_like {
    // Never called. Defined because naming the type of a query may instantiate the query.
    const ValueType& query(auto) const noexcept { std::terminate(); }
};

// A queryable object with one answer. Source: [exec.prop].
template <class QueryTag, class ValueType>
struct prop {
    [[no_unique_address]] QueryTag query_tag;
    [[no_unique_address]] ValueType value;

    constexpr prop(QueryTag tag,
                   ValueType v) noexcept(std::is_nothrow_constructible_v<ValueType, ValueType>)
        : query_tag(tag), value(static_cast<ValueType&&>(v)) {}
    prop(const prop&) = default;
    prop(prop&&) = default;
    prop& operator=(const prop&) = delete;

    constexpr const ValueType& query(QueryTag, auto&&...) const noexcept {
        static_assert(internal::callable<QueryTag, prop_like<ValueType>>,
                      "prop's first argument must be a query object");
        return value;
    }
};
template <class QueryTag, class ValueType>
prop(QueryTag, ValueType) -> prop<QueryTag, std::unwrap_reference_t<ValueType>>;

// Joins several queryable objects. The first that knows an answer gives it. Source: [exec.env].
template <internal::queryable... Envs>
struct env {
    constexpr explicit(sizeof...(Envs) == 1)
        env(Envs... envs) noexcept((std::is_nothrow_constructible_v<Envs, Envs> && ...))
        : envs_(internal::construct_each(), static_cast<Envs&&>(envs)...) {}
    env(const env&) = default;
    env(env&&) = default;
    env& operator=(const env&) = delete;

    template <class QueryTag, class... Args>
        requires(has_query<Envs, QueryTag, Args...> || ...)
    constexpr decltype(auto) query(QueryTag tag, Args&&... args) const
        noexcept(noexcept(first<QueryTag, Args...>(envs_).query(tag,
                                                                static_cast<Args&&>(args)...))) {
        return first<QueryTag, Args...>(envs_).query(tag, static_cast<Args&&>(args)...);
    }

private:
    template <class QueryTag, class... Args>
    static constexpr const auto& first(const internal::product<Envs...>& envs) noexcept {
        return envs.template get<index_of<QueryTag, Args...>()>();
    }
    template <class QueryTag, class... Args>
    static consteval std::size_t index_of() noexcept {
        const bool knows[] = {has_query<Envs, QueryTag, Args...>...};
        std::size_t i = 0;
        while (!knows[i]) ++i;
        return i;
    }

    [[no_unique_address]] internal::product<Envs...> envs_;
};
template <>
struct env<> {
    constexpr env() noexcept = default;
};
template <class... Envs>
env(Envs...) -> env<std::unwrap_reference_t<Envs>...>;

// Returns a sender's attributes or a receiver's environment; env<>{} if it has none.
// Lifetime: the answer is valid as long as the object. Source: [exec.get.env].
struct get_env_t {
    template <class T>
    constexpr decltype(auto) operator()(const T& object) const noexcept {
        if constexpr (requires { object.get_env(); }) {
            static_assert(noexcept(object.get_env()), "get_env must not throw");
            static_assert(internal::queryable<decltype(object.get_env())>,
                          "get_env must return a queryable object");
            return object.get_env();
        } else {
            return env<>();
        }
    }
};
inline constexpr get_env_t get_env{};

// The environment of a receiver, or the attributes of a sender. Source: [exec.env].
template <class T>
using env_of_t = decltype(get_env(std::declval<T>()));

// The part of an environment that passes through an adaptor: forwarding queries. FWD-ENV of the
// draft.
template <class Env>
class fwd_env {
public:
    constexpr explicit fwd_env(Env&& base) noexcept : base_(static_cast<Env&&>(base)) {}

    template <class Query, class... Args>
        requires is_forwarding_query<Query> && has_query<Env, Query, Args...>
    constexpr decltype(auto) query(Query tag, Args&&... args) const
        noexcept(noexcept(std::declval<const Env&>().query(tag, static_cast<Args&&>(args)...))) {
        return static_cast<const Env&>(base_).query(tag, static_cast<Args&&>(args)...);
    }

private:
    [[no_unique_address]] Env base_;
};

template <class Env>
inline constexpr bool forwards_all = false;  // true if every query passes
template <>
inline constexpr bool forwards_all<env<>> = true;
template <class Env>
inline constexpr bool forwards_all<fwd_env<Env>> = true;

template <class Env>
constexpr decltype(auto) forward_env(Env&& base) noexcept {
    if constexpr (forwards_all<std::remove_cvref_t<Env>>) {
        return static_cast<Env>(base);
    } else {
        return fwd_env<Env>(static_cast<Env&&>(base));
    }
}
template <class Env>
using fwd_env_t = decltype(execution::forward_env(std::declval<Env>()));

// The environment that a child sees if its adaptor changes nothing.
template <class Rcvr>
using child_env_t = fwd_env_t<env_of_t<const Rcvr&>>;
template <class Rcvr>
constexpr child_env_t<Rcvr> child_env(const Rcvr& rcvr) noexcept {
    return execution::forward_env(execution::get_env(rcvr));
}

// First answers before Second. JOIN-ENV of the draft.
template <class First, class Second>
using join_env_t = env<First, Second>;

}  // namespace coppice::execution
