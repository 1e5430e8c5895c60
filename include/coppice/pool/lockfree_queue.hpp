// lockfree_queue: one queue for all workers without a lock; one of the thesis's four schedulers.
#pragma once
// A ring of cells. The index i of head and tail lies at i modulo the capacity, in lap i / capacity.
//
//   cell    {lap, item}: waits for the item of that lap, or holds it
//           (l, none) -> (l, item)        the push of index l * capacity + place
//           (l, item) -> (l + 1, none)    the pop of it
//   tail_   the next index to push, or one that has been pushed: anybody moves it on
//   head_   the same for pop
//
// A cell's lap says for which index an exchange would be, so a stale head or tail only fails. Who
// finds one behind moves it on, so that no thread waits for another: lock-free. Laps are counted
// modulo 2^16: an exchange can only be mistaken if its thread rests while the ring is used exactly
// 65,536 times around, 2^28 items. What does not fit into the ring waits in an overflow under a
// lock.
//
// Source: after Tsigas and Zhang 2001, with laps in the cells.

#include <coppice/base/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/pool/mutex_queue.hpp>
#include <coppice/pool/work_item.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice {

namespace internal {

// Threads: any. Blocks: never.
template <class T, std::size_t Capacity>
class lockfree_ring : immovable {
    static_assert((Capacity & (Capacity - 1)) == 0, "the capacity must be a power of two");

public:
    // False: it is full, and `item` is still the caller's.
    [[nodiscard]] bool push(T* item) noexcept {
        for (;;) {
            const std::uint64_t index = tail_.load(relaxed);  // relaxed: the cell tells if stale
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
                move_on(tail_, index);  // pushed, but not yet counted
            } else if (lap_of(seen) == lap(index - Capacity) && tail_.load(relaxed) == index) {
                return false;
            }
        }
    }
    // The oldest item, or nullptr.
    T* pop() noexcept {
        for (;;) {
            const std::uint64_t index = head_.load(relaxed);  // relaxed: the cell tells if stale
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
    // May be stale when it returns; a caller that must not miss an item fences first (parking.hpp).
    bool looks_empty() const noexcept {
        const std::uint64_t index = head_.load(relaxed);
        return cells_[index % Capacity].load(relaxed) == empty(index);
    }

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
        // Relaxed: where to look; what is there says the cell.
        end.compare_exchange_strong(index, index + 1, relaxed, relaxed);
    }

    alignas(64) atomic<std::uint64_t> head_{0};  // moved by any
    alignas(64) atomic<std::uint64_t> tail_{0};  // moved by any
    alignas(64) atomic<std::uint64_t> cells_[Capacity];
};

}  // namespace internal

// First in, first out, but for what overflowed. Threads: any. Blocks: never, unless it overflows.
class lockfree_queue : immovable {
public:
    void push(internal::work_item* item) noexcept {
        if (!ring_.push(item)) overflow_.push(item);
    }
    internal::work_item* pop() noexcept {
        if (internal::work_item* const item = ring_.pop()) return item;
        return overflow_.pop();
    }
    bool looks_empty() const noexcept { return ring_.looks_empty() && overflow_.looks_empty(); }

private:
    internal::lockfree_ring<internal::work_item, 4096> ring_;
    mutex_queue overflow_;
};

}  // namespace coppice
