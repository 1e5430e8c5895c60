// The Chase-Lev deque: its owner pushes and pops at the bottom, thieves steal at the top.
#pragma once
// Bounded: push() into a full deque fails, and the caller puts the item elsewhere (thread_pool:
// into the injector). Indices only grow; slot i is at i modulo the capacity.
//
//   top_     next index to steal; moved by the taker of the top item, by compare-exchange
//   bottom_  next index to push; written by the owner only
//   top_ <= i < bottom_ : slot i holds an item
//
// The owner and a thief may want the last item at the same time. Each announces what it wants
// before it looks at the other's word, and all these accesses are seq_cst. The owner lowers
// bottom_, then loads top_. The thief has loaded top_, then loads bottom_. Either the owner's store
// is first: then the thief sees that the item is gone, and leaves it. Or the thief's load is first:
// then the owner sees the top_ that the thief saw, and knows that this item is the last. Both then
// compete by a compare-exchange on top_, which one of them wins. Or the owner sees a greater top_,
// and the item is taken. Model: tests/model/deque_model.cpp.
//
// Source: Chase and Lev 2005, with the memory orders of Le, Pop, Cohen and Zappa Nardelli 2013.
// Their fences are seq_cst accesses here, because race detectors understand those, and on x86 they
// cost the same.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::internal {

enum class steal_outcome { taken, empty, lost };  // lost: another thread took the item; try again

template <class T>
struct [[nodiscard]] stolen {
    steal_outcome outcome;
    T* item;  // set if taken
};

// Threads: the owner calls push() and pop(); any thread calls steal() and looks_empty(). Blocks:
// never. Cost: push: one release store; pop: one seq_cst store, and a compare-exchange for the last
// item; steal: one compare-exchange. No allocation.
template <class T, std::size_t Capacity>
class [[gnu::visibility("default")]] bounded_deque : immovable {
    static_assert((Capacity & (Capacity - 1)) == 0, "the capacity must be a power of two");

public:
    static constexpr bool never_blocks = true;  // nor allocates

    // Returns false if the deque is full; `item` is then still the caller's.
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

    // Returns the item that was pushed last, or nullptr.
    T* pop() noexcept {
        const std::int64_t bottom = bottom_.load(relaxed) - 1;
        // Relaxed: top_ only grows, so a deque that was empty stays empty until the owner pushes.
        if (top_.load(relaxed) > bottom) return nullptr;
        // edge deque.last (seq_cst): the owner announces that it wants the item
        bottom_.store(bottom, seq_cst);
        std::int64_t top = top_.load(seq_cst);  // edge deque.last (seq_cst): and looks for thieves
        if (top > bottom) {
            bottom_.store(bottom + 1, relaxed);  // relaxed: it was empty, so the same value stands
            return nullptr;
        }
        T* item = slot(bottom).load(relaxed);  // relaxed: written by the owner
        if (top == bottom) {
            // edge deque.last (seq_cst): owner and thief compete for the last item here
            const bool won = top_.compare_exchange_strong(top, top + 1, seq_cst, relaxed);
            if (!won && !planted("deque.skip_last_item_race")) {
                item = nullptr;  // a thief was first
            }
            bottom_.store(bottom + 1, relaxed);  // relaxed: says empty, publishes nothing
        }
        return item;
    }

    // Returns the item that was pushed first. Fails if there is none, or if another thread took it
    // first.
    stolen<T> steal() noexcept {
        // edge deque.last (seq_cst): the thief picks an item
        std::int64_t top = top_.load(seq_cst);
        // If the owner has announced that it wants the item, the thief sees it here and leaves it.
        // edge deque.last (seq_cst), edge deque.publish (acquire): the slot is written
        const std::int64_t bottom = bottom_.load(seq_cst);
        if (top >= bottom) return {steal_outcome::empty, nullptr};
        T* const item = slot(top).load(relaxed);  // relaxed: ordered by deque.publish
        // edge deque.reuse (release): the slot has been read and may be written again
        if (!top_.compare_exchange_strong(top, top + 1, seq_cst, relaxed)) {
            return {steal_outcome::lost, nullptr};
        }
        return {steal_outcome::taken, item};
    }

    // May be stale when it returns. Relaxed: a caller that must not miss an item fences first
    // (parking.hpp).
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
