// The queues of a pool: one for all workers, or a deque for each. basic_pool is given one of them.
#pragma once
// What basic_pool needs of its queues:
//   Queues(workers)                 makes queues for that many workers
//   push(worker, item)              by that worker
//   push_outside(item)              by any thread
//   try_push, try_push_outside      the same, without blocking or allocating; false: not queued
//   next(worker)                    by that worker: what it should do next, if anything
//   steal(worker, victim)           by that worker, from another: an item, none, or lost a race
//   looks_empty()                   by any thread; one that must not miss an item fences first
//                                   (parking.hpp)

#include <coppice/base/clock.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/pool/internal/deque.hpp>
#include <coppice/pool/internal/work_item.hpp>
#include <coppice/pool/mutex_queue.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace coppice::internal {

struct [[nodiscard]] next_work {
    work_item* item;          // nullptr if there is none
    bool others_too = false;  // there is more that no other worker has seen; announce it
};

// One queue: every worker takes the oldest item of all.
template <class Queue>
class shared_queue : immovable {
public:
    explicit shared_queue(std::size_t) {}

    void push(std::size_t, work_item* item) noexcept { queue_.push(item); }
    void push_outside(work_item* item) noexcept { queue_.push(item); }
    bool try_push(std::size_t, work_item* item) noexcept { return queue_.try_push(item); }
    bool try_push_outside(work_item* item) noexcept { return queue_.try_push(item); }
    next_work next(std::size_t) noexcept { return {queue_.pop()}; }
    static stolen<work_item> steal(std::size_t, std::size_t) noexcept {
        return {steal_outcome::empty, nullptr};
    }
    bool looks_empty() const noexcept { return queue_.looks_empty(); }

private:
    Queue queue_;
};

// A deque for each worker. Items that a worker submits go to the bottom of its deque and come back
// last in, first out; thieves steal the oldest. Items from outside, and those that do not fit, go
// to the injector. A worker that has nothing takes a share from the injector into its deque. The
// share is limited by time, so that a worker does not take long items before it can begin them. The
// first free worker then takes the oldest item, even if the system has preempted another worker.
template <class Deque, class Clock = monotonic_clock>
class [[gnu::visibility("default")]] stealing_queues : immovable {
    // Once in this many items after its last share, a worker looks into the injector first. A
    // worker that feeds itself then does not starve work from outside.
    static constexpr unsigned outside_interval = 127;
    // The most items in a share. A worker that takes only a few each time would meet the submitter
    // at every item, and both would wait for each other's cache lines. Such a worker pauses longer
    // and longer before it looks, up to about a microsecond, until it finds many items or none.
    static constexpr std::size_t share_max = 64;
    static constexpr unsigned patience_max = 31;
    // A share that leaves items in the injector holds as many items as the worker has just
    // completed in this time. The time grows with the number of workers, so that all workers
    // together take a share once in a microsecond.
    static constexpr duration share_time_min = std::chrono::microseconds(20);
    static constexpr duration share_time_per_worker = std::chrono::microseconds(1);

public:
    explicit stealing_queues(std::size_t workers)
        : share_time_(std::max(share_time_min,
                               share_time_per_worker * static_cast<duration::rep>(workers))) {
        for (std::size_t i = 0; i != workers; ++i) mine_.push_back(std::make_unique<own>());
    }

    void push(std::size_t worker, work_item* item) noexcept {
        if (!mine_[worker]->deque.push(item)) outside_.push(item);
    }
    void push_outside(work_item* item) noexcept { outside_.push(item); }
    bool try_push(std::size_t worker, work_item* item) noexcept {
        if constexpr (requires { Deque::never_blocks; }) {
            if (mine_[worker]->deque.push(item)) return true;
        }
        return outside_.try_push(item);
    }
    bool try_push_outside(work_item* item) noexcept { return outside_.try_push(item); }
    next_work next(std::size_t worker) noexcept {
        own& mine = *mine_[worker];
        if (++mine.turns % outside_interval == 0) {
            if (work_item* const item = outside_.pop()) return {item};
        }
        if (work_item* const item = mine.deque.pop()) return {item};
        return next_from_outside(worker);
    }
    stolen<work_item> steal(std::size_t, std::size_t victim) noexcept {
        return mine_[victim]->deque.steal();
    }
    bool looks_empty() const noexcept {
        if (!outside_.looks_empty()) return false;
        for (const auto& each : mine_) {
            if (!each->deque.looks_empty()) return false;
        }
        return true;
    }

private:
    struct alignas(64) own {
        Deque deque;
        // Used by the worker only.
        unsigned turns = 0;            // items since its last share
        unsigned patience = 0;         // pauses before it looks into the injector
        std::size_t most = share_max;  // items in a share
        std::size_t count = 0;         // items in its last share; 0 if that left nothing behind
        time_point since;              // when the last share was taken; set if count is not 0
    };
    // Called when the worker's deque is empty. Moves a share into it, with the oldest item at the
    // bottom.
    next_work next_from_outside(std::size_t worker) noexcept {
        own& mine = *mine_[worker];
        for (unsigned i = 0; i != mine.patience; ++i) spin_hint();
        const bool timed = mine.count != 0;
        const time_point now = timed ? Clock().now() : time_point();
        if (timed) mine.most = most_in(share_time_, mine.count, now - mine.since);
        work_item* items[share_max];
        bool rest = false;
        std::size_t count = outside_.pop_share(items, mine.most, mine_.size(), rest);
        mine.count = rest ? count : 0;
        if (rest) mine.since = timed ? now : Clock().now();
        if (count == 0) {
            mine.patience = 0;
            return {nullptr};
        }
        if (count == mine.most) {
            mine.patience /= 2;
        } else if (count < share_max / 4) {
            mine.patience = std::min(2 * mine.patience + 1, patience_max);
        }
        mine.turns = 0;
        const bool others_too = rest || count > 1;
        while (--count != 0) push(worker, items[count]);
        return {items[0], others_too};
    }

    // Returns how many items fit into `time`, if `count` of them took `took`.
    static std::size_t most_in(duration time, std::size_t count, duration took) noexcept {
        const auto fit = static_cast<std::int64_t>(count) * time.count() /
                         std::max(took.count(), duration::rep{1});
        return static_cast<std::size_t>(std::clamp<std::int64_t>(fit, 1, share_max));
    }

    const duration share_time_;
    std::vector<std::unique_ptr<own>> mine_;
    mutex_queue outside_;
};

}  // namespace coppice::internal
