// mutex_deque: a worker's deque under a lock; used by one of the thesis's four schedulers.
#pragma once

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/pool/internal/deque.hpp>

#include <cstddef>
#include <deque>
#include <mutex>
#include <new>

namespace coppice::internal {

// Like bounded_deque, but unbounded. Threads: the owner calls push() and pop(); any thread calls
// the rest. Blocks: for the few instructions during which another thread holds the lock.
template <class T>
class mutex_deque : immovable {
public:
    // Returns false if there is no memory; `item` is then still the caller's.
    [[nodiscard]] bool push(T* item) noexcept {
        const std::lock_guard lock(mutex_);
        try {
            items_.push_back(item);
        } catch (const std::bad_alloc&) {
            return false;
        }
        size_.store(items_.size(), relaxed);  // relaxed, below too: written under the mutex
        return true;
    }
    T* pop() noexcept {
        if (looks_empty()) return nullptr;
        const std::lock_guard lock(mutex_);
        if (items_.empty()) return nullptr;
        T* const item = items_.back();
        items_.pop_back();
        size_.store(items_.size(), relaxed);
        return item;
    }
    stolen<T> steal() noexcept {
        if (looks_empty()) return {steal_outcome::empty, nullptr};
        const std::lock_guard lock(mutex_);
        if (items_.empty()) return {steal_outcome::empty, nullptr};
        T* const item = items_.front();
        items_.pop_front();
        size_.store(items_.size(), relaxed);
        return {steal_outcome::taken, item};
    }
    bool looks_empty() const noexcept { return size_.load(relaxed) == 0; }

private:
    std::mutex mutex_;
    std::deque<T*> items_;         // guarded by mutex_
    atomic<std::size_t> size_{0};  // written under mutex_; read by any thread
};

}  // namespace coppice::internal
