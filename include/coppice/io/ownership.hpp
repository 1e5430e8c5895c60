// ownership: which thread may run a loop, when several would; used by io::context.
#pragma once
// A loop is run by one thread at a time: the one in run(), or one that blocks on an operation of
// the loop while nobody runs it. Who finds the loop taken enlists a latch and sleeps until its
// operation has completed or the loop becomes free.
//
//   owned_   false -> true   take(), by one of those who try
//            true -> false   leave(), by the owner; then every enlisted latch is poked
//
// No sleeper is left behind: it enlists, then tries once more, then sleeps. The owner frees the
// loop, then visits the list. Either the visit comes after the enlisting, and pokes; or before, and
// then the list's lock makes the freeing visible to the try that follows.
//
// Who wants to run the loop goes before those who only block: they leave it to him between two
// turns, and do not take it while he waits.
// Model: tests/model/ownership_model.cpp.

#include <coppice/base/atomic.hpp>
#include <coppice/base/internal.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/token/block_latch.hpp>

#include <sched.h>

namespace coppice::io::internal {

// Threads: any. Blocks: take() and await_turn().
class ownership : immovable {
public:
    // True: the calling thread owns the loop now.
    [[nodiscard]] bool try_take() noexcept {
        // edge ownership.taken (acquire): sees what the last owner did
        return !owned_.load(relaxed) && !owned_.exchange(true, acquire);
    }
    // For run(). `wake` makes an owner who only blocks look at is_wanted().
    // Blocks: until the loop is free.
    template <class Wake>
    void take(Wake wake) noexcept {
        if (try_take()) return;
        wanted_.fetch_add(1, relaxed);  // relaxed: the wake-up makes the owner look
        wake();
        block_latch never;
        enlist(never);
        while (!try_take()) never.sleep();
        withdraw(never);
        wanted_.fetch_sub(1, relaxed);  // relaxed: those who hold back are poked by leave()
    }
    // Somebody waits in take().
    bool is_wanted() const noexcept { return wanted_.load(relaxed) != 0; }
    void leave() noexcept {
        // edge ownership.taken (release): the next owner sees what this one did
        owned_.store(false, release);
        const locked list(lock_);
        sleepers_.for_each([](block_latch& latch) { latch.poke(); });
    }

    // For who blocks. True: the caller owns the loop. False: `latch` is set.
    [[nodiscard]] bool await_turn(block_latch& latch) noexcept {
        if (latch.is_set()) return false;
        if (!is_wanted() && try_take()) return true;
        enlist(latch);
        bool mine = false;
        while (!latch.is_set()) {
            mine = !is_wanted() && !planted("ownership.no_second_try") && try_take();
            if (mine) break;
            latch.sleep();
        }
        withdraw(latch);
        return mine;
    }

private:
    // Held for a few instructions, and for the wake-ups.
    class locked : immovable {
    public:
        explicit locked(atomic<bool>& word) noexcept : word_(word) {
            // edge ownership.list (acquire): sees the list, and what was freed before a visit
            while (word_.exchange(true, acquire)) pause();
        }
        // edge ownership.list (release): the list is whole
        ~locked() { word_.store(false, release); }

    private:
        static void pause() noexcept {
#if defined(COPPICE_MODEL)
            spin_hint();
#else
            ::sched_yield();  // the holder may have been preempted
#endif
        }
        atomic<bool>& word_;
    };
    void enlist(block_latch& latch) noexcept {
        const locked list(lock_);
        sleepers_.push_back(latch);
    }
    void withdraw(block_latch& latch) noexcept {
        const locked list(lock_);
        intrusive_list<block_latch>::erase(latch);
    }

    atomic<bool> owned_{false};
    atomic<unsigned> wanted_{0};  // threads in take(), about; says only who goes first
    atomic<bool> lock_{false};    // of the list
    intrusive_list<block_latch> sleepers_;
};

}  // namespace coppice::io::internal
