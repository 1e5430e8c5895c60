// Where a pool's work waits: one queue for all workers, or a deque for each; chosen by basic_pool.
#pragma once
// Both are what basic_pool asks of its queues:
//   Queues(workers)                 for that many workers
//   push(worker, item)              by that worker
//   push_outside(item)              by any thread
//   next(worker)                    by that worker: what it should do next, or nullptr
//   steal(worker, victim)           by that worker, from another: an item, none, or lost a race
//   looks_empty()                   by any; who must not miss an item fences first (parking.hpp)

#include <coppice/base/lifetime.hpp>
#include <coppice/pool/deque.hpp>
#include <coppice/pool/mutex_queue.hpp>
#include <coppice/pool/work_item.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace coppice {

// One queue: every worker takes the oldest item of all.
template <class Queue>
class shared_queue : immovable {
public:
    explicit shared_queue(std::size_t) {}

    void push(std::size_t, work_item* item) noexcept { queue_.push(item); }
    void push_outside(work_item* item) noexcept { queue_.push(item); }
    work_item* next(std::size_t) noexcept { return queue_.pop(); }
    static stolen<work_item> steal(std::size_t, std::size_t) noexcept {
        return {steal_outcome::empty, nullptr};
    }
    bool looks_empty() const noexcept { return queue_.looks_empty(); }

private:
    Queue queue_;
};

// A deque for each worker: what it submits goes to the bottom and comes back last in, first out;
// others steal the oldest. What comes from outside, or does not fit, goes to a shared queue.
template <class Deque>
class stealing_queues : immovable {
    // A worker looks into the shared queue first once in so many items, so that work from outside
    // is not starved by a worker that feeds itself.
    static constexpr std::uint64_t outside_interval = 61;

public:
    explicit stealing_queues(std::size_t workers) {
        for (std::size_t i = 0; i != workers; ++i) mine_.push_back(std::make_unique<own>());
    }

    void push(std::size_t worker, work_item* item) noexcept {
        if (!mine_[worker]->deque.push(item)) outside_.push(item);
    }
    void push_outside(work_item* item) noexcept { outside_.push(item); }
    work_item* next(std::size_t worker) noexcept {
        own& mine = *mine_[worker];
        if (++mine.turns % outside_interval == 0) {
            if (work_item* const item = outside_.pop()) return item;
        }
        if (work_item* const item = mine.deque.pop()) return item;
        return outside_.pop();
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
        std::uint64_t turns = 0;  // the worker's own
    };
    std::vector<std::unique_ptr<own>> mine_;
    mutex_queue outside_;
};

}  // namespace coppice
