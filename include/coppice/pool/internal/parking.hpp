// How a pool's idle workers sleep, and how new work wakes one; no wake-up is ever lost.
#pragma once
// A worker without work searches for a while, then sleeps. A thread that adds work wakes a sleeper
// only if no worker is searching, because a searcher will find the work. One word counts both:
//
//   counts_   low half: workers that sleep and have not been claimed by a wake
//             high half: workers that search
//   tokens_   wakes that were issued and not yet consumed by a sleeper (a futex semaphore)
//
//   worker           begin_search        search+1
//   finds work       end_search          search-1; the last searcher looks again and wakes another
//                                        worker if there is more, because adders relied on it
//   finds none       announce_sleep      search-1, sleep+1; then it must look once more:
//                    cancel_sleep          if there is work: sleep-1, search+1
//                    sleep                 if not: waits for a token; its waker made search+1
//   adder            wake_one            if sleep>0 and search=0: sleep-1, search+1, one token
//
// Either-or. The adder writes its work, then fence A, then reads counts_. The worker changes
// counts_ (announce_sleep or end_search), then fence B, then looks for work. Either A is before B,
// and the worker sees the work. Or B is before A, and the adder reads counts_ as the worker left
// it. If that worker sleeps, it is woken, unless another worker searches. The same argument then
// holds for that searcher's own change of counts_.
//
// A worker that adds work to its own queue executes a light fence as fence A, because most of them
// add work while no worker sleeps. The workers then execute a heavy one as fence B. A sleeper does
// so always. The last searcher does so only if a worker sleeps; if none sleeps, the adder's worker
// is awake, and a worker that announces its sleep later looks after its own heavy fence. Model:
// tests/model/parking_model.cpp.
//
// Source: ours, after the scheme of the Go and tokio schedulers.

#include <coppice/base/internal/asymmetric.hpp>
#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/futex.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace coppice::internal {

// What a wake found: a sleeper, a searcher that will find the work, or only busy workers.
enum class parking_wake { woken, searched, busy };

// Threads: each worker calls the worker's functions for itself; any thread calls wake_one and
// wake_all. Cost of wake_one when no worker sleeps: one fence and one load.
class parking : immovable {
public:
    void begin_search() noexcept { counts_.fetch_add(one_searcher, relaxed); }

    // Called by a searcher that found work. Returns true if it was the last searcher. It must then
    // look for more work, and call wake_one() if there is some.
    [[nodiscard]] bool end_search() noexcept {
        const std::uint32_t before = counts_.fetch_sub(one_searcher, relaxed);
        if (before / one_searcher != 1) return false;
        fence(seq_cst);  // edge parking.recheck (seq_cst): fence B of the last searcher
        return true;
    }

    // Called by a searcher that found nothing. It must look for work once more, then call
    // cancel_sleep() or sleep().
    void announce_sleep() noexcept {
        counts_.fetch_add(one_sleeper - one_searcher, relaxed);
        fence(seq_cst);  // edge parking.recheck (seq_cst): fence B of the sleeper
    }
    // Makes the caller a searcher again. Blocks: only while a waker is between its two steps.
    void cancel_sleep() noexcept {
        // If no sleeper is left in the count, wakes have claimed as many as were announced. A token
        // for the caller has come or comes at once, or another worker that announced its sleep
        // later takes it. Then that worker's place in the count is the caller's. The caller must
        // not wait for a token alone: it may have promised to watch the timers.
        while (!leave_count() && !take_token()) {
            if (planted("parking.cancel_by_token")) return sleep();
            thread_yield();
        }
    }
    // Blocks until a wake; the caller is then a searcher again.
    void sleep() noexcept {
        // Relaxed: work is acquired where it is found, not through the token.
        while (!take_token()) futex_wait(tokens_, std::uint32_t{0});
    }

    // Does the same, but at most until the monotonic time `nanoseconds`.
    void sleep_or_wake_at(std::int64_t nanoseconds) noexcept {
        while (!take_token()) {
            if (!futex_wait_until(tokens_, std::uint32_t{0}, nanoseconds)) return cancel_sleep();
        }
    }

    // True if a worker sleeps that no wake has claimed. May be stale when it returns.
    bool has_sleepers() const noexcept { return counts_.load(relaxed) % one_searcher != 0; }

    // Call it after adding work. Returns true if it woke a sleeper.
    bool wake_one() noexcept {
        fence(seq_cst);  // edge parking.recheck (seq_cst): fence A
        return wake_one_fenced() == parking_wake::woken;
    }
    // Does the same for a caller that has executed fence A.
    parking_wake wake_one_fenced() noexcept {
        std::uint32_t counts = counts_.load(relaxed);
        do {
            if (counts / one_searcher != 0) return parking_wake::searched;
            if (counts % one_searcher == 0) return parking_wake::busy;
        } while (!counts_.compare_exchange_weak(counts, counts - one_sleeper + one_searcher,
                                                relaxed, relaxed));
        tokens_.fetch_add(1, relaxed);
        if (!planted("parking.forget_wake")) futex_wake_one(tokens_);
        return parking_wake::woken;
    }
    // Wakes every sleeper, even while others search; for the end of a pool.
    void wake_all() noexcept {
        fence(seq_cst);  // edge parking.recheck (seq_cst): fence A, for the end
        std::uint32_t counts = counts_.load(relaxed);
        std::uint32_t sleepers = 0;
        do {
            sleepers = counts % one_searcher;
            if (sleepers == 0) return;
        } while (!counts_.compare_exchange_weak(
            counts, counts - sleepers * one_sleeper + sleepers * one_searcher, relaxed, relaxed));
        tokens_.fetch_add(sleepers, relaxed);
        futex_wake_all(tokens_);
    }

private:
    // Takes one sleeper out of the count, and adds a searcher. Returns false if no sleeper is left.
    bool leave_count() noexcept {
        std::uint32_t counts = counts_.load(relaxed);
        while (counts % one_searcher != 0) {
            if (counts_.compare_exchange_weak(counts, counts - one_sleeper + one_searcher, relaxed,
                                              relaxed)) {
                return true;
            }
        }
        return false;
    }
    // Returns false if there is none. Relaxed: as in sleep().
    bool take_token() noexcept {
        std::uint32_t tokens = tokens_.load(relaxed);
        while (tokens != 0) {
            if (tokens_.compare_exchange_weak(tokens, tokens - 1, relaxed, relaxed)) return true;
        }
        return false;
    }

    static constexpr std::uint32_t one_sleeper = 1;
    static constexpr std::uint32_t one_searcher = 1u << 16;

    alignas(64) atomic<std::uint32_t> counts_{0};  // changed by workers and adders
    alignas(64) atomic<std::uint32_t> tokens_{0};  // increased by wakers, decreased by sleepers
};

// A lot for each node of a pool. Work for one node is announced to the lot of that node. Work for
// any worker is announced lot by lot, starting with a near one, until a sleeper is woken or a
// searcher is found. The argument above holds for the workers of each lot, because one fence
// precedes all the looks.
class parking_lots : immovable {
public:
    explicit parking_lots(std::size_t count) : lots_(new parking[count]), count_(count) {}

    parking& operator[](std::size_t lot) noexcept { return lots_[lot]; }

    // Call it after adding work for all nodes. Returns true if it woke a sleeper, which is one of
    // lot `near` if any slept there.
    bool wake_one(std::size_t near) noexcept {
        fence(seq_cst);  // edge parking.recheck (seq_cst): fence A
        return wake_one_fenced(near) == parking_wake::woken;
    }
    // Wakes likewise, for a caller that has executed fence A. Returns what it met.
    parking_wake wake_one_fenced(std::size_t near) noexcept {
        std::size_t lot = near;
        for (std::size_t i = 0; i != count_; ++i) {
            const parking_wake met = lots_[lot].wake_one_fenced();
            if (met != parking_wake::busy) return met;
            if (planted("parking.wake_near_only")) break;
            lot = lot + 1 == count_ ? 0 : lot + 1;
        }
        return parking_wake::busy;
    }
    // Wakes likewise, for a worker that has added work to its own queue. Cost: no fence. Instead
    // every worker executes a heavy fence before it looks for the last time: after
    // announce_sleep(), and after end_search() if any worker sleeps.
    bool wake_one_lightly(std::size_t near) noexcept {
        light_fence();  // edge parking.light (light): adds work, then reads the counts
        return wake_one_fenced(near) == parking_wake::woken;
    }
    void wake_all() noexcept {
        for (std::size_t i = 0; i != count_; ++i) lots_[i].wake_all();
    }
    bool has_sleepers() const noexcept {
        for (std::size_t i = 0; i != count_; ++i) {
            if (lots_[i].has_sleepers()) return true;
        }
        return false;
    }

private:
    const std::unique_ptr<parking[]> lots_;
    const std::size_t count_;
};

}  // namespace coppice::internal
