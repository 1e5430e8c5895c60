// ready_timers: the timers that a worker of a pool has found due, in the order of their times.
#pragma once
// A queue of the pool gives its newest item first, or its oldest one. Neither is the timer that is
// due first, because a busy worker looks for timers again and again. So a worker keeps them here,
// and takes the earliest one. Another worker that has nothing to do takes the earliest one too.
//
//   count_   how many there are; the fences of parking order it, as other work (parking.hpp)

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/biased_lock.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/pool/internal/pool_timer.hpp>
#include <coppice/pool/internal/pool_timers.hpp>

#include <cstddef>
#include <utility>

namespace coppice::internal {

// Timers that have ended, earliest first; those with the same tick in the order of their numbers.
// Threads: its owner's.
class timers_in_order : immovable {
public:
    // The most timers that an added one is compared with. What is added behind so many is not
    // sorted in, so that the cost has a bound.
    static constexpr std::size_t sorted_max = 2048;

    std::size_t size() const noexcept { return size_; }
    // Takes all timers out of `ended`. Cost: O(1) for each timer that is not earlier than those
    // that are here, and for each sorted run of others one walk.
    void add(item_chain& ended) noexcept {
        work_item** place = &first_;
        const work_item* before = nullptr;  // the last one that was sorted in; `place` is behind it
        while (work_item* const item = ended.pop_front()) {
            if (first_ == nullptr || size_ >= sorted_max || !is_earlier(item, last_)) {
                item->next = nullptr;
                *(first_ == nullptr ? &first_ : &last_->next) = item;
                last_ = item;
            } else {
                if (before == nullptr || is_earlier(item, before)) place = &first_;
                while (!is_earlier(item, *place)) place = &(*place)->next;
                item->next = std::exchange(*place, item);
                place = &item->next;
                before = item;
            }
            ++size_;
        }
    }
    // Takes the earliest timer, or returns nullptr.
    work_item* take() noexcept {
        work_item* const item = first_;
        if (item != nullptr) {
            first_ = item->next;
            --size_;
        }
        return item;
    }

private:
    static bool is_earlier(const work_item* a, const work_item* b) noexcept {
        const pool_timer& first = *static_cast<const pool_timer*>(a);
        const pool_timer& other = *static_cast<const pool_timer*>(b);
        return first.due != other.due ? first.due < other.due : first.number < other.number;
    }

    work_item* first_ = nullptr;
    work_item* last_ = nullptr;  // if there is a first one
    std::size_t size_ = 0;
};

// Sorts timers by their times. Those that a stop has ended on another thread have none, and come
// first.
inline void put_in_order(item_chain& ended) noexcept {
    timers_in_order sorted;
    sorted.add(ended);
    while (work_item* const item = sorted.take()) ended.push_back(item);
}

// Threads: those that each member names. Blocks: for the short lock.
class alignas(64) ready_timers : immovable {
public:
    // Called by the worker, which wakes another one afterwards. Takes all timers out of `ended`.
    void add(item_chain& ended) noexcept {
        if (ended.empty()) return;
        const bool by_bias = lock_.enter_as_owner();
        timers_.add(ended);
        count_.store(stopped_count_ + timers_.size(), relaxed);
        lock_.leave_as_owner(by_bias);
    }
    // Does the same for a timer that a stop has ended. It goes before those whose time has come.
    void add_stopped(work_item& timer) noexcept {
        const bool by_bias = lock_.enter_as_owner();
        stopped_.push_back(&timer);
        count_.store(++stopped_count_ + timers_.size(), relaxed);
        lock_.leave_as_owner(by_bias);
    }
    // Called by the worker: takes the earliest timer, or returns nullptr.
    work_item* take() noexcept {
        if (count() == 0) return nullptr;
        const bool by_bias = lock_.enter_as_owner();
        work_item* const item = take_held();
        lock_.leave_as_owner(by_bias);
        return item;
    }
    // Does the same; called by another worker.
    work_item* steal() noexcept {
        if (count() == 0) return nullptr;
        lock_.lock();
        work_item* const item = take_held();
        lock_.unlock();
        return item;
    }
    // Returns how many there are. Threads: any. May be stale when it returns.
    std::size_t count() const noexcept { return count_.load(relaxed); }

private:
    work_item* take_held() noexcept {
        work_item* item = stopped_.pop_front();
        if (item != nullptr) {
            --stopped_count_;
        } else {
            item = timers_.take();
        }
        count_.store(stopped_count_ + timers_.size(), relaxed);
        return item;
    }

    atomic<std::size_t> count_{0};  // written under the lock
    biased_lock lock_{biased_lock::initially::biased};
    // Guarded by the lock, all three.
    item_chain stopped_;
    std::size_t stopped_count_ = 0;
    timers_in_order timers_;
};

}  // namespace coppice::internal
