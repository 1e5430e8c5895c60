// bind_env: gives a token an environment: a stop token, deadline, allocator, or scheduler.
#pragma once
// For the tokens that have no environment of their own: callables, use_future, and block. A task or
// a sender that waits with use_await passes its own environment instead.

#include <coppice/exec/env.hpp>

#include <concepts>
#include <utility>

namespace coppice {

namespace internal {

template <class Env, class Token>
class bound_token {
public:
    template <class E, class T>
    bound_token(E&& env, T&& token)
        : env_(static_cast<E&&>(env)), token_(static_cast<T&&>(token)) {}

    const Env& get_env() const noexcept { return env_; }
    const Token& token() const noexcept { return token_; }
    template <class... Args>
        requires std::invocable<Token, Args...>
    decltype(auto) operator()(Args&&... args) && noexcept(
        std::is_nothrow_invocable_v<Token, Args...>) {
        return static_cast<Token&&>(token_)(static_cast<Args&&>(args)...);
    }
    template <class... Args>
        requires std::invocable<Token&, Args...>
    decltype(auto) operator()(Args&&... args) & noexcept(
        std::is_nothrow_invocable_v<Token&, Args...>) {
        return token_(static_cast<Args&&>(args)...);
    }

private:
    [[no_unique_address]] Env env_;
    [[no_unique_address]] Token token_;
};

}  // namespace internal

// Returns a token that does what `token` does, in the environment `env`. `token` is a callable,
// use_future, block, or block[ec]. The environment may answer get_stop_token and get_deadline,
// which say when the operation must end early; get_allocator for the operation's state, except with
// block; and get_scheduler for a callable (callback.hpp). execution::get_env() of the result
// returns `env`. Threads: any. Errors: what copying or moving the arguments throws. Cost: no
// allocation.
template <execution::internal::queryable Env, class Token>
auto bind_env(Env&& env, Token&& token) {
    return internal::bound_token<std::decay_t<Env>, std::decay_t<Token>>(
        static_cast<Env&&>(env), static_cast<Token&&>(token));
}

}  // namespace coppice
