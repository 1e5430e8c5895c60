// event_core, auto_event_core: state and queue of the two events.
#pragma once
// The state of the word:
//
//   unset     not set, and no waiter is linked
//   set       set; a wait completes at once
//   waiting   not set; waiters may be linked
//
// Setting an event that is set changes the word from `set` to `set`, so what the second setter did
// before is visible to the waiters after it. Model: tests/model/event_model.cpp.

#include <coppice/sync/internal/waiter.hpp>

#include <cstdint>
#include <system_error>

namespace coppice::internal {

struct event_states {
    static constexpr std::uint64_t unset = 0;
    static constexpr std::uint64_t set = queue_lock::unit;
    static constexpr std::uint64_t waiting = 2 * queue_lock::unit;
};

// Stays set until it is reset.
class event_core {
    using states = event_states;

public:
    constexpr explicit event_core(bool is_set) noexcept
        : lock_(is_set ? states::set : states::unset) {}

    bool is_set() const noexcept { return lock_.look() == states::set; }
    // Returns true if it was not set. Calls the functions of all waiters.
    bool set() noexcept {
        const std::uint64_t state = lock_.peek(relaxed);
        if (state == states::waiting || !lock_.try_change(state, states::set)) return set_slow();
        return state == states::unset;  // the event may be gone
    }
    void reset() noexcept {
        if (lock_.try_change(states::set, states::unset)) return;
        if (lock_.peek(relaxed) != states::set) return;
        lock_.lock();  // a thread was inside
        if (lock_.state() == states::set) lock_.set_state(states::unset);
        lock_.unlock();
    }

    queue_lock& queue() noexcept { return lock_; }
    // Returns true if the event is set. Requires the lock of the queue.
    bool attempt() noexcept { return lock_.state() == states::set; }
    void link(waiter& w) noexcept {
        lock_.set_state(states::waiting);
        waiters_.push_back(w);
    }
    void unlink(waiter& w) noexcept {
        waiters_.erase(w);
        if (waiters_.empty()) lock_.set_state(states::unset);
    }

private:
    [[gnu::noinline]] bool set_slow() noexcept {
        granted_waiters all;
        lock_.lock();
        const bool was_set = lock_.state() == states::set;
        lock_.set_state(states::set);
        while (waiter* const w = waiters_.claim_front()) {
            all.add(*w);
            if (planted("event.wake_one")) break;
        }
        lock_.unlock();  // the event may be gone
        all.call_all();
        return !was_set;
    }

    queue_lock lock_;
    waiter_queue<waiter> waiters_;
};

// Each set() lets one wait complete.
class auto_event_core {
    using states = event_states;

public:
    constexpr explicit auto_event_core(bool is_set) noexcept
        : lock_(is_set ? states::set : states::unset) {}

    // Takes the set() if that needs no lock. May fail although it is set.
    bool try_now() noexcept { return lock_.try_change(states::set, states::unset); }
    bool try_wait() noexcept {
        if (try_now()) return true;
        if (lock_.peek(relaxed) != states::set) return false;
        lock_.lock();  // a thread was inside
        const bool taken = attempt();
        lock_.unlock();
        return taken;
    }
    // Grants the oldest waiter, and calls its function; or sets the event.
    void set() noexcept {
        const std::uint64_t state = lock_.peek(relaxed);
        if (state == states::waiting || !lock_.try_change(state, states::set)) set_slow();
    }

    queue_lock& queue() noexcept { return lock_; }
    // Takes the set() that the event remembers, if any. Requires the lock of the queue.
    bool attempt() noexcept {
        if (lock_.state() != states::set) return false;
        if (!planted("auto_event.stay_set")) lock_.set_state(states::unset);
        return true;
    }
    void link(waiter& w) noexcept {
        lock_.set_state(states::waiting);
        waiters_.push_back(w);
    }
    void unlink(waiter& w) noexcept {
        waiters_.erase(w);
        if (waiters_.empty()) lock_.set_state(states::unset);
    }

private:
    [[gnu::noinline]] void set_slow() noexcept {
        granted_waiters next;
        lock_.lock();
        if (waiter* const w = waiters_.claim_front()) {
            next.add(*w);
            lock_.set_state(waiters_.empty() ? states::unset : states::waiting);
        } else if (!planted("auto_event.forget_set")) {
            lock_.set_state(states::set);
        }
        lock_.unlock();  // the event may be gone
        next.call_all();
    }

    queue_lock lock_;
    waiter_queue<waiter> waiters_;
};

struct event_request {
    using waiter_type = waiter;
    using result = void;

    queue_lock& lock() noexcept { return core->queue(); }
    bool try_now() noexcept { return core->is_set(); }
    bool attempt(granted_waiters&) noexcept { return core->attempt(); }
    void link(waiter& w) noexcept { core->link(w); }
    void unlink(waiter& w, granted_waiters&) noexcept { core->unlink(w); }
    std::error_code error() const noexcept { return {}; }
    void take() noexcept {}
    void nothing() noexcept {}

    event_core* core;
};

struct auto_event_request {
    using waiter_type = waiter;
    using result = void;

    queue_lock& lock() noexcept { return core->queue(); }
    bool try_now() noexcept { return core->try_now(); }
    bool attempt(granted_waiters&) noexcept { return core->attempt(); }
    void link(waiter& w) noexcept { core->link(w); }
    void unlink(waiter& w, granted_waiters&) noexcept { core->unlink(w); }
    std::error_code error() const noexcept { return {}; }
    void take() noexcept {}
    void nothing() noexcept {}

    auto_event_core* core;
};

}  // namespace coppice::internal
