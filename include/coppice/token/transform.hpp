// completion_token_transform: one function that makes an operation for any completion token.
#pragma once
// The initiating function of an operation takes a token as its last argument. Without knowing what
// the token is, it says how the operation starts:
//
//   template <class Token = use_await_t>
//   auto read_sensor(int id, Token&& token = {}) {
//       return completion_token_transform<void(std::error_code, double)>(
//           std::forward<Token>(token),
//           [id](completion<double> done) noexcept { start_reading(id, done); });
//   }
//
// The initiation is moved into the operation's state, and called there once, as an l-value. It
// stays there until the operation completes. It may therefore hold what the operating system needs
// while the operation runs, so nothing else has to be allocated.
//
// An initiation may also have these members: `name`, for messages; `failure()`, which says what
// failed and on which object (completion.hpp); `get_env()`, its attributes as a sender
// (use_await.hpp); `drive()`, by which a blocked thread runs the loop that completes the operation,
// and `ready()`, by which it tries the operation first (block.hpp); and `completes_inside = false`,
// for a cheaper wait (inline_start.hpp).
//
// A token is use_await or use_await[ec] (use_await.hpp), a callable void(std::error_code, R...)
// (callback.hpp), use_future, block or block[ec], one of the last four with an environment
// (bind_env.hpp), or an object of a user's class with the member
//
//   template <class... R, class Initiation>
//   auto initiate(signature<R...>, Initiation&& initiation) const;
//
// which keeps the initiation and calls it with a completion<R...> of a completion_state<R...>.
//
// Source: P0055R1; the error code in the signature and the type of the initiation are ours.

#include <coppice/token/bind_env.hpp>
#include <coppice/token/block.hpp>
#include <coppice/token/callback.hpp>
#include <coppice/token/internal/callback_state.hpp>
#include <coppice/token/signature.hpp>
#include <coppice/token/use_await.hpp>
#include <coppice/token/use_future.hpp>

namespace coppice {

namespace internal {

template <class Token, class Initiation, class... R>
concept initiating_token = requires(Token&& token, Initiation&& initiation) {
    static_cast<Token&&>(token).initiate(signature<R...>(), static_cast<Initiation&&>(initiation));
};

}  // namespace internal

// True if initiating with this token throws nothing.
template <class Token>
inline constexpr bool nothrow_token =
    std::is_same_v<std::remove_cvref_t<Token>, use_await_t> ||
    std::is_same_v<std::remove_cvref_t<Token>, internal::await_with_error>;

namespace internal {

template <class Token>
inline constexpr bool is_bound_token = false;
template <class Env, class Token>
inline constexpr bool is_bound_token<bound_token<Env, Token>> = true;

template <class Signature>
struct token_transform {
    static_assert(execution::internal::always_false<Signature>,
                  "the signature of an operation is void(std::error_code, Results...)");
    static void apply(auto&&...) {}
};

template <class... R>
struct token_transform<void(std::error_code, R...)> {
    template <class Token, class Initiation>
    static decltype(auto) apply(Token&& token, Initiation&& initiation) {
        using plain_token = std::remove_cvref_t<Token>;
        if constexpr (initiating_token<Token, Initiation, R...>) {
            return static_cast<Token&&>(token).initiate(signature<R...>(),
                                                        static_cast<Initiation&&>(initiation));
        } else if constexpr (completion_callable<std::decay_t<Token>, R...>) {
            callback_state<std::decay_t<Token>, std::decay_t<Initiation>, R...>::initiate(
                static_cast<Token&&>(token), static_cast<Initiation&&>(initiation));
        } else if constexpr (is_bound_token<plain_token>) {
            return token.token().initiate_in(token.get_env(), signature<R...>(),
                                             static_cast<Initiation&&>(initiation));
        } else {
            static_assert(completion_callable<std::decay_t<Token>, R...>,
                          "a completion token is use_await, use_future, block, a callable "
                          "void(std::error_code, Results...), or a class with initiate()");
        }
    }
};

}  // namespace internal

// Initiates the operation, and returns what the token returns. Threads, Blocks, Errors: as the
// token says. Cost: nothing in addition to the token's.
template <class Signature, class Token, class Initiation>
auto completion_token_transform(Token&& token,
                                Initiation&& initiation) noexcept(nothrow_token<Token>)
    -> decltype(auto) {
    return internal::token_transform<Signature>::apply(static_cast<Token&&>(token),
                                                       static_cast<Initiation&&>(initiation));
}

}  // namespace coppice
