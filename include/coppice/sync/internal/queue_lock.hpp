// queue_lock: a word that is the state of an object and the lock of its queue of waiters.
#pragma once
// The word's upper 62 bits are the object's state, for example "locked" or a number of permits. Its
// two lowest bits are the lock of everything else in the object, in particular of its waiters:
//
//   busy      a thread is inside; no other thread changes the state
//   sleepers  threads may sleep until the thread inside leaves
//
// State and lock in one word make the fast path one compare-and-swap, and they let a thread leave
// and publish the object's new state by one exchange. That exchange is the thread's last access, so
// a thread that sees the new state may destroy the object at once.
//
// No user code runs inside. Model: tests/model/queue_lock_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/futex.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstdint>

namespace coppice::internal {

class queue_lock : immovable {
public:
    // States are multiples of `unit`.
    static constexpr std::uint64_t unit = 4;

    constexpr explicit queue_lock(std::uint64_t state) noexcept : word_(state), state_(state) {}

    // Returns the state, without the lock's bits. May be stale unless the caller is inside.
    std::uint64_t peek(memory_order order) const noexcept {
        return word_.load(order) & ~(busy | sleepers);
    }
    // Returns the state, as peek() does. What earlier threads did before they changed the state is
    // visible.
    std::uint64_t look() const noexcept {
        // edge queue_lock.left (acquire): what earlier threads did inside
        return word_.load(acquire) & ~(busy | sleepers);
    }
    // Changes the state from `from` to `to` if it is `from` and no thread is inside. Fails
    // otherwise, never spuriously. The fast path of an object.
    bool try_change(std::uint64_t from, std::uint64_t to) noexcept {
        // A compare-and-swap that fails costs as much as one that succeeds.
        if (word_.load(relaxed) != from) return false;
        // edge queue_lock.fast (acq_rel): what was done under the state before
        return word_.compare_exchange_strong(from, to, acq_rel, relaxed);
    }

    // Waits until no thread is inside, and enters. Blocks: for as long as other threads are inside.
    void lock() noexcept {
        std::uint64_t word = word_.load(relaxed);
        for (unsigned spins = 0;; ++spins) {
            if ((word & busy) == 0) {
                // edge queue_lock.left (acquire): what earlier threads did inside
                if (word_.compare_exchange_weak(word, word | busy, acquire, relaxed)) {
                    state_ = word & ~(busy | sleepers);
                    return;
                }
            } else {
                word = wait(word, spins);
            }
        }
    }
    // The state that unlock() will publish. Call both inside.
    std::uint64_t state() const noexcept { return state_; }
    void set_state(std::uint64_t state) noexcept { state_ = state; }
    // Leaves. The exchange is the last access to the object; a wake-up only uses its address.
    void unlock() noexcept {
        // edge queue_lock.left (release): what this thread did inside
        const std::uint64_t was = word_.exchange(state_, release);
        if ((was & sleepers) != 0 && !planted("queue_lock.leave_without_waking"))
            futex_wake_all(word_);
    }

private:
    static constexpr std::uint64_t busy = 1;
    static constexpr std::uint64_t sleepers = 2;
#if defined(COPPICE_MODEL)
    static constexpr unsigned spins_max = 1;  // a model also reaches the sleep
#else
    static constexpr unsigned spins_max = 100;  // about a microsecond; most stays are shorter
#endif

    // Waits a moment, or sleeps until the thread inside leaves. Returns the word as it is then.
    std::uint64_t wait(std::uint64_t word, unsigned spins) noexcept {
        if (spins < spins_max) {
            spin_hint();
            return word_.load(relaxed);
        }
        if ((word & sleepers) == 0) {
            // Relaxed: it only asks for a wake-up.
            if (!word_.compare_exchange_weak(word, word | sleepers, relaxed, relaxed)) return word;
            word |= sleepers;
        }
        futex_wait(word_, word);
        return word_.load(relaxed);
    }

    atomic<std::uint64_t> word_;
    std::uint64_t state_;  // used inside; a copy that unlock() publishes
};

}  // namespace coppice::internal
