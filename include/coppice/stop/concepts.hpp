// The concepts of stop tokens, stop sources, and stop callbacks; used by everything stoppable.
#pragma once
// Source: [stoptoken.concepts], with P3409R1's relaxed stoppable-source.

#include <coppice/base/version.hpp>

#include <concepts>
#include <type_traits>

namespace coppice {

// The type of a callback that runs CallbackFn when a stop is requested through a Token.
template <class Token, class CallbackFn>
using stop_callback_for_t = typename Token::template callback_type<CallbackFn>;

// A callback function that can be registered through a Token. A token type may limit how many of
// its callbacks are registered at once. Code that is written for any token registers one at a time
// (P3409R1, 5.1).
template <class CallbackFn, class Token, class Initializer = CallbackFn>
concept stoppable_callback_for =
    std::invocable<CallbackFn> && std::constructible_from<CallbackFn, Initializer> && requires {
        typename stop_callback_for_t<Token, CallbackFn>;
    } && std::constructible_from<stop_callback_for_t<Token, CallbackFn>, const Token&, Initializer>;

namespace internal {

// Names a template, so that a concept can require that it exists.
template <template <class> class>
struct type_alias_exists;

// True if a Token and its copies accept one callback at a time. Tokens of sources with slots
// specialize this where they are defined.
template <class Token>
inline constexpr bool takes_one_callback = false;

// Tells apart two sources whose tokens are of one type that accepts one callback. `strict` and
// `tolerant` are the types of the sources. takes_several(token) returns true if the token is of a
// tolerant source, which accepts several callbacks. Specialized where the library has such a
// source.
template <class Token>
struct tolerance;

}  // namespace internal

// A value that says whether a stop was requested, and through which callbacks are registered.
template <class Token>
concept stoppable_token = requires(const Token token) {
    typename internal::type_alias_exists<Token::template callback_type>;
    { token.stop_requested() } noexcept -> std::same_as<bool>;
    { token.stop_possible() } noexcept -> std::same_as<bool>;
    { Token(token) } noexcept;
} && std::copyable<Token> && std::equality_comparable<Token>;

// A token whose type says that no stop is ever requested. The draft's requirement has a function
// parameter, which C++20 cannot evaluate; here the function must be static or the token empty.
template <class Token>
concept unstoppable_token =
    stoppable_token<Token> &&
    (requires { requires std::bool_constant<(!Token::stop_possible())>::value; } ||
     requires {
         requires std::is_empty_v<Token>;
         requires std::bool_constant<(!Token().stop_possible())>::value;
     });

// An object through which a stop is requested. The concept does not ask how it hands out tokens: a
// finite source has a get_token per slot, and none if it has no slots (P3409R1, 5.4.1).
template <class Source>
concept stoppable_source = requires(Source& source, const Source& constant) {
    { constant.stop_possible() } noexcept -> std::same_as<bool>;
    { constant.stop_requested() } noexcept -> std::same_as<bool>;
    { source.request_stop() } -> std::same_as<bool>;
};

}  // namespace coppice
