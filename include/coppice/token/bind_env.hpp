// bind_env: gives a token an environment: a stop token, deadline, allocator, or scheduler.
#pragma once
// execution::get_env(bind_env(env, callable)) returns env. The environment of use_future and block
// says when the operation gives up. For use_future it also says where the operation's state is
// allocated.

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

template <execution::internal::queryable Env, class Token>
auto bind_env(Env&& env, Token&& token) {
    return internal::bound_token<std::decay_t<Env>, std::decay_t<Token>>(
        static_cast<Env&&>(env), static_cast<Token&&>(token));
}

}  // namespace coppice
