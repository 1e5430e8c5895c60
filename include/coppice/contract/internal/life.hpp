// life_word: says which contract a slot holds, whether it lives, and how many calls are inside.
#pragma once
// One word per slot carries the lives of its contracts, one after the other:
//
//   bits 0, 1, 2   released, dead, watched
//   bits 3 to 15   visitors: calls of handles that are inside
//   bits 16 to 63  generation: which contract this is; a handle names the one it was made for
//
//   vacant     dead, no visitors        owned by no thread; has the next contract's generation
//   live       no flag                  open(): the creator, after it constructed the callables.
//                                       A contract that is only to be released opens as released
//   released   released                 begin_release() by a handle, or release_running() by the
//                                       runner
//   dead       dead                     bury(): the thread that ran the release. No visitor enters
//                                       afterwards
//   vacant     generation + 1           vacate(): the last visitor to leave
//
// A handle acts on the shared words only as a visitor. It enters by one exchange that checks the
// generation and the flags and counts the visitor, so that nothing can happen between the check and
// the entry. While a visitor is inside, the slot keeps its contract or stays dead; no other
// contract gets it. The last visitor to leave a dead slot frees it.
//
// Threads: enter(), enter_watching(), leave(), begin_release(), and valid() by any thread; the
// others as each says.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>

#include <cstdint>

namespace coppice::internal {

// The state of the contracts of one slot: runs, release, and end.
class life_word {
public:
    enum class entered { yes, refused };
    enum class left { others_remain, alive, last_of_dead };

    // Called by the creator: vacant -> live, or released. Returns the generation for the handle.
    std::uint64_t open(bool as_released = false) noexcept {
        // Relaxed: the free list ordered vacate() before this.
        const std::uint64_t generation = word_.load(relaxed) / one_generation;
        const std::uint64_t next = generation * one_generation + (as_released ? released : 0);
        // Another thread may read this store where it would have read vacate()'s, so it releases
        // too.
        if (planted("contract.open_relaxed")) {
            word_.store(next, relaxed);  // relaxed: the mutant
        } else {
            // edge contract.gone (release): as in bury()
            word_.store(next, release);
        }
        return generation;
    }

    // Makes the caller a visitor of that contract. Refused if it is released or dead, or if the
    // slot holds another contract.
    [[nodiscard]] entered enter(std::uint64_t generation) noexcept {
        return enter_with(generation, 0, released | dead);
    }
    // Makes the caller a visitor, and releases the contract. Succeeds for one call only.
    [[nodiscard]] entered begin_release(std::uint64_t generation) noexcept {
        return enter_with(generation, released, released | dead);
    }
    // Makes the caller a visitor, even of a released contract; for watchers. If refused, the
    // effects of that contract's release are visible.
    [[nodiscard]] entered enter_watching(std::uint64_t generation) noexcept {
        const entered result = enter_with(generation, 0, dead);
        if (result == entered::refused && !planted("contract.watch_relaxed")) {
            // edge contract.gone (acquire): the release has run
            (void)word_.load(acquire);
        }
        return result;
    }

    // Ends a visit. After last_of_dead the caller owns the slot and must free it.
    [[nodiscard]] left leave() noexcept {
        // edge contract.leave (acq_rel): all visits are over before the slot is freed
        const std::uint64_t before = word_.fetch_sub(one_visitor, acq_rel);
        if (before % one_generation / one_visitor != 1) return left::others_remain;
        return (before & dead) != 0 ? left::last_of_dead : left::alive;
    }

    // Called by the runner, before it claims the contract and while it has it claimed.
    bool is_released() const noexcept {
        // edge contract.release (acquire): what came before release() of the handle
        return (word_.load(acquire) & released) != 0;
    }
    void release_running() noexcept {
        word_.fetch_or(released, relaxed);  // relaxed: the runner's finish() orders it
    }
    // Called by the runner when the release has run and the callables are destroyed. From now on no
    // visitor enters. The caller counts as a visitor until it leaves. Returns true if there are
    // watchers.
    [[nodiscard]] bool bury() noexcept {
        // edge contract.gone (release): the release has run; for valid() and watchers
        const std::uint64_t before = word_.fetch_add(dead + one_visitor, acq_rel);
        return (before & watched) != 0;
    }
    // Called by a visitor. Returns false if the contract is dead already, so that no watcher will
    // be told.
    [[nodiscard]] bool announce_watcher() noexcept {
        // edge contract.gone (acquire): the release has run, if it is dead
        return (word_.fetch_or(watched, acq_rel) & dead) == 0;
    }
    // Called by the owner of a dead slot without visitors.
    void vacate() noexcept {
        const std::uint64_t generation = word_.load(relaxed) / one_generation;  // relaxed: owned
        // edge contract.gone (release): as in bury(), for threads that look later
        word_.store((generation + 1) * one_generation + dead, release);
    }

    // Returns true if that contract's release has not run yet.
    bool valid(std::uint64_t generation) const noexcept {
        // edge contract.gone (acquire): if not, what the release did is visible
        const std::uint64_t seen = word_.load(acquire);
        return seen / one_generation == generation && (seen & dead) == 0;
    }
    // Returns true if there is no contract to release. Call it only with exclusive access to the
    // group.
    bool vacant() const noexcept { return (word_.load(relaxed) & dead) != 0; }

private:
    static constexpr std::uint64_t released = 1;
    static constexpr std::uint64_t dead = 2;
    static constexpr std::uint64_t watched = 4;
    static constexpr std::uint64_t one_visitor = 8;
    static constexpr std::uint64_t one_generation = 1 << 16;

    [[nodiscard]] entered enter_with(std::uint64_t generation, std::uint64_t mark,
                                     std::uint64_t refusing) noexcept {
        std::uint64_t seen = word_.load(relaxed);  // relaxed: the exchange decides
        for (;;) {
            const bool other = seen / one_generation != generation;
            if ((other && !planted("contract.ignore_generation")) || (seen & refusing) != 0)
                return entered::refused;
            COPPICE_CHECK(seen % one_generation < one_generation - one_visitor,
                          "more than 8,191 calls on one contract at once");
            // edge contract.release (release): what came before release(); pairs with the runner
            if (word_.compare_exchange_weak(seen, (seen + one_visitor) | mark, release, relaxed))
                return entered::yes;
        }
    }

    // Bits as listed above. Written by creators, visitors, and runners.
    atomic<std::uint64_t> word_{dead};
};

}  // namespace coppice::internal
