// starting: did an operation complete inside its own start()? Keeps awaits from recursing.
#pragma once
// A completion inside start() must not resume the coroutine on top of the starter's stack: a loop
// of such awaits would use up the stack. The completion is noted instead, and the starter
// continues. A completion anywhere else resumes the coroutine itself, even if it happens on another
// thread before start() has returned, because that thread is where the operation completes.
//
// No atomic operation is needed. Every start has a mark on its own stack, linked into a list of its
// thread, and the operation stores the address of its mark. A completion elsewhere finds no such
// mark in its thread's list and resumes the coroutine. The starter then looks only at its mark,
// never at the operation, which may be gone.
//
// A match needs both addresses, that of the mark and that of the operation, because either alone
// may belong to an earlier object at the same place. For example, an operation may complete on
// another thread while the starter is inside start(). The next operation may then be made at the
// same address, and complete on this thread, inside the same start(). Both addresses cannot match
// by accident: two operations at one address exist one after the other, and the marks under which
// they were started are not both alive at one address.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>

namespace coppice::execution::internal {

// Made around one start(), on the starter's stack. Threads: the starter's.
class [[gnu::visibility("default")]] starting : immovable {
public:
    // `kept` is a field of the operation, which receives this mark's address.
    starting(const void* operation, const starting*& kept) noexcept
        : operation_(operation), outer_(innermost()) {
        innermost() = this;
        kept = this;
    }
    ~starting() { innermost() = outer_; }
    // Returns true if the operation has completed inside start(), so that the starter continues. If
    // it returns false, the operation may be gone.
    bool has_completed() const noexcept { return operation_ == nullptr; }

    // Called by the completion of an operation that was started under `mark`, on any thread.
    // Returns true if the completion is inside start(); it must then touch nothing else.
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

    const void* operation_;  // nullptr if it has completed
    starting* const outer_;
};

}  // namespace coppice::execution::internal
