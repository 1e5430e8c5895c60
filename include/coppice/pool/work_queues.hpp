// Where a pool's work waits: one queue for all workers, or a deque for each; chosen by basic_pool.
#pragma once
// Both are what basic_pool asks of its queues:
//   Queues(workers)                 for that many workers
//   push(worker, item)              by that worker
//   push_outside(item)              by any thread
//   next(worker)                    by that worker: what it should do next, if anything
//   steal(worker, victim)           by that worker, from another: an item, none, or lost a race
//   looks_empty()                   by any; who must not miss an item fences first (parking.hpp)

#include <coppice/base/clock.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/pool/deque.hpp>
#include <coppice/pool/mutex_queue.hpp>
#include <coppice/pool/work_item.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace coppice::internal {

struct [[nodiscard]] next_work {
    work_item* item;          // or nullptr
    bool others_too = false;  // there is more, which nobody else saw: others are to be told of it
};

// One queue: every worker takes the oldest item of all.
template <class Queue>
class shared_queue : immovable {
public:
    explicit shared_queue(std::size_t) {}

    void push(std::size_t, work_item* item) noexcept { queue_.push(item); }
    void push_outside(work_item* item) noexcept { queue_.push(item); }
    next_work next(std::size_t) noexcept { return {queue_.pop()}; }
    static stolen<work_item> steal(std::size_t, std::size_t) noexcept {
        return {steal_outcome::empty, nullptr};
    }
    bool looks_empty() const noexcept { return queue_.looks_empty(); }

private:
    Queue queue_;
};

// A deque for each worker: what it submits goes to the bottom and comes back last in, first out;
// others steal the oldest. What comes from outside, or does not fit, goes to a shared queue; who
// has nothing takes a share from there into its deque. Long items are not taken before they can be
// begun: whoever is free first takes the oldest, though one worker may be held up by the system.
template <class Deque, class Clock = monotonic_clock>
class [[gnu::visibility("default")]] stealing_queues : immovable {
    // A worker looks into the shared queue first once in so many items after its last share, so
    // that work from outside is not starved by a worker that feeds itself.
    static constexpr unsigned outside_interval = 127;
    // It takes so many from there at once at most. One that takes few each time would meet the
    // submitter at every item, and both would wait for each other's cache lines; so it pauses
    // longer and longer before it looks, up to about a microsecond, until there are more or none.
    static constexpr std::size_t share_max = 64;
    static constexpr unsigned patience_max = 31;
    // A share that leaves others waiting is as many as took so long the last time; longer with many
    // workers, so that together they come once in a microsecond.
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
        // The worker's own.
        unsigned turns = 0;            // since its last share
        unsigned patience = 0;         // pauses before it looks outside
        std::size_t most = share_max;  // of a share
        std::size_t count = 0;         // of its last share, if that left something
        time_point since;              // then: when it was taken
    };
    // Its own deque is empty: moves a share there, the oldest at the bottom.
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

    // How many items fit into `time`, when `count` of them took `took`.
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
