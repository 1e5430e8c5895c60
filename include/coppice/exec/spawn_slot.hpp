// spawn_slot: memory for one spawned operation, so that spawn allocates nothing.
#pragma once
//   spawn(sender, slot)           slot is a spawn_slot<Sender>; the operation is in no scope
//   spawn(sender, token, slot)    slot is a spawn_slot<Sender, Token>; it is in the token's scope
//
// Sender is the type of the sender without reference. The order of the arguments is that of spawn
// with the slot last. An environment is given by write_env around the sender, an error handler by
// upon_error in it. Source: ours.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/internal/spawn_state.hpp>

namespace coppice::execution {

namespace internal {

// The token of a slot that is in no scope.
struct no_scope_token {
    struct association {
        constexpr explicit operator bool() const noexcept { return true; }
        constexpr association try_associate() const noexcept { return {}; }
    };
    constexpr association try_associate() const noexcept { return {}; }
    template <sender Sndr>
    constexpr Sndr&& wrap(Sndr&& sndr) const noexcept {
        return static_cast<Sndr&&>(sndr);
    }
};

}  // namespace internal

// Holds one spawned operation at a time. A slot may be used again when its operation has ended.
// Threads: spawn by one thread at a time; is_busy() by any. Lifetime: longer than its operation.
// Misuse: spawning into a busy slot, or destroying it, ends the process. Cost: the size of the
// operation; no allocation.
template <class Sndr, class Token = internal::no_scope_token>
class spawn_slot final : internal::spawn_state_base, immovable {
    static_assert(std::is_same_v<Sndr, std::decay_t<Sndr>>,
                  "spawn_slot<Sender>: the type of the sender, without reference");

public:
    spawn_slot() noexcept = default;
    ~spawn_slot() {
        COPPICE_CHECK(
            !is_busy(),
            "a spawn_slot was destroyed while its operation was running: join its scope first");
    }

    // Returns true until the operation has ended, and has been destroyed. What the operation did is
    // then visible, and the slot may be used again or destroyed. In a scope, the operation leaves
    // the scope after that, so a join of the scope says so too.
    bool is_busy() const noexcept {
        // edge spawn_slot.free (acquire): the operation has ended
        return busy_.load(coppice::internal::acquire);
    }

    // For spawn. Connects and starts the operation, unless the scope refuses. Errors: what
    // connecting throws; the slot is then free.
    void spawn_here(Sndr&& sndr, const Token& token, const std::source_location& where) {
        COPPICE_CHECK(!is_busy(),
                      "spawn: the spawn_slot is busy with its last operation: wait for that, or "
                      "use another slot");
        content& made = content_.construct(token, static_cast<Sndr&&>(sndr),
                                           static_cast<internal::spawn_state_base&>(*this), where);
        made.assoc = token.try_associate();
        if (!made.assoc) return content_.destroy();
        // relaxed: the operation's start publishes it to other threads
        busy_.store(true, coppice::internal::relaxed);
        made.listing.enter(made.assoc);
        execution::start(made.operation);
    }

private:
    using association = decltype(std::declval<const Token&>().try_associate());
    using wrapped =
        decltype(internal::wrap_spawned(std::declval<const Token&>(), std::declval<Sndr>()));
    using env_type = decltype(internal::spawned_env(std::declval<const std::decay_t<wrapped>&>(),
                                                    std::declval<const Token&>(), env<>()));
    using spawned = decltype(write_env(std::declval<wrapped>(), std::declval<env_type>()));
    static_assert(internal::spawnable<execution::signatures_of<spawned, env<>>>,
                  "spawn: the sender of a spawn_slot sends values or errors: append then(...) or "
                  "upon_error(...), which return nothing");

    struct content {
        content(const Token& token, Sndr&& sndr, spawn_state_base& slot,
                const std::source_location& where)
            : content(token, internal::wrap_spawned(token, static_cast<Sndr&&>(sndr)), slot, where,
                      0) {}
        template <class Wrapped>
        content(const Token& token, Wrapped&& wrap, spawn_state_base& slot,
                const std::source_location& where, int)
            : operation(execution::connect(with_env(static_cast<Wrapped&&>(wrap), token),
                                           internal::spawn_receiver(slot))),
              listing(where) {}
        template <class Wrapped>
        static spawned with_env(Wrapped&& wrap, const Token& token) {
            auto given = internal::spawned_env(wrap, token, env<>());
            return write_env(static_cast<Wrapped&&>(wrap), std::move(given));
        }
        connect_result_t<spawned, internal::spawn_receiver> operation;
        association assoc{};
        internal::scope_listing listing;
    };

    void complete() noexcept override {
        // Leaves the scope last, because the slot and the scope may be destroyed then.
        [[maybe_unused]] const association leaving =
            static_cast<association&&>(content_.get().assoc);
        content_.destroy();
        // edge spawn_slot.free (release): the operation has ended; *this may be gone
        busy_.store(false, coppice::internal::release);
    }

    manual_lifetime<content> content_;
    // Set by the spawner; reset by the end of the operation.
    coppice::internal::atomic<bool> busy_{false};
};

namespace internal {

template <class T>
inline constexpr bool is_spawn_slot = false;
template <class Sndr, class Token>
inline constexpr bool is_spawn_slot<spawn_slot<Sndr, Token>> = true;

}  // namespace internal

}  // namespace coppice::execution
