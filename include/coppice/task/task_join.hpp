// task_join: counts the children of a waiting task that ended elsewhere; used by wait_for_tasks.
#pragma once
//   joined_   0: nothing has ended elsewhere
//             -k: k children have ended elsewhere while the main line runs
//             n > 0: the main line has ended; n children have not
//
// The main line adds how many children went elsewhere, each of those subtracts one. Either-or: all
// these are exchanges of one word, so one of them is the last; it alone finds the sum complete (the
// main line: minus what it adds; a child: one) and goes on with the parent. It has acquired what
// all others released. Until the main line has added, the word is not positive, so no child can be
// last. A main line from which nothing went elsewhere touches no atomic word. The idea is
// libfork's.

#include <coppice/base/atomic.hpp>
#include <coppice/base/fork_deque.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::execution {

// The join of N children, without their types. Threads: offer() by the parent's, before a child
// runs; take_back() and main_line_ended() by the main line; ended_elsewhere() by any.
template <std::size_t N>
class task_join : immovable {
public:
    task_join() noexcept : deque_(fork_deque::current()) {}

    // Child `index`, which is not the first, may be taken by thieves.
    void offer(std::size_t index, forked_call call, void* frame) noexcept {
        slots_[index - 1] = deque_ == nullptr ? nullptr : deque_->push(call, frame);
    }
    // True: the main line runs child `index` now. False: it runs elsewhere.
    bool take_back(std::size_t index, const void* frame) noexcept {
        fork_slot* const slot = slots_[index - 1];
        if (slot == nullptr) return true;  // it was never offered
        if (fork_deque::current() == deque_ && deque_->pop_if_newest(slot, frame)) [[likely]] {
            return true;
        }
        ++away_;
        return false;
    }
    // True: all children have ended, the caller goes on with the parent. False: touch nothing.
    bool main_line_ended() noexcept {
        const std::int32_t away = away_;
        if (away == 0) [[likely]]
            return true;
        // A child may be last as soon as this is added, and this object gone.
        // edge task_join.ended (acq_rel): what the children did, to whoever is last
        return joined_.fetch_add(away, acq_rel) == -away;
    }
    // The same, by who ran a child elsewhere.
    bool ended_elsewhere() noexcept {
        // edge task_join.ended (acq_rel): what this child did, and the others, to whoever is last
        return joined_.fetch_sub(1, acq_rel) == 1;
    }

private:
    fork_deque* deque_;
    fork_slot* slots_[N - 1];  // null: not in the deque
    std::int32_t away_ = 0;    // the main line's: children that were not taken back
    atomic<std::int32_t> joined_{0};
};
// One child is always on the main line.
template <>
class task_join<1> : immovable {
public:
    static bool main_line_ended() noexcept { return true; }
    static bool ended_elsewhere() noexcept { return true; }
};

}  // namespace coppice::execution
