// semaphore_core: the permits and the queue of an async_semaphore.
#pragma once
// The state of the word is twice the number of free permits, plus one while waiters may be linked.
//
// A release grants the oldest waiters, as many as the free permits satisfy. It stops at the first
// one that needs more, so a large request is not overtaken. While waiters are linked, no other
// operation takes permits before them. A waiter that gives up may have been a large request,
// so its withdrawal grants as well. Model: tests/model/semaphore_model.cpp.

#include <coppice/base/internal/check.hpp>
#include <coppice/sync/internal/waiter.hpp>

#include <cstddef>
#include <cstdint>
#include <system_error>

namespace coppice::internal {

class semaphore_waiter : public waiter {
public:
    using waiter::waiter;
    std::size_t permits = 0;  // how many it waits for; set before it is linked
};

class semaphore_core {
public:
    static constexpr std::uint64_t permits_max = (UINT64_MAX / queue_lock::unit) / 2;

    constexpr explicit semaphore_core(std::size_t permits) noexcept : lock_(permits * one) {
        COPPICE_CHECK(permits <= permits_max, "an async_semaphore got more than 2^61 - 1 permits");
    }

    std::size_t available() const noexcept { return free_of(lock_.peek(relaxed)); }
    // Takes n permits if that needs no lock. May fail although they are free.
    bool try_now(std::size_t n) noexcept {
        std::uint64_t state = lock_.peek(relaxed);
        while (fits(state, n)) {
            if (lock_.try_change(state, state - n * one)) return true;
            const std::uint64_t seen = lock_.peek(relaxed);
            if (seen == state) return false;  // a thread is inside
            state = seen;
        }
        return false;
    }
    // Takes n permits if they are free and no waiter is linked.
    bool try_acquire(std::size_t n) noexcept {
        if (try_now(n)) return true;
        if (!fits(lock_.peek(relaxed), n)) return false;
        lock_.lock();
        const bool taken = attempt(n);
        lock_.unlock();
        return taken;
    }
    // Gives n permits back, and calls the functions of the waiters that it grants.
    void release(std::size_t n) noexcept {
        std::uint64_t state = lock_.peek(relaxed);
        while ((state & waiting) == 0) {
            if (lock_.try_change(state, state + n * one)) {  // the semaphore may be gone
                check_sum(state, n);
                return;
            }
            const std::uint64_t seen = lock_.peek(relaxed);
            if (seen == state) break;  // a thread is inside
            state = seen;
        }
        release_slow(n);
    }

    queue_lock& queue() noexcept { return lock_; }
    // Requires the lock of the queue. attempt() takes n permits if they are free and no
    // waiter is linked.
    bool attempt(std::size_t n) noexcept {
        if (!fits(lock_.state(), n)) return false;
        lock_.set_state(lock_.state() - n * one);
        return true;
    }
    void link(semaphore_waiter& w, std::size_t n) noexcept {
        w.permits = n;
        lock_.set_state(lock_.state() | waiting);
        waiters_.push_back(w);
    }
    void unlink(semaphore_waiter& w, granted_waiters& others) noexcept {
        waiters_.erase(w);
        if (!planted("semaphore.leave_without_granting")) grant(free_of(lock_.state()), others);
    }

private:
    static constexpr std::uint64_t waiting = queue_lock::unit;
    static constexpr std::uint64_t one = 2 * queue_lock::unit;

    static std::size_t free_of(std::uint64_t state) noexcept { return state / one; }
    static bool fits(std::uint64_t state, std::size_t n) noexcept {
        if ((state & waiting) != 0 && !planted("semaphore.overtake")) return false;
        return free_of(state) >= n;
    }
    static void check_sum(std::uint64_t state, std::size_t n) noexcept {
        COPPICE_CHECK(n <= permits_max - free_of(state),
                      "an async_semaphore was given more than 2^61 - 1 permits");
    }
    [[gnu::noinline]] void release_slow(std::size_t n) noexcept {
        granted_waiters next;
        lock_.lock();
        check_sum(lock_.state(), n);
        grant(free_of(lock_.state()) + n, next);
        lock_.unlock();  // the semaphore may be gone
        next.call_all();
    }
    // Inside the lock: grants the oldest waiters from `free` permits; the rest stays free.
    void grant(std::size_t free, granted_waiters& others) noexcept {
        while (semaphore_waiter* const w = waiters_.front()) {
            if (w->permits > free) break;
            waiters_.erase(*w);
            if (!w->claim()) continue;
            if (!planted("semaphore.grant_for_free")) free -= w->permits;
            others.add(*w);
        }
        lock_.set_state(free * one | (waiters_.empty() ? 0 : waiting));
    }

    queue_lock lock_;
    waiter_queue<semaphore_waiter> waiters_;
};

// What the requests of a semaphore have in common.
struct semaphore_request {
    using waiter_type = semaphore_waiter;

    queue_lock& lock() noexcept { return core->queue(); }
    bool try_now() noexcept { return core->try_now(permits); }
    bool attempt(granted_waiters&) noexcept { return core->attempt(permits); }
    void link(semaphore_waiter& w) noexcept { core->link(w, permits); }
    void unlink(semaphore_waiter& w, granted_waiters& others) noexcept { core->unlink(w, others); }
    std::error_code error() const noexcept { return {}; }

    semaphore_core* core;
    std::size_t permits;
};

}  // namespace coppice::internal
