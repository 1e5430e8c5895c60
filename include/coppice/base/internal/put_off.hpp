// put_off_work: items that a thread deferred for lack of stack; run before the thread sleeps.
#pragma once
// caller_runs defers an item that has no room on the stack until an outer item returns, and a token
// defers a callback until the running one returns (token/internal/inline_start.hpp). But that
// outer item may be about to wait for the deferred one, which then would never run. So every
// function of this library that makes a thread sleep until something has completed first calls
// run_one() until that finds nothing, and then checks again whether it has to sleep. A join of
// forked calls is an exception: its caller may hold a lock, so it runs no unrelated work.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>

namespace coppice::internal {

// A place on a thread's stack where deferred items wait. Threads: its own.
class [[gnu::visibility("default")]] put_off_work : immovable {
public:
    // Runs one item that this thread has deferred; the innermost place comes first. Returns false
    // if there is none. Cost: one load if nothing was deferred. Lifetime: what the caller waits for
    // may have ended.
    static bool run_one() noexcept {
        for (put_off_work* each = innermost(); each != nullptr; each = each->outer_) {
            if (each->run_next_(*each)) return true;
        }
        return false;
    }

protected:
    // Runs the oldest item of the place. Returns false if it has none.
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
