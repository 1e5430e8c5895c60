// spsc_bell: how one side of a ring wakes the other side, which sleeps rarely; asymmetric.
#pragma once
// Dekker's pattern. The ringer publishes an index, then asks if the other side waits. The waiter
// says that it waits, then looks at the index again. Two forms of the fence between the two steps:
//
//   light    the ringer's fence is free, and the waiter pays for both by a heavy fence
//   full     both execute a full fence
//
// Light is right if the other side waits rarely, full if it waits for nearly every item: a heavy
// fence is a system call. The waiter chooses, the ringer changes over at its next ring, and tells
// so in `is_full`. It fences fully whenever it changes, and looks at the bell again. The waiter
// reads `is_full` after its own full fence:
//
//   It sees full.   Since the change, the ringer has fenced fully at each ring, and the change
//                   itself covers what was published before. If the ringer's fence comes second, it
//                   sees the waiter; if the waiter's fence comes second, it sees the index. If the
//                   ringer changes back, that fence comes second as well, and it sees the waiter;
//                   or the waiter's does, and it sees light.
//   It sees light.  It executes the heavy fence.

#include <coppice/base/internal/asymmetric.hpp>
#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstdint>

namespace coppice::internal {

class spsc_bell : immovable {
public:
    // Written by the ringer only, so it lies beside what the ringer writes anyway.
    using fence_form = atomic<bool>;

    // The ringer, after it has published: returns true if the other side may wait.
    bool must_ring(fence_form& is_full) noexcept {
        const bool full = is_full.load(relaxed);
        if (full) {
            fence(seq_cst);  // edge spsc_bell.full (seq_cst): the published index
        } else if (!planted("spsc_bell.no_light_fence")) {
            light_fence();  // edge spsc_bell.light (light): the published index
        }
        // Relaxed: the fences order it.
        const std::uint32_t word = word_.load(relaxed);
        if (word == (full ? wants_full : 0)) [[likely]]
            return false;
        return change_over(is_full, full, word);
    }

    // The waiting side calls the functions below, inside the lock, and then looks at the index
    // again.
    void announce(const fence_form& is_full, bool waits_often) noexcept {
        word_.store(waits | (waits_often ? wants_full : 0), relaxed);
        fence(seq_cst);  // edge spsc_bell.full (seq_cst): the announcement
        const bool light = !is_full.load(relaxed);  // relaxed: see above
        // edge spsc_bell.light (heavy): the announcement
        if (light && !planted("spsc_bell.no_heavy_fence")) heavy_fence();
    }
    // Takes the announcement back. Also called by a ringer that found no waiter.
    void retract() noexcept { word_.store(word_.load(relaxed) & ~waits, relaxed); }
    // Chooses light fences again, without a wait.
    void calm_down() noexcept { word_.store(word_.load(relaxed) & ~wants_full, relaxed); }
    // Returns true if full fences were chosen. Outside the lock, too.
    bool is_alert() const noexcept { return (word_.load(relaxed) & wants_full) != 0; }

private:
    static constexpr std::uint32_t waits = 1;       // the other side is waiting, or about to
    static constexpr std::uint32_t wants_full = 2;  // the ringer shall use full fences

    [[gnu::noinline]] bool change_over(fence_form& is_full, bool full,
                                       std::uint32_t word) noexcept {
        const bool wanted = (word & wants_full) != 0;
        if (wanted != full) {
            is_full.store(wanted, relaxed);  // relaxed: the fence orders it
            // edge spsc_bell.full (seq_cst): the published index, at a change
            if (!planted("spsc_bell.change_without_fence")) fence(seq_cst);
            word = word_.load(relaxed);
        }
        return (word & waits) != 0;
    }

    atomic<std::uint32_t> word_{0};  // written inside the lock; read by the ringer
};

}  // namespace coppice::internal
