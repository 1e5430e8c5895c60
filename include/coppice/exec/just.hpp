// just, just_error, just_stopped: senders that complete at once with what they hold.
#pragma once
// Source: [exec.just].

#include <coppice/exec/internal/just_sender.hpp>

namespace coppice::execution {

// Sends its arguments as values. Errors: none. Cost: no allocation.
struct just_t {
    template <internal::movable_value... Ts>
    constexpr auto operator()(Ts&&... ts) const noexcept(internal::nothrow_decay_copyable<Ts...>) {
        return internal::just_sender<just_t, set_value_t, std::decay_t<Ts>...>(
            internal::construct_each(), static_cast<Ts&&>(ts)...);
    }
};
// Sends its argument as an error.
struct just_error_t {
    template <internal::movable_value Error>
    constexpr auto operator()(Error&& error) const
        noexcept(internal::nothrow_decay_copyable<Error>) {
        return internal::just_sender<just_error_t, set_error_t, std::decay_t<Error>>(
            internal::construct_each(), static_cast<Error&&>(error));
    }
};
// Completes with set_stopped.
struct just_stopped_t {
    constexpr auto operator()() const noexcept {
        return internal::just_sender<just_stopped_t, set_stopped_t>(internal::construct_each());
    }
};
inline constexpr just_t just{};
inline constexpr just_error_t just_error{};
inline constexpr just_stopped_t just_stopped{};

}  // namespace coppice::execution
