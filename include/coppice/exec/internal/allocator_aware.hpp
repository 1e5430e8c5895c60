// Makes stored values use the environment's allocator; used by just, then, and others.
#pragma once
// The values of just and the functions of adaptors are copied into the operation. If the receiver's
// environment names an allocator and the value's type uses one, the copy uses that allocator, as
// the draft says. (std::make_obj_using_allocator is in <memory>, which costs more to compile than
// all of this.)
// Source: allocator-aware-forward of [exec.snd.expos], [allocator.uses.construction].

#include <coppice/exec/queries.hpp>

#include <tuple>

namespace coppice::execution::internal {

// True if the environment names an allocator that T uses.
template <class T, class Env>
inline constexpr bool uses_allocator_of = false;
template <class T, class Env>
    requires callable<get_allocator_t, Env>
inline constexpr bool uses_allocator_of<T, Env> =
    std::uses_allocator_v<std::remove_cv_t<T>,
                          std::remove_cvref_t<call_result_t<get_allocator_t, Env>>>;
template <class T, class U, class Env>
    requires callable<get_allocator_t, Env>
inline constexpr bool uses_allocator_of<std::pair<T, U>, Env> =
    uses_allocator_of<T, Env> || uses_allocator_of<U, Env>;
template <class... Ts, class Env>
    requires callable<get_allocator_t, Env>
inline constexpr bool uses_allocator_of<product<Ts...>, Env> = (uses_allocator_of<Ts, Env> || ...);

// Returns a T made from init, with env's allocator if T uses it.
template <class T, class Env, class Init>
constexpr T make_with_allocator_of(const Env& env,
                                   Init&& init) noexcept(!uses_allocator_of<T, const Env&> &&
                                                         std::is_nothrow_constructible_v<T, Init>) {
    if constexpr (!uses_allocator_of<T, const Env&>) {
        return T(static_cast<Init&&>(init));
    } else if constexpr (requires { typename T::first_type; }) {
        using First = typename T::first_type;
        using Second = typename T::second_type;
        return T(internal::make_with_allocator_of<First>(env, static_cast<Init&&>(init).first),
                 internal::make_with_allocator_of<Second>(env, static_cast<Init&&>(init).second));
    } else if constexpr (requires {
                             T(std::allocator_arg, get_allocator(env), static_cast<Init&&>(init));
                         }) {
        return T(std::allocator_arg, get_allocator(env), static_cast<Init&&>(init));
    } else {
        return T(static_cast<Init&&>(init), get_allocator(env));
    }
}
template <class... Ts, class Env, class Init>
constexpr product<Ts...> make_each_with_allocator_of(std::type_identity<product<Ts...>>,
                                                     const Env& env, Init&& init) {
    return static_cast<Init&&>(init).apply([&env](auto&&... values) {
        return product<Ts...>(construct_each(), internal::make_with_allocator_of<Ts>(
                                                    env, static_cast<decltype(values)>(values))...);
    });
}
template <class T>
inline constexpr bool is_product = false;
template <class... Ts>
inline constexpr bool is_product<product<Ts...>> = true;

// Returns what an operation stores of its sender's data, made for the operation's receiver.
template <class Data, class Init, class Rcvr>
constexpr Data forward_with_allocator(Init&& init, const Rcvr& rcvr) noexcept(
    !uses_allocator_of<Data, env_of_t<const Rcvr&>> &&
    std::is_nothrow_constructible_v<Data, Init>) {
    if constexpr (!uses_allocator_of<Data, env_of_t<const Rcvr&>>) {
        return Data(static_cast<Init&&>(init));
    } else if constexpr (is_product<Data>) {
        return internal::make_each_with_allocator_of(
            std::type_identity<Data>(), execution::get_env(rcvr), static_cast<Init&&>(init));
    } else {
        return internal::make_with_allocator_of<Data>(execution::get_env(rcvr),
                                                      static_cast<Init&&>(init));
    }
}

}  // namespace coppice::execution::internal
