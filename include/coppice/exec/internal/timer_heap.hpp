// A pairing heap of timers, linked through the timers themselves; used by run_loop.
#pragma once
// Owned by one thread. The root is the earliest timer. No timer is earlier than its parent. The
// children of a parent are a list linked by next_; previous_ of the first child is the parent.

#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/deadline.hpp>

#include <utility>

namespace coppice::execution::internal {

// A timer in the heap; derive from it.
struct heap_timer : immovable {
    instant when;

private:
    friend class timer_heap;
    heap_timer* child_ = nullptr;
    heap_timer* next_ = nullptr;
    heap_timer* previous_ = nullptr;  // the sibling before this one, or the parent
};

// Cost: insert O(1); remove and pop O(log n) amortized. Misuse: a timer in two heaps.
class timer_heap : immovable {
public:
    bool empty() const noexcept { return root_ == nullptr; }
    heap_timer* earliest() const noexcept { return root_; }

    void insert(heap_timer& timer) noexcept {
        timer.child_ = timer.next_ = timer.previous_ = nullptr;
        root_ = root_ == nullptr ? &timer : merge(root_, &timer);
    }
    void remove(heap_timer& timer) noexcept {
        heap_timer* const children = merge_pairs(std::exchange(timer.child_, nullptr));
        if (&timer == root_) {
            root_ = children;
            return;
        }
        heap_timer* const before = timer.previous_;
        (before->child_ == &timer ? before->child_ : before->next_) = timer.next_;
        if (timer.next_ != nullptr) timer.next_->previous_ = before;
        if (children != nullptr) root_ = merge(root_, children);
    }
    // Removes and returns the earliest timer if it is due at `time`; otherwise returns nullptr.
    heap_timer* pop_due(instant time) noexcept {
        if (root_ == nullptr || root_->when > time) return nullptr;
        heap_timer* const due = root_;
        remove(*due);
        return due;
    }

private:
    // Merges two roots, which have no siblings.
    static heap_timer* merge(heap_timer* a, heap_timer* b) noexcept {
        if (b->when < a->when) std::swap(a, b);
        b->next_ = a->child_;
        if (b->next_ != nullptr) b->next_->previous_ = b;
        b->previous_ = a;
        a->child_ = b;
        a->next_ = a->previous_ = nullptr;
        return a;
    }
    // Merges the trees of a list of siblings: in pairs from the left, then from the right.
    static heap_timer* merge_pairs(heap_timer* first) noexcept {
        heap_timer* pairs = nullptr;  // linked by next_, the last pair first
        while (first != nullptr) {
            heap_timer* const a = first;
            heap_timer* const b = a->next_;
            first = b == nullptr ? nullptr : b->next_;
            heap_timer* pair = a;
            if (b != nullptr) pair = merge(a, b);
            pair->next_ = pairs;
            pairs = pair;
        }
        heap_timer* merged = nullptr;
        while (pairs != nullptr) {
            heap_timer* const pair = pairs;
            pairs = pair->next_;
            pair->next_ = pair->previous_ = nullptr;
            merged = merged == nullptr ? pair : merge(merged, pair);
        }
        return merged;
    }

    heap_timer* root_ = nullptr;
};

}  // namespace coppice::execution::internal
