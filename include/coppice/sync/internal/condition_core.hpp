// condition_core: the queue of an async_condition.
#pragma once
// A wait has two parts. First its waiter is in the queue of the condition, and the mutex is
// unlocked. Then, notified or stopped, it is moved into the queue of the mutex, or is granted the
// mutex at once; from there only the mutex ends it. So a notified waiter wakes only when it
// has the lock.
//
//   the wait begins    inside the condition's lock: unlocks the mutex, and links the waiter
//   notified           inside the condition's lock: takes the waiter out. After leaving it: moves
//                      the waiter to the mutex, whose holder may then grant it; the waiter may
//                      destroy the condition
//   stopped            inside the condition's lock: moves a waiter that is still in the queue to
//                      the mutex; its wait will end as stopped, after this thread has left. Does
//                      nothing to a waiter that was notified
//   granted the mutex  the wait ends
//
// A thread inside the condition's lock may enter the mutex's lock, never the other way round. The
// state of the word says if waiters may be linked. Model: tests/model/condition_model.cpp.

#include <coppice/base/internal/check.hpp>
#include <coppice/sync/internal/mutex_core.hpp>
#include <coppice/sync/internal/waiter.hpp>

#include <cstdint>
#include <system_error>

namespace coppice::internal {

class condition_waiter : public waiter {
public:
    using waiter::waiter;
    // Guarded by the condition's lock.
    mutex_core* mutex = nullptr;
    bool is_in_condition = false;
};

class condition_core {
public:
    constexpr condition_core() noexcept = default;

    void notify_one() noexcept { notify(false); }
    void notify_all() noexcept { notify(true); }

    queue_lock& queue() noexcept { return lock_; }
    // Requires the lock of the queue.
    void link(condition_waiter& w, mutex_core& mutex) noexcept {
        w.mutex = &mutex;
        w.is_in_condition = true;
        lock_.set_state(waiting);
        waiters_.push_back(w);
    }
    void unlink(condition_waiter& w, granted_waiters& others) noexcept {
        waiters_.erase(w);
        if (waiters_.empty()) lock_.set_state(none);
        w.is_in_condition = false;
        if (planted("condition.return_unlocked")) {
            others.add(w);
        } else {
            w.mutex->lock_for(w, others);
        }
    }

private:
    static constexpr std::uint64_t none = 0;
    static constexpr std::uint64_t waiting = queue_lock::unit;

    void notify(bool all) noexcept {
        // An exchange of the same value, which fails if a thread is inside: a waiter unlocks its
        // mutex there, and this thread may have locked it since.
        if (planted("condition.notify_without_looking") && lock_.peek(relaxed) == none) return;
        if (lock_.try_change(none, none)) return;
        notify_slow(all);
    }
    [[gnu::noinline]] void notify_slow(bool all) noexcept {
        waiter_queue<condition_waiter> notified;
        lock_.lock();
        while (condition_waiter* const w = waiters_.claim_front()) {
            w->is_in_condition = false;
            notified.push_back(*w);
            if (!all) break;
        }
        if (waiters_.empty()) lock_.set_state(none);
        lock_.unlock();  // the condition may be gone when the first waiter has been moved
        granted_waiters others;
        while (condition_waiter* const w = notified.front()) {
            notified.erase(*w);
            w->mutex->lock_for(*w, others);  // the waiter and its mutex may be gone
        }
        others.call_all();
    }

    queue_lock lock_{none};
    waiter_queue<condition_waiter> waiters_;
};

struct condition_request {
    using waiter_type = condition_waiter;
    using result = void;
    static constexpr bool returns_later = true;

    queue_lock& lock() noexcept { return core->queue(); }
    bool try_now() noexcept { return false; }
    // Unlocks the mutex; the waiter is linked before any other thread can enter the condition.
    bool attempt(granted_waiters& others) noexcept {
        mutex->unlock(others);
        return false;
    }
    void link(condition_waiter& w) noexcept { core->link(w, *mutex); }
    bool waits(const condition_waiter& w) const noexcept { return w.is_in_condition; }
    void unlink(condition_waiter& w, granted_waiters& others) noexcept { core->unlink(w, others); }
    std::error_code error() const noexcept { return {}; }
    void take() noexcept {}
    void nothing() noexcept {}

    condition_core* core;
    mutex_core* mutex;
};

}  // namespace coppice::internal
