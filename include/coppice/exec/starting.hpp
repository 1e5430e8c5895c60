// starting: did an operation complete inside its own start()? For awaits: they must not recurse.
#pragma once
// A completion inside start() may not resume the coroutine on top of the starter's stack: a loop of
// such awaits would use it up. It is noted instead, and the starter goes on. A completion anywhere
// else, be it on another thread before start() has returned, resumes the coroutine itself: it is
// where the operation completes, and the starter may be elsewhere.
//
// No atomic operation is needed. Every start has a mark on its own stack, linked into a list of
// this thread; the operation keeps the address of the mark that it was started under. A completion
// elsewhere finds no such mark and goes on by itself; the starter then looks only at its mark,
// never at the operation, which may be gone. A match needs the addresses of both, mark and
// operation. Either alone may belong to an earlier owner of that memory: an operation that
// completes on another thread inside its start() may be followed there by the next one at its
// address, which may complete on this thread, inside the same start(). Both together cannot: two
// operations of one address live one after the other, and the marks under which they were started
// are not both alive at one address.

#include <coppice/base/atomic.hpp>
#include <coppice/base/internal.hpp>
#include <coppice/base/lifetime.hpp>

namespace coppice::execution::internal {

// Around one start(), on the starter's stack. Threads: the starter's.
class [[gnu::visibility("default")]] starting : immovable {
public:
    // `kept` is a field of the operation: it is given this mark's address.
    starting(const void* operation, const starting*& kept) noexcept
        : operation_(operation), outer_(innermost()) {
        innermost() = this;
        kept = this;
    }
    ~starting() { innermost() = outer_; }
    // True: the operation has completed inside start(), and the starter goes on. False: it may be
    // gone.
    bool has_completed() const noexcept { return operation_ == nullptr; }

    // Called by the completion of an operation that was started under `mark`, on any thread. True:
    // it is inside start(), and touches nothing any more.
    static bool takes_completion_of(const void* operation, const starting* mark) noexcept {
        for (starting* s = innermost(); s != nullptr; s = s->outer_) {
            if (s != mark || s->operation_ != operation) continue;
            s->operation_ = nullptr;
            return true;
        }
        return false;
    }

private:
    static starting*& innermost() noexcept { return thread_slot<starting, starting*>(); }

    const void* operation_;  // null: it has completed
    starting* const outer_;
};

}  // namespace coppice::execution::internal
