// run_loop_queue: the operations and timers of a run_loop, and how its runner sleeps.
#pragma once
// Any thread pushes and finishes; one thread, the runner, pops. One word holds the newest operation
// of a chain, and two flags:
//
//   newest_    the operations pushed since the runner last took the chain, newest first
//   sleeping   alone: the runner sleeps, and the chain is empty; the next push or finish wakes it
//   finishing  pop() returns nullptr once the chain is empty
//
// Model: tests/model/run_loop_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/futex.hpp>
#include <coppice/base/internal/put_off.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/internal/timer_heap.hpp>

namespace coppice::execution::internal {

// What the queue holds.
class [[gnu::visibility("default")]] run_loop_item : immovable {
public:
    virtual void execute() noexcept = 0;
    // Written by the pushing thread, then by the runner.
    plain<run_loop_item*> next{nullptr};

protected:
    run_loop_item() = default;
    ~run_loop_item() = default;
};
// execute() arms the timer; expire() is called when its time has come.
class [[gnu::visibility("default")]] run_loop_timer : public run_loop_item, public heap_timer {
public:
    virtual void expire() noexcept = 0;

protected:
    ~run_loop_timer() = default;
};

class [[gnu::visibility("default")]] run_loop_queue : immovable {
    using item = run_loop_item;

public:
    ~run_loop_queue() {
        // edge run_loop.finish (acquire): sees the queue as the finishing thread left it
        COPPICE_CHECK(serving_ == nullptr && (newest_.load(acquire) & ~finishing) == 0,
                      "a run_loop was destroyed with operations in its queue: run it until they "
                      "have completed");
        COPPICE_CHECK(
            timers_.empty(),
            "a run_loop was destroyed with timers in it: run it until they have completed");
    }

    // Threads: any. The runner may destroy the queue before this returns.
    void finish() noexcept {
        std::uintptr_t seen = newest_.load(relaxed);
        std::uintptr_t next;
        do {
            next = (seen & ~sleeping) | finishing;
            // edge run_loop.finish (release): what the finishing thread did; pairs with pop()
        } while (!newest_.compare_exchange_weak(seen, next, release, relaxed));
        if ((seen & sleeping) != 0 && !planted("run_loop.finish_asleep")) futex_wake_one(newest_);
    }

    // Threads: any.
    void push_back(item& pushed) noexcept {
        std::uintptr_t seen = newest_.load(relaxed);
        std::uintptr_t next;
        do {
            pushed.next.write(pointer(seen));
            next = reinterpret_cast<std::uintptr_t>(&pushed) | (seen & finishing);
            // edge run_loop.push (release): the operation is linked; pairs with pop()
        } while (!newest_.compare_exchange_weak(seen, next, release, relaxed));
        if ((seen & sleeping) != 0 && !planted("run_loop.push_asleep")) futex_wake_one(newest_);
    }

    // For the operations of timers. Threads: the runner.
    void arm(run_loop_timer& t) noexcept { timers_.insert(t); }
    void disarm(run_loop_timer& t) noexcept { timers_.remove(t); }

    // Returns the oldest operation, or nullptr when the loop should end. Before it takes a new
    // chain, it expires the timers that are due. Threads: the runner. Blocks: while the queue is
    // empty and not finished.
    item* pop() noexcept {
        for (;;) {
            if (item* const oldest = serving_) {
                serving_ = oldest->next.read();
                return oldest;
            }
            expire_timers();
            // edge run_loop.push (acquire), edge run_loop.finish (acquire): sees what they did
            const std::uintptr_t seen = newest_.fetch_and(finishing, acquire);
            if (pointer(seen) != nullptr) {
                serving_ = reversed(pointer(seen));
                continue;
            }
            if ((seen & finishing) != 0) return nullptr;
            if (!put_off_work::run_one()) sleep();
        }
    }

private:
    static constexpr std::uintptr_t finishing = 1;
    static constexpr std::uintptr_t sleeping = 2;

    static item* pointer(std::uintptr_t word) noexcept {
        return reinterpret_cast<item*>(word & ~(finishing | sleeping));
    }

    void expire_timers() noexcept {
        if (timers_.empty()) return;
        const instant time = monotonic_now();
        while (heap_timer* const due = timers_.pop_due(time))
            static_cast<run_loop_timer*>(due)->expire();
    }
    void sleep() noexcept {
        std::uintptr_t empty = 0;
        // relaxed: the chain is taken, with acquire, only after the wake-up
        if (!newest_.compare_exchange_strong(empty, sleeping, relaxed, relaxed)) return;
        // relaxed: as above
        while (newest_.load(relaxed) == sleeping) {
            if (timers_.empty()) {
                futex_wait(newest_, sleeping);
            } else if (!sleep_until(timers_.earliest()->when)) {
                return;
            }
        }
    }
    // Returns false if the time has come.
    bool sleep_until(instant when) noexcept {
#if defined(COPPICE_MODEL)
        static_cast<void>(when);  // the model has no clock, and arms no timers
        return false;
#else
        return futex_wait_until(newest_, sleeping, when.nanoseconds());
#endif
    }
    static item* reversed(item* newest) noexcept {
        item* oldest = nullptr;
        while (newest != nullptr) {
            item* const older = newest->next.read();
            newest->next.write(oldest);
            oldest = newest;
            newest = older;
        }
        return oldest;
    }

    atomic<std::uintptr_t> newest_{0};  // states above; written by all threads
    item* serving_ = nullptr;           // the runner's; oldest first
    timer_heap timers_;                 // the runner's
};

}  // namespace coppice::execution::internal
