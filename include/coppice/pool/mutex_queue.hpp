// mutex_queue: an unbounded queue of work items under a lock; for work from outside a pool.
#pragma once

#include <coppice/base/atomic.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/pool/work_item.hpp>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>

namespace coppice {

// First in, first out. Threads: any. Blocks: for the few instructions that another holds the lock.
class alignas(64) mutex_queue : immovable {
public:
    void push(internal::work_item* item) noexcept {
        const std::lock_guard lock(mutex_);
        items_.push_back(item);
        // relaxed: written under the mutex
        size_.store(size_.load(internal::relaxed) + 1, internal::relaxed);
    }
    // The oldest item, or nullptr. Cost: one load when empty.
    internal::work_item* pop() noexcept {
        if (looks_empty()) return nullptr;
        const std::lock_guard lock(mutex_);
        internal::work_item* const item = items_.pop_front();
        if (item != nullptr) size_.store(size_.load(internal::relaxed) - 1, internal::relaxed);
        return item;
    }
    // The oldest items: the caller's share, if as many as `sharers` take one, and at most `most`;
    // how many. They are cold: nobody waits for the lock while they are read, but nobody else finds
    // the rest then either, so the caller tells of it as of new work if `rest`. Cost: as pop(), by
    // which one alone is taken; else the lock twice.
    std::size_t pop_share(internal::work_item** to, std::size_t most, std::size_t sharers,
                          bool& rest) noexcept {
        rest = false;
        if (looks_empty()) return 0;
        if (most == 1) {
            to[0] = pop();
            rest = !looks_empty();
            return to[0] != nullptr ? 1 : 0;
        }
        std::size_t left = 0;
        queue items = take_all(left);
        const std::size_t share = std::min(most, (left + sharers - 1) / sharers);
        for (std::size_t i = 0; i != share; ++i) to[i] = items.pop_front();
        rest = share != left;
        if (rest) put_back(std::move(items), left - share);
        return share;
    }
    // May be stale when it returns; a caller that must not miss an item fences first (parking.hpp).
    bool looks_empty() const noexcept { return size_.load(internal::relaxed) == 0; }

private:
    using queue = intrusive_queue<internal::work_item, &internal::work_item::next>;
    queue take_all(std::size_t& size) noexcept {
        const std::lock_guard lock(mutex_);
        size = size_.load(internal::relaxed);
        size_.store(0, internal::relaxed);
        return std::move(items_);
    }
    // Before what came since.
    void put_back(queue items, std::size_t size) noexcept {
        const std::lock_guard lock(mutex_);
        items.append(std::move(items_));
        items_.append(std::move(items));
        size_.store(size_.load(internal::relaxed) + size, internal::relaxed);
    }

    std::mutex mutex_;
    queue items_;                  // under mutex_
    internal::atomic<std::size_t> size_{0};  // written under mutex_; read by any
};

}  // namespace coppice
