// fwd_env: what an adaptor passes to its child of the environment of its receiver.
#pragma once
// Source: FWD-ENV and JOIN-ENV of [exec.snd.expos].

#include <coppice/exec/env.hpp>

namespace coppice::execution::internal {

// The part of an environment that passes through an adaptor: forwarding queries.
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
using fwd_env_t = decltype(internal::forward_env(std::declval<Env>()));

// The environment that a child sees if its adaptor changes nothing.
template <class Rcvr>
using child_env_t = fwd_env_t<env_of_t<const Rcvr&>>;
template <class Rcvr>
constexpr child_env_t<Rcvr> child_env(const Rcvr& rcvr) noexcept {
    return internal::forward_env(execution::get_env(rcvr));
}

// First answers before Second.
template <class First, class Second>
using join_env_t = env<First, Second>;

}  // namespace coppice::execution::internal
