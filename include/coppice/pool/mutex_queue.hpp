// mutex_queue: an unbounded queue of work items under a lock; for work from outside a pool.
#pragma once

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/pool/internal/work_item.hpp>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>

namespace coppice {

// First in, first out. Threads: any. Blocks: for the few instructions during which another thread
// holds the lock.
class alignas(64) mutex_queue : immovable {
public:
    // Enqueues `item`, which must be in no queue. Lifetime: until it is popped.
    void push(internal::work_item* item) noexcept {
        const std::lock_guard lock(mutex_);
        items_.push_back(item);
        // relaxed: written under the mutex
        size_.store(size_.load(internal::relaxed) + 1, internal::relaxed);
    }
    // Enqueues `item`, unless another thread holds the lock; returns false then. Blocks: never.
    [[nodiscard]] bool try_push(internal::work_item* item) noexcept {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock.owns_lock()) return false;
        items_.push_back(item);
        // relaxed: written under the mutex
        size_.store(size_.load(internal::relaxed) + 1, internal::relaxed);
        return true;
    }
    // Removes and returns the oldest item, or nullptr. Cost: one load if the queue is empty.
    internal::work_item* pop() noexcept {
        if (looks_empty()) return nullptr;
        const std::lock_guard lock(mutex_);
        internal::work_item* const item = items_.pop_front();
        if (item != nullptr) size_.store(size_.load(internal::relaxed) - 1, internal::relaxed);
        return item;
    }
    // Removes the oldest items and returns how many: the caller's share if `sharers` threads take
    // one each, but at most `most`. The items are cold in the cache, so they are read without the
    // lock. Meanwhile no other thread finds the remaining ones. If `rest` is set, the caller must
    // therefore announce them as it would new work. Cost: as pop() if `most` is 1; otherwise locks
    // twice.
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
    // Returns true if there seems to be no item. May be stale when it returns. A caller that must
    // not miss an item fences first (parking.hpp).
    bool looks_empty() const noexcept { return size_.load(internal::relaxed) == 0; }

private:
    using queue = intrusive_queue<internal::work_item, &internal::work_item::next>;
    queue take_all(std::size_t& size) noexcept {
        const std::lock_guard lock(mutex_);
        size = size_.load(internal::relaxed);
        size_.store(0, internal::relaxed);
        return std::move(items_);
    }
    // Puts items back, in front of the items that were pushed since.
    void put_back(queue items, std::size_t size) noexcept {
        const std::lock_guard lock(mutex_);
        items.append(std::move(items_));
        items_.append(std::move(items));
        size_.store(size_.load(internal::relaxed) + size, internal::relaxed);
    }

    std::mutex mutex_;
    queue items_;                            // guarded by mutex_
    internal::atomic<std::size_t> size_{0};  // written under mutex_; read by any thread
};

}  // namespace coppice
