// biased_lock: a lock that costs its owner no locked instruction while no other thread takes it.
#pragma once
// One thread, the owner, takes the lock often; other threads take it rarely. While the lock is
// biased, the owner only marks that it is inside. The first other thread revokes the bias; from
// then on all threads take an ordinary lock. The owner restores the bias after it has taken the
// ordinary lock a number of times in a row.
//
//   inside_    true while the owner is inside and holds the biased lock
//   revoked_   true while the owner must take the ordinary lock; changed under it
//   locked_    the ordinary lock
//
// Either-or. The owner sets inside_, fences (light), and reads revoked_. Another thread sets
// revoked_, fences (heavy), and reads inside_. Either the heavy fence comes before the owner's
// light one; then the owner sees revoked_ and takes the ordinary lock. Or it comes after; then the
// other thread sees inside_, and waits. Model: tests/model/biased_lock_model.cpp. Source: ours,
// after the biased locks of Java.

#include <coppice/base/internal/asymmetric.hpp>
#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstdint>

namespace coppice::internal {

// Threads: one owner, and any other threads. Not recursive. Blocks: while another thread is inside;
// a waiter spins, then yields. So hold the lock for a few steps only.
class biased_lock : immovable {
public:
    // Not biased: a lock without an owner.
    enum class initially : bool { biased, shared };
    explicit biased_lock(initially state) noexcept : revoked_(state == initially::shared) {}

    // Takes the lock; returns true if the owner took it by its bias, for leave_as_owner(). Cost:
    // two stores, a load, and a light fence while the lock is biased.
    [[nodiscard]] bool enter_as_owner() noexcept {
        inside_.store(true, relaxed);  // relaxed: the fences order it
        light_fence();                 // edge biased_lock.revoke (light): inside_, then revoked_
        if (!revoked_.load(relaxed)) [[likely]]
            return true;
        // edge biased_lock.inside (release): what the owner did inside before; now it did nothing
        inside_.store(false, release);
        enter_revoked();
        return false;
    }
    void leave_as_owner(bool by_bias) noexcept {
        if (by_bias) {
            // edge biased_lock.inside (release): what the owner did inside
            inside_.store(false, release);
        } else {
            unlock();
        }
    }

    // Takes and releases the lock on a thread that is not the owner. Cost: a locked instruction; a
    // heavy fence if the lock was biased. unlock() is the last access to the lock.
    void lock() noexcept {
        acquire_lock();
        patience_ = patience_max;
        if (revoked_.load(relaxed)) return;
        revoked_.store(true, relaxed);
        heavy_fence();  // edge biased_lock.revoke (heavy): revoked_, then inside_
        // edge biased_lock.inside (acquire): what the owner did inside
        while (inside_.load(acquire) && !planted("biased_lock.no_wait")) thread_yield();
    }
    void unlock() noexcept {
        // edge biased_lock.lock (release): what the holder did
        locked_.store(false, release);
    }

private:
    // How often the owner takes the ordinary lock before the bias returns. A revocation costs as
    // much as some hundred locked instructions.
#if defined(COPPICE_MODEL)
    static constexpr unsigned patience_max = 2;
#else
    static constexpr unsigned patience_max = 128;
#endif
    static constexpr unsigned spins_max = 64;

    void acquire_lock() noexcept {
        // edge biased_lock.lock (acquire): what the last holder did
        for (unsigned spins = 0; locked_.exchange(true, acquire); ++spins) {
            if (spins < spins_max) {
                spin_hint();
            } else {
                thread_yield();
            }
        }
    }
    [[gnu::noinline]] void enter_revoked() noexcept {
        acquire_lock();
        if (--patience_ != 0) return;
        patience_ = patience_max;
        // The next thread that takes the lock sees this, because it is written under the lock.
        revoked_.store(false, relaxed);
    }

    atomic<bool> inside_{false};        // written by the owner; read by other threads
    atomic<bool> revoked_;              // written under the lock; read by the owner
    atomic<bool> locked_{false};        // written by all threads
    unsigned patience_ = patience_max;  // guarded by locked_
};

}  // namespace coppice::internal
