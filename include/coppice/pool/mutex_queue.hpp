// mutex_queue: an unbounded queue of work items under a lock; for work from outside a pool.
#pragma once

#include <coppice/base/atomic.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/pool/work_item.hpp>

#include <cstddef>
#include <mutex>

namespace coppice {

// First in, first out. Threads: any. Blocks: for the few instructions that another holds the lock.
class mutex_queue : immovable {
public:
    void push(work_item* item) noexcept {
        const std::lock_guard lock(mutex_);
        items_.push_back(item);
        size_.store(size_.load(relaxed) + 1, relaxed);  // relaxed: written under the mutex
    }
    // The oldest item, or nullptr. Cost: one load when empty.
    work_item* pop() noexcept {
        if (looks_empty()) return nullptr;
        const std::lock_guard lock(mutex_);
        work_item* const item = items_.pop_front();
        if (item != nullptr) size_.store(size_.load(relaxed) - 1, relaxed);
        return item;
    }
    // May be stale when it returns; a caller that must not miss an item fences first (parking.hpp).
    bool looks_empty() const noexcept { return size_.load(relaxed) == 0; }

private:
    std::mutex mutex_;
    intrusive_queue<work_item, &work_item::next> items_;  // under mutex_
    atomic<std::size_t> size_{0};                         // written under mutex_; read by any
};

}  // namespace coppice
