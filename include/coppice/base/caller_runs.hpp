// caller_runs: runs a queueable item on the thread that submits it; for what has been told to end.
#pragma once
// An item that runs may submit the next one, and so on for ever: that must not eat the stack. So
// only some items run inside each other; those further in wait until the innermost has returned. A
// few levels there are, since an item may block until one that it has submitted is done.

#include <coppice/base/atomic.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/base/no_fork_context.hpp>

namespace coppice::internal {

// Item: has void (*run)(Item*) noexcept, and a `next` for a queue.
template <class Item>
class caller_runs : immovable {
public:
    static constexpr unsigned depth_most = 16;

    // Runs the item, or leaves it to the calls of this function that are below on this stack.
    // Threads: any. Lifetime: the item may be gone when this returns, and so may its pool.
    static void run(Item& item) noexcept {
        caller_runs* const outer = innermost();
        if (outer != nullptr && outer->depth_ == depth_most) {
            outer->later_.push_back(&item);
            return;
        }
        caller_runs mine(outer == nullptr ? 1 : outer->depth_ + 1);
        innermost() = &mine;
        const no_fork_context none;  // what it forks inherits nothing from who submits it
        item.run(&item);
        while (Item* const next = mine.later_.pop_front()) next->run(next);
        innermost() = outer;
    }

private:
    explicit caller_runs(unsigned depth) noexcept : depth_(depth) {}
    static caller_runs*& innermost() noexcept { return thread_slot<caller_runs, caller_runs*>(); }

    const unsigned depth_;
    intrusive_queue<Item, &Item::next> later_;  // items that came too deep
};

}  // namespace coppice::internal
