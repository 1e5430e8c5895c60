// block_latch: where a thread sleeps until its operation has completed; used by block.
#pragma once
// One word:
//
//   idle       the waiter is awake
//   sleeping   the waiter sleeps, or is about to
//   poked      the waiter must look around: a loop that it might run has become free
//   done       the operation has completed; the last state
//
//   set    any word -> done; wakes the waiter if it was sleeping
//   poke   any word but done -> poked; wakes the waiter if it was sleeping
//   sleep  idle -> sleeping, and waits until that changes; then poked -> idle
//
// No wake-up is lost, because sleep() and the others change the same word, and the futex sleeps
// only while the word is `sleeping`. Model: tests/model/block_latch_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/futex.hpp>
#include <coppice/base/internal/put_off.hpp>
#include <coppice/base/intrusive.hpp>

#include <cstdint>

namespace coppice {

// Threads: any thread calls set(), once; any thread calls poke() while the latch is known to live;
// the waiter calls the rest. Lifetime: the latch may end when is_set() has returned true, because
// set() accesses nothing after its exchange.
class block_latch : public list_hook<> {
public:
    block_latch() noexcept = default;

    // Marks the operation as completed, and wakes the waiter. The waiter may destroy the latch at
    // once.
    void set() noexcept {
        // edge block_latch.done (release): the outcome is stored
        const std::uint32_t was = word_.exchange(done, internal::release);
        if (was == sleeping && !internal::planted("block_latch.set_does_not_wake")) {
            internal::futex_wake_one(word_);  // uses only its address: the latch may be gone
        }
    }
    // Makes sleep() return, so that the waiter looks around. No effect after set().
    void poke() noexcept {
        std::uint32_t was = word_.load(internal::relaxed);
        do {
            // Written again if it was poked already: the waiter must see what the second poke
            // freed.
            if (was == poked && internal::planted("block_latch.poke_once")) return;
            if (was == done && !internal::planted("block_latch.poke_over_done")) return;
            // edge block_latch.poked (release): what became free is free
        } while (!word_.compare_exchange_weak(was, poked, internal::release, internal::relaxed));
        if (was == sleeping) internal::futex_wake_one(word_);
    }

    // Returns true if set() was called; the outcome is then visible.
    bool is_set() const noexcept {
        // edge block_latch.done (acquire): sees the outcome
        return word_.load(internal::acquire) == done;
    }
    // Blocks: until set() or poke(); or while it runs an item that this thread has deferred, if
    // any.
    void sleep() noexcept {
        if (internal::put_off_work::run_one()) return;
        std::uint32_t was = idle;
        // Relaxed: a success publishes nothing; after a failure the caller looks around.
        if (word_.compare_exchange_strong(was, sleeping, internal::relaxed, internal::relaxed)) {
            while (word_.load(internal::relaxed) == sleeping)
                internal::futex_wait(word_, std::uint32_t{sleeping});
        }
        was = poked;
        // edge block_latch.poked (acquire): sees what became free
        word_.compare_exchange_strong(was, idle, internal::acquire, internal::relaxed);
    }
    // Blocks: until set().
    void wait() noexcept {
        while (!is_set()) sleep();
    }

private:
    enum word : std::uint32_t { idle, sleeping, poked, done };
    internal::atomic<std::uint32_t> word_{idle};
};

}  // namespace coppice
