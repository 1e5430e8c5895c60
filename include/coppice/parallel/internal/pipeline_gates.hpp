// The gates of a pipeline: where items wait for a serial stage, and threads share the source.
#pragma once
// An item that finds a gate closed waits in it, and its thread turns to other work. The thread that
// leaves the gate continues with the item that may enter next. No thread waits for another.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/parallel/internal/namespaces.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace coppice::parallel::internal {

// An item that waits. It waits in one gate at a time.
struct alignas(8) gate_waiter : immovable {
    plain<gate_waiter*> next;  // written before it is pushed; read by the holder
};

// Reverses a pile, and returns its oldest waiter.
inline gate_waiter* reversed(gate_waiter* newest) noexcept {
    gate_waiter* oldest = nullptr;
    while (newest != nullptr) {
        gate_waiter* const older = newest->next.read();
        newest->next.write(oldest);
        oldest = newest;
        newest = older;
    }
    return oldest;
}

// The gate of a serial stage: one holder, and a pile of waiters.
//
//   0             open, no waiter
//   held          there is a holder, and no waiter
//   p | held      there is a holder; *p is the newest waiter, and links to the older ones
class pile_gate : immovable {
public:
    // Returns true if the caller is the holder now. After false, `waiter` belongs to the holder,
    // and the caller must not touch it.
    [[nodiscard]] bool enter(gate_waiter& waiter) noexcept {
        std::uintptr_t seen = word_.load(relaxed);  // relaxed: only a guess
        for (;;) {
            if (seen == 0) {
                // edge pile.hold (acquire): what the last holder did
                if (word_.compare_exchange_weak(seen, held, acquire, relaxed)) return true;
                continue;
            }
            waiter.next.write(reinterpret_cast<gate_waiter*>(seen & ~held));
            // edge pile.wait (release): what was done to the item
            if (word_.compare_exchange_weak(seen, reinterpret_cast<std::uintptr_t>(&waiter) | held,
                                            release, relaxed)) {
                return false;
            }
        }
    }
    // Called by the holder. Returns the pile of waiters, if there is one. Otherwise opens the gate
    // and returns nullptr; the caller is then no longer the holder.
    [[nodiscard]] gate_waiter* take_or_leave() noexcept {
        std::uintptr_t seen = held;
        // edge pile.hold (release): what the holder did
        if (word_.compare_exchange_strong(seen, 0, release, relaxed)) return nullptr;
        // edge pile.wait (acquire): what was done to the items of the pile
        return reinterpret_cast<gate_waiter*>(word_.exchange(held, acquire) & ~held);
    }

private:
    static constexpr std::uintptr_t held = 1;
    atomic<std::uintptr_t> word_{0};
};

// The gate of the source: one holder, and a pile of free slots, which only a holder takes.
//
//   p             no holder; p may be 0: no slot is free
//   p | more      no holder, and the last one has left free slots behind
//   p | held      there is a holder
//   p | held | ended   the source has ended, and no thread gets it
//
// A thread that leaves the gate, or puts a slot on the pile, tries to take the source before its
// visit ends. So the source never stays without a holder while a slot is free.
class source_gate : immovable {
public:
    enum class outcome { taken, busy, none };

    // Adds a free slot.
    void put(gate_waiter& slot) noexcept {
        std::uintptr_t seen = word_.load(relaxed);  // relaxed: only a guess
        std::uintptr_t wider = 0;
        do {
            slot.next.write(reinterpret_cast<gate_waiter*>(seen & ~bits));
            wider = reinterpret_cast<std::uintptr_t>(&slot) | (seen & bits);
            // edge source.put (release): what was done to the slot
        } while (!word_.compare_exchange_weak(seen, wider, release, relaxed));
    }
    // Makes the caller the holder if there is no holder, and a slot is free or the caller has one.
    // Stores the pile of free slots in `pile`. Returns busy if there is a holder, and none if no
    // slot is free or the source has ended.
    [[nodiscard]] outcome try_take(bool has_slot, gate_waiter*& pile) noexcept {
        std::uintptr_t seen = word_.load(relaxed);  // relaxed: only a guess
        do {
            if ((seen & ended) != 0) return outcome::none;
            if ((seen & held) != 0) return outcome::busy;
            if (seen == 0 && !has_slot) return outcome::none;
            // edge source.leave (acquire), edge source.put (acquire): the source; the slots
        } while (!word_.compare_exchange_weak(seen, held, acquire, relaxed));
        pile = reinterpret_cast<gate_waiter*>(seen & ~bits);
        return outcome::taken;
    }
    // Called by the holder, which leaves free slots behind if `has_more`.
    void leave(bool has_more) noexcept {
        std::uintptr_t seen = held;
        std::uintptr_t left = 0;
        do {
            left = (seen & ~bits) | (has_more ? more : 0);
            // edge source.leave (release): what the holder did
        } while (!word_.compare_exchange_weak(seen, left, release, relaxed));
    }
    // Called by the holder when the source has ended. Relaxed: publishes nothing.
    void end() noexcept { word_.fetch_or(ended, relaxed); }

private:
    static constexpr std::uintptr_t held = 1;
    static constexpr std::uintptr_t more = 2;
    static constexpr std::uintptr_t ended = 4;
    static constexpr std::uintptr_t bits = held | more | ended;
    atomic<std::uintptr_t> word_{more};
};

// A gate that items enter in the order of their numbers, without gaps. It has at least as many
// cells as there are items in flight. Item i uses the cell i modulo the number of cells.
//
//   0       the item of this cell has not arrived, and may not enter yet
//   open    the item may enter when it arrives
//   p       the item has arrived, and *p waits
class order_gate : immovable {
public:
    order_gate() noexcept = default;
    // Called once, before anything else. Errors: std::bad_alloc.
    void make(std::size_t cells_min) {
        const std::size_t size = std::bit_ceil(cells_min);
        cells_.reset(new cell[size]);
        mask_ = size - 1;
        cells_[0].word.store(open, relaxed);
    }
    // Returns true if the item may enter. After false, `waiter` belongs to the item before it, and
    // the caller must not touch it.
    [[nodiscard]] bool enter(std::uint64_t number, gate_waiter& waiter) noexcept {
        atomic<std::uintptr_t>& word = cells_[number & mask_].word;
        // edge order.open (acquire): what the items before did
        std::uintptr_t seen = word.load(acquire);
        if (seen != open) {
            // edge order.wait (release), edge order.open (acquire): the item; as above
            if (word.compare_exchange_strong(seen, reinterpret_cast<std::uintptr_t>(&waiter),
                                             acq_rel, acquire)) {
                return false;
            }
        }
        word.store(0, relaxed);  // relaxed: the next number of this cell comes after this one left
        return true;
    }
    // Called for the item inside as it leaves. Returns the next item if it waits: that item has
    // then entered.
    [[nodiscard]] gate_waiter* leave(std::uint64_t number) noexcept {
        atomic<std::uintptr_t>& word = cells_[(number + 1) & mask_].word;
        // edge order.open (release), edge order.wait (acquire): what the items up to this one did
        const std::uintptr_t seen = word.exchange(open, acq_rel);
        if (seen == 0) return nullptr;
        word.store(0, relaxed);  // relaxed: as above
        return reinterpret_cast<gate_waiter*>(seen);
    }

private:
    static constexpr std::uintptr_t open = 1;
    struct cell {
        atomic<std::uintptr_t> word{0};
    };
    std::unique_ptr<cell[]> cells_;
    std::size_t mask_ = 0;
};

// Counts the visits: the threads in a pipeline, and the stages that wait. The last visit to end
// ends the pipeline.
class visit_count : immovable {
public:
    // Called during a visit. Counts another one. Relaxed: the caller's visit keeps the count above
    // 0.
    void add() noexcept { count_.fetch_add(1, relaxed); }
    // Takes back an add() of the same visit. Relaxed: the end of the visit comes later.
    void drop() noexcept { count_.fetch_sub(1, relaxed); }
    // Returns true if this was the last visit. Otherwise the caller must not touch the pipeline.
    [[nodiscard]] bool end() noexcept {
        // edge pipeline.end (release), edge pipeline.end (acquire): what all visits did
        return count_.fetch_sub(1, acq_rel) == 1;
    }

private:
    atomic<std::uint32_t> count_{1};  // the first visit
};

// Keeps the visit of a thread that forked a call open until the call's thief has counted its own.
class handed_over : immovable {
public:
    // Called by the thief as its last access, after it has counted its visit.
    void done() noexcept {
        // edge pipeline.visit (release): the visit is counted, and the forker's frame was read
        done_.store(true, release);
    }
    // Called by the forker. Blocks: for some instructions of the thief.
    void wait() const noexcept {
        // edge pipeline.visit (acquire): the visit is counted, and this frame may end
        for (unsigned tries = 1; !done_.load(acquire); ++tries) {
            if (tries % 32 != 0) {
                spin_hint();
            } else {
                thread_yield();
            }
        }
    }

private:
    atomic<bool> done_{false};
};

}  // namespace coppice::parallel::internal
