// The Chase-Lev deque: its owner pushes and pops at the bottom, thieves steal at the top.
#pragma once
// Bounded: a push into a full deque is refused and the caller puts the item elsewhere (thread_pool:
// the injector). Indices only grow; slot i lives at i modulo the capacity.
//
//   top_     next index to steal; moved by whoever takes the top item, by compare-exchange
//   bottom_  next index to push; written by the owner alone
//   top_ <= i < bottom_ : slot i holds an item
//
// The last item may be wanted by the owner and a thief at once. Each says what it wants before it
// looks at the other's word, all with seq_cst: the owner lowers bottom_, then loads top_; the thief
// has loaded top_, then loads bottom_. Either the owner's store is first: the thief sees the item
// gone and leaves it. Or the thief's load is first: the owner then sees the top_ that the thief
// saw, knows that this item is the last, and both settle it by an exchange on top_ that one of them
// wins; or it sees a greater top_, and the item is taken. Model: tests/model/deque_model.cpp.
//
// Source: Chase and Lev 2005, with the orders of Le, Pop, Cohen and Zappa Nardelli 2013, where
// their fences are seq_cst accesses (the race detectors know those, and on x86 they cost the same).

#include <coppice/base/atomic.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::internal {

enum class steal_outcome { taken, empty, lost };  // lost: another took the item; try again

template <class T>
struct [[nodiscard]] stolen {
    steal_outcome outcome;
    T* item;  // set if taken
};

// Threads: push() and pop() by the owner; steal() and looks_empty() by any. Blocks: never.
// Cost: push: one release store; pop: one seq_cst store, and a compare-exchange for the last item;
// steal: one compare-exchange. No allocation.
template <class T, std::size_t Capacity>
class [[gnu::visibility("default")]] bounded_deque : immovable {
    static_assert((Capacity & (Capacity - 1)) == 0, "the capacity must be a power of two");

public:
    // False: the deque is full and `item` is still the caller's.
    [[nodiscard]] bool push(T* item) noexcept {
        const std::int64_t bottom = bottom_.load(relaxed);  // relaxed: the owner's own word
        // edge deque.reuse (acquire): the thief that freed the slot has read it
        const std::int64_t top = top_.load(acquire);
        if (bottom - top >= static_cast<std::int64_t>(Capacity)) return false;
        slot(bottom).store(item, relaxed);  // relaxed: published by the store below
        // edge deque.publish (release): slot and item are written
        bottom_.store(bottom + 1, release);
        return true;
    }

    // The item pushed last, or nullptr.
    T* pop() noexcept {
        const std::int64_t bottom = bottom_.load(relaxed) - 1;
        // Relaxed: top_ only grows, so that what was empty is empty.
        if (top_.load(relaxed) > bottom) return nullptr;
        bottom_.store(bottom, seq_cst);  // edge deque.last (seq_cst): the owner wants the item
        std::int64_t top = top_.load(seq_cst);  // edge deque.last (seq_cst): and looks for thieves
        if (top > bottom) {
            bottom_.store(bottom + 1, relaxed);  // relaxed: it was empty, and the same value stands
            return nullptr;
        }
        T* item = slot(bottom).load(relaxed);  // relaxed: the owner wrote it
        if (top == bottom) {
            // edge deque.last (seq_cst): owner and thief settle the last item here
            const bool won = top_.compare_exchange_strong(top, top + 1, seq_cst, relaxed);
            if (!won && !planted("deque.skip_last_item_race")) {
                item = nullptr;  // a thief was quicker
            }
            bottom_.store(bottom + 1, relaxed);  // relaxed: says empty, publishes nothing
        }
        return item;
    }

    // The item pushed first, unless there is none or another was quicker.
    stolen<T> steal() noexcept {
        // edge deque.last (seq_cst): the thief picks an item
        std::int64_t top = top_.load(seq_cst);
        // edge deque.last (seq_cst), edge deque.publish (acquire): does the owner want it too?
        const std::int64_t bottom = bottom_.load(seq_cst);
        if (top >= bottom) return {steal_outcome::empty, nullptr};
        T* const item = slot(top).load(relaxed);  // relaxed: ordered by deque.publish
        // edge deque.reuse (release): the slot has been read and may be written again
        if (!top_.compare_exchange_strong(top, top + 1, seq_cst, relaxed)) {
            return {steal_outcome::lost, nullptr};
        }
        return {steal_outcome::taken, item};
    }

    // May be stale when it returns. Relaxed: who must not miss an item fences first (parking.hpp).
    bool looks_empty() const noexcept { return bottom_.load(relaxed) <= top_.load(relaxed); }

private:
    atomic<T*>& slot(std::int64_t index) noexcept {
        return slots_[static_cast<std::size_t>(index) & (Capacity - 1)];
    }

    alignas(64) atomic<std::int64_t> top_{0};     // moved by the owner and thieves
    alignas(64) atomic<std::int64_t> bottom_{0};  // written by the owner; read by thieves
    alignas(64) atomic<T*> slots_[Capacity]{};    // written by the owner; read by thieves
};

}  // namespace coppice::internal
