// spawn: starts a sender in a scope now, and does not return its result.
#pragma once
// Each spawn makes one allocation, unless it is given a spawn_slot, with the allocator of the
// environment, else of the sender, else std::allocator. A scope that records its operations knows
// where each was spawned.
//
//   spawn(sender, scope)                 the sender sends no errors, or the scope consumes them
//   spawn(sender, scope, env)            as above, in the given environment
//   spawn(sender, scope, on_error)       on_error is called with the errors
//   spawn(sender, scope, on_error, env)
//   spawn(sender, scope, slot)           into a spawn_slot, without allocating
//   spawn(sender, slot)                  the same, in no scope
//
// The third argument is on_error if it can be called with one of the sender's errors, or if it is a
// function pointer or has exactly one call operator that is not a template. Otherwise it is an
// environment. Source: [exec.spawn]; on_error is ours.

#include <coppice/exec/internal/spawn_state.hpp>
#include <coppice/exec/spawn_slot.hpp>

namespace coppice::execution {

// Starts sndr in token's scope; does nothing if the scope refuses. The sender must not send values.
// It must handle its errors, unless the scope or on_error does. on_error is called with an error
// where the error is sent, before the scope is left; its result is dropped. If on_error throws, the
// process ends. Errors: what allocating or connecting throws. Cost: one allocation.
struct spawn_t {
    template <sender Sndr, scope_token Token, internal::queryable Third = env<>>
        requires(!internal::is_spawn_slot<Third>)
    void operator()(Sndr&& sndr, Token token, Third third = Third(),
                    std::source_location where = std::source_location::current()) const {
        if constexpr (internal::is_spawn_error_handler<Third, Sndr, Token>()) {
            internal::begin_spawn_handled(static_cast<Sndr&&>(sndr), token,
                                          static_cast<Third&&>(third), env<>(), where);
        } else {
            internal::begin_spawn(static_cast<Sndr&&>(sndr), token, static_cast<Third&&>(third),
                                  where);
        }
    }
    template <sender Sndr, scope_token Token, internal::movable_value OnError,
              internal::queryable Env>
        requires(!std::is_same_v<Env, std::source_location>)
    void operator()(Sndr&& sndr, Token token, OnError on_error, Env spawn_env,
                    std::source_location where = std::source_location::current()) const {
        internal::begin_spawn_handled(static_cast<Sndr&&>(sndr), token,
                                      static_cast<OnError&&>(on_error),
                                      static_cast<Env&&>(spawn_env), where);
    }
    // Start sndr in the slot (spawn_slot.hpp). Errors: what connecting throws. Cost: no allocation.
    template <sender Sndr>
    void operator()(Sndr&& sndr, spawn_slot<std::decay_t<Sndr>>& slot,
                    std::source_location where = std::source_location::current()) const {
        slot.spawn_here(std::decay_t<Sndr>(static_cast<Sndr&&>(sndr)), internal::no_scope_token(),
                        where);
    }
    template <sender Sndr, scope_token Token>
    void operator()(Sndr&& sndr, Token token, spawn_slot<std::decay_t<Sndr>, Token>& slot,
                    std::source_location where = std::source_location::current()) const {
        slot.spawn_here(std::decay_t<Sndr>(static_cast<Sndr&&>(sndr)), token, where);
    }
};
inline constexpr spawn_t spawn{};

}  // namespace coppice::execution
