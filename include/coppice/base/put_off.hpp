// put_off_work: what a thread has put off for want of stack; run before the thread sleeps.
#pragma once
// caller_runs puts an item off when there is no room for it on the stack, until an item further out
// returns. That one may be about to wait for the item that was put off, and then nobody else would
// ever run it. So whatever in this library makes a thread sleep, until something has completed,
// calls run_one() first, as long as that finds something, and looks again whether it has to sleep.
// Not so a join of forked calls: it runs no strangers, since its caller may hold a lock.

#include <coppice/base/atomic.hpp>
#include <coppice/base/lifetime.hpp>

namespace coppice::internal {

// A place on a thread's stack where items wait. Threads: its own.
class [[gnu::visibility("default")]] put_off_work : immovable {
public:
    // Runs one item that this thread has put off, the innermost place's first. False: there is
    // none. Cost: one load if nothing was put off. Lifetime: what the caller waits for may have
    // ended.
    static bool run_one() noexcept {
        for (put_off_work* each = innermost(); each != nullptr; each = each->outer_) {
            if (each->run_next_(*each)) return true;
        }
        return false;
    }

protected:
    // Runs the oldest item of the place. False: it has none.
    using run_next = bool (*)(put_off_work&) noexcept;

    explicit put_off_work(run_next function) noexcept : run_next_(function), outer_(innermost()) {
        innermost() = this;
    }
    ~put_off_work() { innermost() = outer_; }

private:
    static put_off_work*& innermost() noexcept {
        return thread_slot<put_off_work, put_off_work*>();
    }

    const run_next run_next_;
    put_off_work* const outer_;
};

}  // namespace coppice::internal
