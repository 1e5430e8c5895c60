// lockfree_ring: a lock-free ring of items for any number of threads; for lockfree_queue.
#pragma once
// A ring of cells. Index i of head and tail is in the cell at i modulo the capacity, in lap i /
// capacity.
//
//   cell    {lap, item}: waits for the item of that lap, or holds it
//           (l, none) -> (l, item)        push of index l * capacity + place
//           (l, item) -> (l + 1, none)    pop of that index
//   tail_   the next index to push, or one already pushed; any thread advances it
//   head_   the next index to pop, or one already popped; any thread advances it
//
// The lap in a cell says for which index an exchange would be, so a stale head or tail only makes
// an exchange fail. A thread that finds head or tail behind advances it. So no thread waits for
// another, and the ring is lock-free. Laps are counted modulo 2^16. An exchange can go wrong only
// if its thread is suspended while the ring is used exactly 65,536 times around, which is 2^28
// items.
//
// Source: after Tsigas and Zhang 2001, with laps in the cells.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::internal {

// Threads: any. Blocks: never.
template <class T, std::size_t Capacity>
class lockfree_ring : immovable {
    static_assert((Capacity & (Capacity - 1)) == 0, "the capacity must be a power of two");

public:
    // Returns false if the ring is full; `item` is then still the caller's.
    [[nodiscard]] bool push(T* item) noexcept {
        for (;;) {
            const std::uint64_t index =
                tail_.load(relaxed);  // relaxed: the cell shows if it is stale
            atomic<std::uint64_t>& cell = cells_[index % Capacity];
            std::uint64_t seen = cell.load(relaxed);  // relaxed: only compared
            if (seen == empty(index)) {
                // edge queue.publish (release): the item is written
                if (!cell.compare_exchange_strong(seen, full(index, item), release, relaxed)) {
                    continue;
                }
                move_on(tail_, index);
                return true;
            }
            if (lap_of(seen) == lap(index)) {
                move_on(tail_, index);  // pushed, but the tail was not advanced yet
            } else if (lap_of(seen) == lap(index - Capacity) && tail_.load(relaxed) == index) {
                return false;
            }
        }
    }
    // Removes and returns the oldest item, or nullptr.
    T* pop() noexcept {
        for (;;) {
            const std::uint64_t index =
                head_.load(relaxed);  // relaxed: the cell shows if it is stale
            atomic<std::uint64_t>& cell = cells_[index % Capacity];
            std::uint64_t seen = cell.load(relaxed);  // relaxed: acquired by the exchange
            if (lap_of(seen) != lap(index)) {
                if (lap_of(seen) == lap(index + Capacity)) move_on(head_, index);
                continue;
            }
            if (seen == empty(index)) {
                if (head_.load(relaxed) == index) return nullptr;
                continue;
            }
            // edge queue.publish (acquire): the item is written
            if (cell.compare_exchange_strong(seen, empty(index + Capacity), acquire, relaxed)) {
                move_on(head_, index);
                return item_of(seen);
            }
        }
    }
    // Returns true if there seems to be no item. May be stale when it returns. A caller that must
    // not miss an item fences first (parking.hpp).
    bool looks_empty() const noexcept {
        const std::uint64_t index = head_.load(relaxed);
        return cells_[index % Capacity].load(relaxed) == empty(index);
    }

    // Empties all cells.
    lockfree_ring() noexcept {
        for (atomic<std::uint64_t>& each : cells_) each.store(empty(0), relaxed);
    }

private:
    static constexpr unsigned item_bits = 48;
    static std::uint64_t lap(std::uint64_t index) noexcept { return index / Capacity % 65'536; }
    static std::uint64_t lap_of(std::uint64_t cell) noexcept { return cell >> item_bits; }
    static std::uint64_t empty(std::uint64_t index) noexcept { return lap(index) << item_bits; }
    static std::uint64_t full(std::uint64_t index, T* item) noexcept {
        return empty(index) | reinterpret_cast<std::uintptr_t>(item);
    }
    static T* item_of(std::uint64_t cell) noexcept {
        return reinterpret_cast<T*>(cell & ((std::uint64_t{1} << item_bits) - 1));
    }
    static void move_on(atomic<std::uint64_t>& end, std::uint64_t index) noexcept {
        // Relaxed: it only says where to look; the cell says what is there.
        end.compare_exchange_strong(index, index + 1, relaxed, relaxed);
    }

    alignas(64) atomic<std::uint64_t> head_{0};  // moved by any thread
    alignas(64) atomic<std::uint64_t> tail_{0};  // moved by any thread
    alignas(64) atomic<std::uint64_t> cells_[Capacity];
};

}  // namespace coppice::internal
