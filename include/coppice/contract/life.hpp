// life_word: whether a slot's contract lives, which one it is, and who is touching it right now.
#pragma once
// One word per slot carries the life of its contracts, one after the other:
//
//   bits 0, 1, 2   released, dead, watched
//   bits 3 to 15   visitors: calls of handles that are inside
//   bits 16 to 63  generation: which contract this is; a handle names the one it was made for
//
//   vacant     dead, no visitors           nobody's; generation is the next contract's
//   live       no flag                     open(): the creator, after constructing the callables;
//                                          what shall only be released opens as released
//   released   released                    begin_release() by a handle, release_running() by the
//   run dead       dead                        bury(): the one that ran the release; from here on
//   no
//                                          visitor enters
//   vacant     generation + 1              vacate(): the last one out
//
// A handle acts on the shared words only as a visitor, and enters by one exchange that checks the
// generation, the flags, and counts it. So the check and the act are not apart: while a visitor is
// inside, the slot keeps its contract or stays dead; it is not given to another. The last one to
// leave a dead slot frees it.
//
// Threads: enter, leave, begin_release, names by any; the others as said there.

#include <coppice/base/atomic.hpp>
#include <coppice/base/check.hpp>

#include <cstdint>

namespace coppice::internal {

// Whose turn it is with one contract: its runs, its release, its end.
class life_word {
public:
    enum class entered { yes, refused };
    enum class left { others_remain, alive, last_of_dead };

    // The creator's: vacant -> live, or released. Returns the generation for the handle.
    std::uint64_t open(bool as_released = false) noexcept {
        // Relaxed: the free list ordered vacate() before this.
        const std::uint64_t generation = word_.load(relaxed) / one_generation;
        const std::uint64_t next = generation * one_generation + (as_released ? released : 0);
        // Who asks for the contract before may read this: it passes on what vacate() released.
        if (planted("contract.open_relaxed")) {
            word_.store(next, relaxed);  // relaxed: as once it was
        } else {
            // edge contract.gone (release): as in bury()
            word_.store(next, release);
        }
        return generation;
    }

    // The caller becomes a visitor of that contract, unless it is released, dead or another one.
    [[nodiscard]] entered enter(std::uint64_t generation) noexcept {
        return enter_with(generation, 0, released | dead);
    }
    // The same, and the contract is released, by this call alone.
    [[nodiscard]] entered begin_release(std::uint64_t generation) noexcept {
        return enter_with(generation, released, released | dead);
    }
    // The same, also if it is released: for a watcher. If refused, what its release did is visible.
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

    // The runner's, before and while it has the contract claimed.
    bool is_released() const noexcept {
        // edge contract.release (acquire): what came before release() of the handle
        return (word_.load(acquire) & released) != 0;
    }
    void release_running() noexcept {
        word_.fetch_or(released, relaxed);  // relaxed: the runner's finish() orders it
    }
    // The runner's, once the release has run and the callables are destroyed: no visitor enters
    // any more, and the caller is one until it leaves. True: there are watchers.
    [[nodiscard]] bool bury() noexcept {
        // edge contract.gone (release): the release has run; for valid() and watchers
        const std::uint64_t before = word_.fetch_add(dead + one_visitor, acq_rel);
        return (before & watched) != 0;
    }
    // A visitor's. False: it is dead already and nobody will be told.
    [[nodiscard]] bool announce_watcher() noexcept {
        // edge contract.gone (acquire): the release has run, if it is dead
        return (word_.fetch_or(watched, acq_rel) & dead) == 0;
    }
    // The owner's, of a dead slot without visitors.
    void vacate() noexcept {
        const std::uint64_t generation = word_.load(relaxed) / one_generation;  // relaxed: owned
        // edge contract.gone (release): as in bury(), for those who come later
        word_.store((generation + 1) * one_generation + dead, release);
    }

    // Whether that contract's release has yet to run.
    bool valid(std::uint64_t generation) const noexcept {
        // edge contract.gone (acquire): if not, what the release did is visible
        const std::uint64_t seen = word_.load(acquire);
        return seen / one_generation == generation && (seen & dead) == 0;
    }
    // Whether a contract is there to be released. For whoever has the group for himself.
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

    // See above. Written by creators, visitors and runners.
    atomic<std::uint64_t> word_{dead};
};

}  // namespace coppice::internal
