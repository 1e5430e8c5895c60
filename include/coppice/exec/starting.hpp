// starting: did an operation complete inside its own start()? For awaits: they must not recurse.
#pragma once
// A completion inside start() may not resume the coroutine on top of the starter's stack: a loop of
// such awaits would use it up. It is noted instead, and the starter goes on. A completion anywhere
// else, be it on another thread before start() has returned, resumes the coroutine itself: it is
// where the operation completes, and the starter may be elsewhere. The note lies on the starter's
// stack and is found through its thread, so that nothing is shared and the operation, which may be
// gone when start() returns, is not touched.

#include <coppice/base/atomic.hpp>
#include <coppice/base/lifetime.hpp>

namespace coppice::execution {

// Around one start(). Threads: the starter's.
class starting : immovable {
public:
    explicit starting(const void* operation) noexcept : operation_(operation), outer_(innermost()) {
        innermost() = this;
    }
    ~starting() { innermost() = outer_; }
    // True: the operation has completed inside start(), and the starter goes on.
    bool has_completed() const noexcept { return completed_; }

    // By the completion, on any thread. True: it is inside start(), and touches nothing any more.
    static bool takes_completion_of(const void* operation) noexcept {
        for (starting* s = innermost(); s != nullptr; s = s->outer_) {
            if (s->operation_ != operation) continue;
            s->completed_ = true;
            return true;
        }
        return false;
    }

private:
    static starting*& innermost() noexcept { return thread_slot<starting, starting*>(); }

    const void* const operation_;
    starting* const outer_;
    bool completed_ = false;
};

}  // namespace coppice::execution
