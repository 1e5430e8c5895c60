// latch_core: the count and the queue of an async_latch.
#pragma once
// The state of the word is twice the count, plus one while waiters may be linked. At zero, the
// thread that counted last grants all waiters. Model: tests/model/latch_model.cpp.

#include <coppice/base/internal/check.hpp>
#include <coppice/sync/internal/waiter.hpp>

#include <cstddef>
#include <cstdint>
#include <system_error>

namespace coppice::internal {

class latch_core {
public:
    static constexpr std::uint64_t count_max = (UINT64_MAX / queue_lock::unit) / 2;

    constexpr explicit latch_core(std::size_t count) noexcept : lock_(count * one) {
        COPPICE_CHECK(count <= count_max, "an async_latch got a count of more than 2^61 - 1");
    }

    bool is_zero() const noexcept { return lock_.look() / one == 0; }
    // Returns true if the count is zero now. Then the functions of all waiters have been called,
    // and the latch may be gone.
    bool count_down(std::size_t n) noexcept {
        std::uint64_t state = lock_.peek(relaxed);
        // The thread that ends the count of a latch with waiters has to enter.
        while (n < state / one || (state & waiting) == 0 || planted("latch.forget_waiters")) {
            check_count(state, n);
            if (lock_.try_change(state, state - n * one)) return state / one == n;
            const std::uint64_t seen = lock_.peek(relaxed);
            if (seen == state) break;  // a thread is inside
            state = seen;
        }
        return count_down_slow(n);
    }

    queue_lock& queue() noexcept { return lock_; }
    // Requires the lock of the queue.
    bool attempt() noexcept { return lock_.state() / one == 0; }
    void link(waiter& w) noexcept {
        lock_.set_state(lock_.state() | waiting);
        waiters_.push_back(w);
    }
    void unlink(waiter& w) noexcept {
        waiters_.erase(w);
        if (waiters_.empty()) lock_.set_state(lock_.state() & ~waiting);
    }

private:
    static constexpr std::uint64_t waiting = queue_lock::unit;
    static constexpr std::uint64_t one = 2 * queue_lock::unit;

    static void check_count(std::uint64_t state, std::size_t n) noexcept {
        COPPICE_CHECK(n <= state / one, "an async_latch was counted down below zero");
    }
    [[gnu::noinline]] bool count_down_slow(std::size_t n) noexcept {
        granted_waiters all;
        lock_.lock();
        check_count(lock_.state(), n);
        std::uint64_t state = lock_.state() - n * one;
        const bool is_last = state / one == 0;
        if (is_last) {
            while (waiter* const w = waiters_.claim_front()) all.add(*w);
            state = 0;
        }
        lock_.set_state(state);
        lock_.unlock();  // the latch may be gone if it is zero
        all.call_all();
        return is_last;
    }

    queue_lock lock_;
    waiter_queue<waiter> waiters_;
};

struct latch_request {
    using waiter_type = waiter;
    using result = void;

    queue_lock& lock() noexcept { return core->queue(); }
    bool try_now() noexcept { return core->is_zero(); }
    bool attempt(granted_waiters&) noexcept { return core->attempt(); }
    void link(waiter& w) noexcept { core->link(w); }
    void unlink(waiter& w, granted_waiters&) noexcept { core->unlink(w); }
    std::error_code error() const noexcept { return {}; }
    void take() noexcept {}
    void nothing() noexcept {}

    latch_core* core;
};

// Counts down by one, once, whatever becomes of the wait.
struct latch_arrival : latch_request {
    bool try_now() noexcept {
        arrived = true;
        return core->count_down(1);
    }
    void end_early() noexcept {
        if (!arrived && !planted("latch.stop_before_arrival")) core->count_down(1);
    }

    bool arrived = false;
};

}  // namespace coppice::internal
