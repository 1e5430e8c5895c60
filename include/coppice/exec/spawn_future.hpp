// spawn_future: starts a sender in a scope now, and returns a sender of its result.
#pragma once
// The returned sender is the future. The result is kept until the future is started. A stop request
// that reaches the future stops the operation. Source: [exec.spawn.future].

#include <coppice/exec/internal/spawn_future_sender.hpp>

namespace coppice::execution {

// Starts sndr in token's scope and returns a sender of its result, which completes with set_stopped
// if the scope refuses. Destroying the returned sender requests a stop of the operation, and drops
// its result; the scope still waits for it. Threads: the future may be started and destroyed on any
// thread. What a stop loses: the result. Errors: what allocating or connecting throws; nothing has
// begun then. Cost: one allocation, as in spawn.
struct spawn_future_t {
    template <sender Sndr, scope_token Token, internal::queryable Env = env<>>
    auto operator()(Sndr&& sndr, Token token, Env spawn_env = Env(),
                    std::source_location where = std::source_location::current()) const {
        auto wrapped = token.wrap(static_cast<Sndr&&>(sndr));
        auto allocator = internal::choose_allocator(wrapped, spawn_env);
        auto full_env = internal::spawned_env(wrapped, token, static_cast<Env&&>(spawn_env));
        using Wrapped = decltype(wrapped);
        using FullEnv = decltype(full_env);
        using Sigs = internal::future_signatures_t<Wrapped, FullEnv>;
        if constexpr (!is_completion_signatures<Sigs>) {
            static_assert(internal::diagnosis<Sigs>::reported);
        } else {
            using state =
                internal::spawn_future_state<decltype(allocator), Token, Wrapped, FullEnv>;
            state* const spawned =
                internal::new_with<state>(allocator, allocator, static_cast<Wrapped&&>(wrapped),
                                          token, static_cast<FullEnv&&>(full_env), where);
            spawned->run();
            return internal::spawn_future_sender<Sigs>(*spawned);
        }
    }
};
inline constexpr spawn_future_t spawn_future{};

}  // namespace coppice::execution
