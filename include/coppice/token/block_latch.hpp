// block_latch: what a thread sleeps on until its operation has completed; used by block.
#pragma once
// One word:
//
//   idle       the waiter is awake
//   sleeping   the waiter sleeps, or is about to
//   poked      the waiter shall look around: a loop it might run has become free
//   done       the operation has completed; the last state
//
//   set    any word -> done; wakes if it was sleeping
//   poke   idle, sleeping -> poked; wakes if it was sleeping
//   sleep  idle -> sleeping, and until that changes; poked -> idle
//
// A wake-up cannot be lost: sleep() and the others change the same word, and the futex sleeps only
// while the word says sleeping. Model: tests/model/block_latch_model.cpp.

#include <coppice/base/atomic.hpp>
#include <coppice/base/futex.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/base/put_off.hpp>

#include <cstdint>

namespace coppice {

// Threads: set() once by any; poke() by any while the latch is known to live; the rest by the
// waiter. Lifetime: may end when is_set() was seen: set() touches nothing after its exchange.
class block_latch : public list_hook<> {
public:
    block_latch() noexcept = default;

    void set() noexcept {
        // edge block_latch.done (release): the outcome is stored
        const std::uint32_t was = word_.exchange(done, internal::release);
        if (was == sleeping && !internal::planted("block_latch.set_does_not_wake")) {
            internal::futex_wake_one(word_);  // only its address: the latch may be gone
        }
    }
    void poke() noexcept {
        std::uint32_t was = word_.load(internal::relaxed);
        do {
            // Poked twice is written twice: the waiter shall see what the second one freed.
            if (was == poked && internal::planted("block_latch.poke_once")) return;
            if (was == done && !internal::planted("block_latch.poke_over_done")) return;
            // edge block_latch.poked (release): what became free is free
        } while (!word_.compare_exchange_weak(was, poked, internal::release, internal::relaxed));
        if (was == sleeping) internal::futex_wake_one(word_);
    }

    bool is_set() const noexcept {
        // edge block_latch.done (acquire): sees the outcome
        return word_.load(internal::acquire) == done;
    }
    // Blocks: until set() or poke(); or while an item runs that the thread has put off, if any.
    void sleep() noexcept {
        if (internal::put_off_work::run_one()) return;
        std::uint32_t was = idle;
        // Relaxed: a success publishes nothing; a failure goes on to look.
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
