// barrier_core: the phases and the queue of an async_barrier.
#pragma once
// Everything is guarded by the lock of the queue: an arrival either waits or resumes the waiters,
// and both change the queue. The word has one state. Model: tests/model/barrier_model.cpp.

#include <coppice/base/internal/check.hpp>
#include <coppice/sync/internal/waiter.hpp>

#include <cstddef>
#include <cstdint>
#include <system_error>

namespace coppice::internal {

class barrier_core {
public:
    explicit barrier_core(std::size_t participants) noexcept
        : participants_(participants), missing_(participants) {}

    // One participant arrives. If it is the last one, calls the functions of all waiters, and the
    // barrier may be gone.
    void arrive_now(bool drop) noexcept {
        granted_waiters all;
        lock_.lock();
        if (drop && participants_ != 0) --participants_;
        arrive(all);
        lock_.unlock();  // the barrier may be gone
        all.call_all();
    }

    queue_lock& queue() noexcept { return lock_; }
    // Requires the lock of the queue. arrive() returns true if it has ended the phase.
    bool arrive(granted_waiters& others) noexcept {
        COPPICE_CHECK(missing_ != 0,
                      "an async_barrier got more arrivals in one phase than it has participants");
        if (--missing_ != 0) return false;
        if (!planted("barrier.keep_phase")) ++phase_;
        missing_ = participants_;
        while (waiter* const w = waiters_.claim_front()) others.add(*w);
        return true;
    }
    std::uint64_t phase() const noexcept { return phase_; }
    void link(waiter& w) noexcept { waiters_.push_back(w); }
    void unlink(waiter& w) noexcept { waiters_.erase(w); }

private:
    queue_lock lock_{0};
    std::size_t participants_;  // of the next phase
    std::size_t missing_;       // arrivals that this phase waits for
    std::uint64_t phase_ = 0;   // how many have ended
    waiter_queue<waiter> waiters_;
};

// Arrives once, whatever becomes of the wait.
struct barrier_request {
    using waiter_type = waiter;
    using result = std::uint64_t;

    queue_lock& lock() noexcept { return core->queue(); }
    bool try_now() noexcept { return false; }
    bool attempt(granted_waiters& others) noexcept {
        if (arrived) return core->phase() != phase;
        arrived = true;
        phase = core->phase();
        return core->arrive(others);
    }
    void link(waiter& w) noexcept { core->link(w); }
    void unlink(waiter& w, granted_waiters&) noexcept { core->unlink(w); }
    void end_early() noexcept {
        if (!arrived && !planted("barrier.stop_before_arrival")) core->arrive_now(false);
    }
    std::error_code error() const noexcept { return {}; }
    std::uint64_t take() noexcept { return phase; }
    std::uint64_t nothing() noexcept { return phase; }

    barrier_core* core;
    std::uint64_t phase = 0;
    bool arrived = false;
};

}  // namespace coppice::internal
