// ownership: decides which thread may run a loop when several threads want to; used by io::context.
#pragma once
// One thread at a time runs a loop: a thread in run(), or a thread that blocks on an operation of
// the loop while no thread runs it. A thread that finds the loop taken enlists a latch, and sleeps
// until its operation has completed or the loop becomes free.
//
//   owned_   false -> true   try_take(), by one of the threads that try
//            true -> false   leave(), by the owner; it then pokes every enlisted latch
//
// No sleeper is left behind. A sleeper enlists, then tries once more, then sleeps. The owner frees
// the loop, then visits the list. Either the visit comes after the enlisting, and pokes the
// sleeper; or it comes before, and the list's lock makes the freed loop visible to the sleeper's
// second try.
//
// A thread in run() has priority over threads that only block: they leave the loop to it between
// two turns, and do not take the loop while it waits. Model: tests/model/ownership_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/token/block_latch.hpp>

#include <sched.h>

namespace coppice::io::internal {

// Threads: any. Blocks: take() and await_turn().
class ownership : immovable {
public:
    // Returns true if the calling thread now owns the loop.
    [[nodiscard]] bool try_take() noexcept {
        // edge ownership.taken (acquire): sees what the last owner did
        return !owned_.load(relaxed) && !owned_.exchange(true, acquire);
    }
    // Takes the loop for run(). `wake` makes an owner that only blocks look at is_wanted(). Blocks:
    // until the loop is free.
    template <class Wake>
    void take(Wake wake) noexcept {
        if (try_take()) return;
        wanted_.fetch_add(1, relaxed);  // relaxed: the wake-up makes the owner look
        wake();
        block_latch never;
        enlist(never);
        while (!try_take()) never.sleep();
        withdraw(never);
        wanted_.fetch_sub(1, relaxed);  // relaxed: leave() pokes the threads that hold back
    }
    // Returns true if a thread waits in take().
    bool is_wanted() const noexcept { return wanted_.load(relaxed) != 0; }
    void leave() noexcept {
        // edge ownership.taken (release): the next owner sees what this one did
        owned_.store(false, release);
        const locked list(lock_);
        sleepers_.for_each([](block_latch& latch) { latch.poke(); });
    }

    // For a thread that blocks. Returns true if the caller now owns the loop, false if `latch` is
    // set. Blocks: until then.
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
    // The lock of the list. Held for a few instructions, and during the wake-ups.
    class locked : immovable {
    public:
        explicit locked(atomic<bool>& word) noexcept : word_(word) {
            // edge ownership.list (acquire): sees the list, and a loop freed before a visit
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
    // how many threads are in take(), roughly; it only decides which goes first
    atomic<unsigned> wanted_{0};
    atomic<bool> lock_{false};  // of sleepers_
    intrusive_list<block_latch> sleepers_;
};

}  // namespace coppice::io::internal
