// mutex_core: the lock and the queue of an async_mutex.
#pragma once
// The state of the word:
//
//   free               the lock is free, and no waiter is linked
//   locked             the lock is held, and no waiter is linked
//   locked | waiting   the lock is held; waiters may be linked
//
// unlock() of a mutex with waiters does not free it, but claims the oldest waiter, which holds the
// lock from then on. Model: tests/model/mutex_model.cpp.

#include <coppice/base/internal/check.hpp>
#include <coppice/sync/internal/waiter.hpp>

#include <system_error>

namespace coppice::internal {

class mutex_core {
public:
    constexpr mutex_core() noexcept = default;

    // Takes the lock if that needs no lock of the queue. May fail although it is free.
    bool try_now() noexcept { return lock_.try_change(free, locked); }
    // Takes the lock if it is free.
    bool try_lock() noexcept {
        if (try_now()) return true;
        if (lock_.peek(relaxed) != free) return false;
        lock_.lock();  // a thread was inside
        const bool taken = attempt();
        lock_.unlock();
        return taken;
    }
    // Frees the lock, or hands it to the oldest waiter and calls that waiter's function.
    void unlock() noexcept {
        if (!lock_.try_change(locked, free)) hand_over();  // the mutex may be gone
    }
    // The same for a thread that is inside another lock: it calls the waiter's function later.
    void unlock(granted_waiters& next) noexcept {
        if (!lock_.try_change(locked, free)) unlock_slow(next);
    }
    // Gives the lock to `w`, now or when it is free. Calls no function: if `w` has the lock
    // already, adds it to `next`.
    void lock_for(waiter& w, granted_waiters& next) noexcept {
        lock_.lock();
        if (attempt()) {
            next.add(w);
        } else {
            link(w);
        }
        lock_.unlock();
    }

    queue_lock& queue() noexcept { return lock_; }
    // Requires the lock of the queue. attempt() takes the lock if it is free.
    bool attempt() noexcept {
        if (lock_.state() != free) return false;
        lock_.set_state(locked);
        return true;
    }
    void link(waiter& w) noexcept {
        lock_.set_state(locked | waiting);
        waiters_.push_back(w);
    }
    void unlink(waiter& w) noexcept { waiters_.erase(w); }
    // Inside the lock of the queue: the holder gives the lock up. Returns the next holder, or
    // nullptr if the lock is free now.
    waiter* pass_on() noexcept {
        waiter* const next = waiters_.claim_front();
        if (next == nullptr) {
            lock_.set_state(free);
        } else if (waiters_.empty()) {
            lock_.set_state(locked);
        }
        return next;
    }

private:
    static constexpr std::uint64_t free = 0;
    static constexpr std::uint64_t locked = queue_lock::unit;
    static constexpr std::uint64_t waiting = 2 * queue_lock::unit;

    [[gnu::noinline]] void hand_over() noexcept {
        granted_waiters next;
        unlock_slow(next);
        next.call_all();
    }
    [[gnu::noinline]] void unlock_slow(granted_waiters& next) noexcept {
        lock_.lock();
        COPPICE_CHECK(lock_.state() != free,
                      "an async_mutex was unlocked that is not locked: unlock it once per lock");
        if (waiter* const w = pass_on()) next.add(*w);
        lock_.unlock();  // the mutex may be gone
        if (planted("mutex.touch_after_unlock")) next.call_all(), lock_.peek(relaxed);
    }

    queue_lock lock_{free};
    waiter_queue<waiter> waiters_;
};

// What the requests of a mutex have in common.
struct mutex_request {
    using waiter_type = waiter;

    queue_lock& lock() noexcept { return core->queue(); }
    bool try_now() noexcept { return core->try_now(); }
    bool attempt(granted_waiters&) noexcept { return core->attempt(); }
    void link(waiter& w) noexcept { core->link(w); }
    void unlink(waiter& w, granted_waiters&) noexcept { core->unlink(w); }
    std::error_code error() const noexcept { return {}; }

    mutex_core* core;
};

}  // namespace coppice::internal
