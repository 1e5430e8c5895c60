// shared_mutex_core: the lock and the queue of an async_shared_mutex.
#pragma once
// The state of the word:
//
//   0                     the lock is free, and no waiter is linked
//   k * reader            k readers hold it
//   writer                a writer holds it
//   + waiting             waiters may be linked
//
// Readers and writers wait in one queue. A lock is granted from its head: to one writer if
// the lock is free, or to the readers up to the next writer if no writer holds it. While waiters
// are linked, no other operation takes the lock before them. So a waiting writer goes before later
// readers, and readers that came before a writer go before it. Model:
// tests/model/shared_mutex_model.cpp.

#include <coppice/base/internal/check.hpp>
#include <coppice/sync/internal/waiter.hpp>

#include <cstdint>
#include <system_error>

namespace coppice::internal {

enum class lock_kind : bool { shared, exclusive };

class shared_mutex_waiter : public waiter {
public:
    using waiter::waiter;
    lock_kind kind = lock_kind::shared;  // set before it is linked
};

class shared_mutex_core {
public:
    constexpr shared_mutex_core() noexcept = default;

    // Takes the lock if that needs no lock of the queue. May fail although it is free.
    bool try_now(lock_kind kind) noexcept {
        if (kind == lock_kind::exclusive) return lock_.try_change(free, writer);
        std::uint64_t state = lock_.peek(relaxed);
        while (fits(state, kind)) {
            if (lock_.try_change(state, state + reader)) return true;
            const std::uint64_t seen = lock_.peek(relaxed);
            if (seen == state) return false;  // a thread is inside
            state = seen;
        }
        return false;
    }
    // Takes the lock if that is possible without overtaking a waiter.
    bool try_lock(lock_kind kind) noexcept {
        if (try_now(kind)) return true;
        if (!fits(lock_.peek(relaxed), kind)) return false;
        lock_.lock();
        const bool taken = attempt(kind);
        lock_.unlock();
        return taken;
    }
    // Unlock: call the functions of the waiters that they grant.
    void unlock() noexcept {
        if (!lock_.try_change(writer, free)) unlock_slow(lock_kind::exclusive);
    }
    void unlock_shared() noexcept {
        std::uint64_t state = lock_.peek(relaxed);
        // The last reader of a lock with waiters has to enter.
        while (state >= 2 * reader || (state >= reader && (state & waiting) == 0)) {
            if (lock_.try_change(state, state - reader)) return;  // the mutex may be gone
            const std::uint64_t seen = lock_.peek(relaxed);
            if (seen == state) break;  // a thread is inside
            state = seen;
        }
        unlock_slow(lock_kind::shared);
    }

    queue_lock& queue() noexcept { return lock_; }
    // Requires the lock of the queue.
    bool attempt(lock_kind kind) noexcept {
        if (!fits(lock_.state(), kind)) return false;
        lock_.set_state(lock_.state() + added_by(kind));
        return true;
    }
    void link(shared_mutex_waiter& w, lock_kind kind) noexcept {
        w.kind = kind;
        lock_.set_state(lock_.state() | waiting);
        waiters_.push_back(w);
    }
    void unlink(shared_mutex_waiter& w, granted_waiters& others) noexcept {
        waiters_.erase(w);
        if (!planted("shared_mutex.leave_without_granting"))
            grant(lock_.state() & ~waiting, others);
    }

private:
    static constexpr std::uint64_t free = 0;
    static constexpr std::uint64_t waiting = queue_lock::unit;
    static constexpr std::uint64_t writer = 2 * queue_lock::unit;
    static constexpr std::uint64_t reader = 4 * queue_lock::unit;

    static std::uint64_t added_by(lock_kind kind) noexcept {
        return kind == lock_kind::exclusive ? writer : reader;
    }
    // Returns true if a lock of that kind may be added to what `held` says, which has no waiters.
    static bool may_hold(std::uint64_t held, lock_kind kind) noexcept {
        return kind == lock_kind::exclusive ? held == free : (held & writer) == 0;
    }
    static bool fits(std::uint64_t state, lock_kind kind) noexcept {
        if (planted("shared_mutex.overtake")) state &= ~waiting;
        return (state & waiting) == 0 && may_hold(state, kind);
    }
    [[gnu::noinline]] void unlock_slow(lock_kind kind) noexcept {
        granted_waiters next;
        lock_.lock();
        const std::uint64_t held = lock_.state() & ~waiting;
        COPPICE_CHECK(kind == lock_kind::exclusive ? held == writer : held >= reader,
                      "an async_shared_mutex was unlocked that is not locked in that mode: unlock "
                      "it once per "
                      "lock, by the function of that lock");
        grant(held - added_by(kind), next);
        lock_.unlock();  // the mutex may be gone
        next.call_all();
    }
    // Inside the lock: adds the oldest waiters to the holders, as far as they may hold it together.
    void grant(std::uint64_t held, granted_waiters& others) noexcept {
        while (shared_mutex_waiter* const w = waiters_.front()) {
            if (!may_hold(held, w->kind)) break;
            waiters_.erase(*w);
            if (!w->claim()) continue;
            held += added_by(w->kind);
            others.add(*w);
        }
        lock_.set_state(held | (waiters_.empty() ? 0 : waiting));
    }

    queue_lock lock_{free};
    waiter_queue<shared_mutex_waiter> waiters_;
};

// What the requests of a shared mutex have in common.
template <lock_kind Kind>
struct shared_mutex_request {
    using waiter_type = shared_mutex_waiter;

    queue_lock& lock() noexcept { return core->queue(); }
    bool try_now() noexcept { return core->try_now(Kind); }
    bool attempt(granted_waiters&) noexcept { return core->attempt(Kind); }
    void link(shared_mutex_waiter& w) noexcept { core->link(w, Kind); }
    void unlink(shared_mutex_waiter& w, granted_waiters& others) noexcept {
        core->unlink(w, others);
    }
    std::error_code error() const noexcept { return {}; }

    shared_mutex_core* core;
};

}  // namespace coppice::internal
