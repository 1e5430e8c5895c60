// Environments: prop, env, and get_env.
#pragma once
// An environment answers queries: env.query(tag, args...). Environments are small values or hold
// pointers. Queries do not throw. Source: [exec.queryable], [exec.envs].

#include <coppice/exec/internal/product.hpp>

#include <exception>

namespace coppice {

// The type of forwarding_query. Source: [exec.fwd.env].
struct forwarding_query_t {
    // Returns true if adaptors pass `query` on from their receiver to their child: its query() of
    // this tag says so, or it is derived from forwarding_query_t.
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

// A query that adaptors pass on.
template <class Query>
concept is_forwarding_query = forwarding_query(Query{});

// An environment that answers a query with these arguments.
template <class Env, class Query, class... Args>
concept has_query = requires(const Env& env, Query query, Args&&... args) {
    env.query(query, static_cast<Args&&>(args)...);
};

namespace internal {

template <class ValueType>
struct prop_like {
    // Never called. Defined because naming the type of a query may instantiate the query.
    const ValueType& query(auto) const noexcept { std::terminate(); }
};

}  // namespace internal

// A queryable object with one answer. Source: [exec.prop].
template <class QueryTag, class ValueType>
struct prop {
    [[no_unique_address]] QueryTag query_tag;  // the query that it answers
    [[no_unique_address]] ValueType value;     // the answer

    // Holds `v`. A std::reference_wrapper is unwrapped: the prop then refers to its object.
    constexpr prop(QueryTag tag,
                   ValueType v) noexcept(std::is_nothrow_constructible_v<ValueType, ValueType>)
        : query_tag(tag), value(static_cast<ValueType&&>(v)) {}
    prop(const prop&) = default;
    prop(prop&&) = default;
    prop& operator=(const prop&) = delete;

    constexpr const ValueType& query(QueryTag, auto&&...) const noexcept {
        static_assert(internal::callable<QueryTag, internal::prop_like<ValueType>>,
                      "prop's first argument must be a query object");
        return value;
    }
};
template <class QueryTag, class ValueType>
prop(QueryTag, ValueType) -> prop<QueryTag, std::unwrap_reference_t<ValueType>>;

// Joins several queryable objects. The first object that can answer a query answers it. Source:
// [exec.env].
template <internal::queryable... Envs>
struct env {
    // Holds each of `envs`. A std::reference_wrapper is unwrapped.
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

}  // namespace coppice::execution
