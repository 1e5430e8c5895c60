// lockfree_queue: one lock-free queue for all workers; used by one of the thesis's four schedulers.
#pragma once
// Items that do not fit into the ring (internal/lockfree_ring.hpp) wait in an overflow queue under
// a lock.

#include <coppice/base/lifetime.hpp>
#include <coppice/pool/internal/lockfree_ring.hpp>
#include <coppice/pool/internal/work_item.hpp>
#include <coppice/pool/mutex_queue.hpp>

namespace coppice {

// First in, first out, except for items that overflowed. Threads: any. Blocks: never, unless the
// ring overflows.
class lockfree_queue : immovable {
public:
    // Enqueues `item`, which must be in no queue. Lifetime: until it is popped.
    void push(internal::work_item* item) noexcept {
        if (!ring_.push(item)) overflow_.push(item);
    }
    // Enqueues `item` likewise, or returns false if that would block. Blocks: never.
    [[nodiscard]] bool try_push(internal::work_item* item) noexcept {
        return ring_.push(item) || overflow_.try_push(item);
    }
    // Removes and returns the oldest item, or nullptr; an item that overflowed comes last.
    internal::work_item* pop() noexcept {
        if (internal::work_item* const item = ring_.pop()) return item;
        return overflow_.pop();
    }
    // Returns true if there seems to be no item. May be stale, as in mutex_queue.
    bool looks_empty() const noexcept { return ring_.looks_empty() && overflow_.looks_empty(); }

private:
    internal::lockfree_ring<internal::work_item, 4096> ring_;
    mutex_queue overflow_;
};

}  // namespace coppice
