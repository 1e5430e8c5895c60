// directory: bits that tell which leaves may hold work; for signal trees and contract groups.
#pragma once
// The leaves belong to the user of the directory. Above them stand levels of nodes with Width
// children each, up to one root. Each child has two bits in its node, a mark and a claim, and
// therefore one of four states:
//
//   mark claim
//    0    0     clear      nothing is below
//    1    0     marked     something may be below
//    0    1     doubted    one thread, the doubter, is looking whether anything is below
//    1    1     disputed   as doubted, but the child was raised since: the doubter must look again
//
//   raise   clear -> marked, doubted -> disputed    a thread that filled a leaf, at every level
//   doubt   marked -> doubted                       a thread that found the child empty
//   insist  doubted -> disputed                     a thread that found it empty during a doubt
//   settle  doubted -> clear or marked              the doubter, after it has looked
//   relook  disputed -> doubted                     the doubter, which then looks again
//
// Marks are sticky: when a leaf is emptied and filled again, filling it costs one load here. A
// thread that finds a leaf empty lowers its marks. A user that wants empty() to be exact lowers
// them as soon as the leaf becomes empty.
//
// Each leaf has a marks_note in its own cache line, which says whether the marks above the leaf
// stand, so that a filler need not look at every level. A raiser writes "they stand" only if no
// thread has begun to lower the leaf since the raiser began: a doubter changes the note before each
// look.
//
// Why two bits. With one bit, a lowering thread would clear it, look whether the leaf was filled
// meanwhile, and restore the bit if so. Between these steps, searches would miss a leaf whose raise
// had completed. With two bits a doubted child still counts as marked for searches, and it becomes
// clear only if it was not raised since the doubter's last look.
// include/coppice/contract/PROTOCOL.md has the proof, and tests/model/signal_tree_model.cpp the
// model.
//
// Threads: all functions from any thread. Source: the hierarchy of bitmaps is ours. Sticky marks
// make it scale: threads that work in different leaves only read the nodes that they share.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace coppice::internal {

// The distance in bytes that puts two words into different cache lines.
inline constexpr std::size_t line_size = 64;

// Bit 0 says whether the marks above a leaf stand. The bits above count how often a doubter was
// about to look at the leaf. Written by raisers and by the doubter; read by fillers. Lies beside
// the leaf's word.
class marks_note {
public:
    bool stands() const noexcept {
        // edge directory.note (seq_cst): either this sees a renewal, or that doubter sees the leaf
        return (state_.load(seq_cst) & 1) != 0;
    }
    // Called by a raiser: before_raising() before it sets marks, raised() with that result
    // afterwards.
    std::uint32_t before_raising() const noexcept {
        // edge directory.note (seq_cst): the marks are set after this
        return state_.load(seq_cst);
    }
    void raised(std::uint32_t before) noexcept {
        // edge directory.note (seq_cst): no doubter has begun meanwhile, or this fails
        if (planted("directory.note_late")) before = state_.load(seq_cst);
        // edge directory.note (seq_cst): the marks stand, unless a doubter has begun meanwhile
        state_.compare_exchange_strong(before, before | 1, seq_cst, relaxed);
    }
    // Called by the doubter before each look. A thread that fills the leaf after the look then
    // finds that the marks do not stand, and raises the leaf.
    void renew() noexcept {
        std::uint32_t seen = state_.load(relaxed);  // relaxed: the exchange decides
        // edge directory.note (seq_cst): as in stands()
        while (!state_.compare_exchange_weak(seen, (seen | 1) + 1, seq_cst, relaxed)) {
        }
    }

private:
    atomic<std::uint32_t> state_{0};
};

template <unsigned Width = 32>
class directory : immovable {
    static_assert(Width >= 2 && Width <= 32 && std::has_single_bit(Width));

public:
    static constexpr std::size_t none = ~std::size_t{0};

    // Makes leaves 0 to leaves - 1, all clear. Errors: what allocation throws.
    explicit directory(std::size_t leaves) {
        std::size_t total = 0;
        do {
            leaves = (leaves + Width - 1) / Width;
            sizes_[levels_++] = leaves;
            total += leaves;
        } while (leaves > 1);
        nodes_ = std::make_unique<node[]>(total);
        std::size_t first = 0;
        for (unsigned level = 0; level != levels_; ++level) {
            level_[level] = &nodes_[first];
            first += sizes_[level];
        }
    }

    unsigned levels() const noexcept { return levels_; }

    // Returns true if no leaf is marked. Exact while no thread fills or empties a leaf. Cost: one
    // load.
    bool empty() const noexcept {
        // edge directory.look (seq_cst): a raise that has returned is seen
        return level_[levels_ - 1]->state.load(seq_cst) == 0;
    }

    // Call this after filling a leaf. Once it has returned, searches find the leaf until it is
    // empty. leaf_empty() must look at the leaf with seq_cst order. Blocks: never. Cost: one load
    // while the marks stand.
    template <class LeafEmpty>
    void raise(std::size_t leaf, marks_note& note, LeafEmpty leaf_empty) noexcept {
        if (!note.stands()) [[unlikely]]
            raise_slowly(leaf, note, leaf_empty);
    }

    // Call this after seeing a leaf empty: clears its mark, and each mark above that has nothing
    // else below. leaf_empty() must look at the leaf with seq_cst order. Blocks: never. Cost: three
    // locked operations, and two for each level above that is cleared; one load if the leaf is
    // clear.
    template <class LeafEmpty>
    [[gnu::noinline]] void lower(std::size_t leaf, marks_note& note,
                                 LeafEmpty leaf_empty) noexcept {
        std::size_t child = leaf;
        for (unsigned level = 0; level != levels_; ++level, child /= Width) {
            const auto child_empty = [this, level, child, &note, &leaf_empty] {
                if (level == 0) {
                    if (!planted("directory.keep_note")) note.renew();
                    return static_cast<bool>(leaf_empty());
                }
                // edge directory.look (seq_cst): a raise below that came before the doubt is seen
                return level_[level - 1][child].state.load(seq_cst) == 0;
            };
            if (!lower_one(at(level, child).state, child, child_empty)) return;
        }
    }

    // Returns the first marked leaf at or after `from`, or none. Does not miss a leaf whose raise
    // had returned before the search began and that stays filled. Cost: one load per node on the
    // way.
    std::size_t next(std::size_t from) const noexcept {
        std::size_t child = from;
        unsigned level = 0;
        for (;;) {
            if (child / Width >= sizes_[level]) return none;
            const std::uint64_t rest = marks_at(level, child) & (all << child % Width);
            if (rest != 0) {
                child = child / Width * Width + static_cast<unsigned>(std::countr_zero(rest));
                if (level == 0) return child;
                --level;
                child *= Width;
            } else {
                if (++level == levels_) return none;
                child = child / Width + 1;
            }
        }
    }

    // Returns the marks of the node that holds `child` on `level`; the node's first child is the
    // lowest bit. Returns 0 for a child outside.
    std::uint64_t marks(unsigned level, std::size_t child) const noexcept {
        return child / Width < sizes_[level] ? marks_at(level, child) : 0;
    }

private:
    static constexpr unsigned levels_max = 64 / std::countr_zero(Width) + 1;
    static constexpr std::uint64_t all = (std::uint64_t{1} << Width) - 1;

    struct alignas(line_size) node {
        // Marks in the low Width bits, claims in the high Width bits. Written by threads that fill
        // or empty a leaf below; read by searches.
        atomic<std::uint64_t> state{0};
    };

    static std::uint64_t mark(std::size_t child) noexcept {
        return std::uint64_t{1} << child % Width;
    }
    static std::uint64_t claim(std::size_t child) noexcept { return mark(child) << Width; }

    node& at(unsigned level, std::size_t child) const noexcept {
        return level_[level][child / Width];
    }
    std::uint64_t marks_at(unsigned level, std::size_t child) const noexcept {
        // edge directory.look (seq_cst): a raise that has returned is seen
        const std::uint64_t state = at(level, child).state.load(seq_cst);
        // A doubted child counts as marked, so that a leaf whose raise has completed is always in
        // sight.
        return (planted("directory.ignore_doubted") ? state : state | state >> Width) & all;
    }

    template <class LeafEmpty>
    [[gnu::noinline]] void raise_slowly(std::size_t leaf, marks_note& note,
                                        LeafEmpty leaf_empty) noexcept {
        const std::uint32_t before = note.before_raising();
        std::size_t child = leaf;
        for (unsigned level = 0; level != levels_; ++level, child /= Width) {
            if (planted("directory.raise_one_level") && level != 0) break;
            atomic<std::uint64_t>& state = at(level, child).state;
            // edge directory.filled (seq_cst): either this sees the doubt, or the doubter's look
            if ((state.load(seq_cst) & mark(child)) != 0) continue;  // the leaf
            // edge directory.filled (seq_cst): as above
            state.fetch_or(mark(child), seq_cst);
        }
        note.raised(before);
        // Another thread may have emptied the leaf, and lowered it before these marks were set.
        if (!planted("directory.raise_and_leave") && leaf_empty()) lower(leaf, note, leaf_empty);
    }

    // Lowers one child that was seen empty. Returns true if its node has no mark left, so that the
    // level above comes next. Returns false if something is below, or if another thread is lowering
    // this child.
    template <class ChildEmpty>
    static bool lower_one(atomic<std::uint64_t>& state, std::size_t child,
                          ChildEmpty child_empty) noexcept {
        switch (doubt(state, child)) {
            case doubted::by_another:
                return false;
            case doubted::not_marked:
                // A slow raiser may have set only the mark of the level above by now: see
                // raise_slowly().
                // edge directory.look (seq_cst): as in empty()
                return state.load(seq_cst) == 0;
            case doubted::by_caller:
                break;
        }
        for (;;) {
            const bool empty = child_empty();
            switch (settle(state, child, empty)) {
                case settled::node_clear:
                    return true;
                case settled::node_marked:
                    return false;
                case settled::disputed:
                    // edge directory.doubt (seq_cst): the next look comes after this
                    state.fetch_and(~mark(child), seq_cst);
            }
        }
    }

    enum class doubted { by_caller, by_another, not_marked };
    [[nodiscard]] static doubted doubt(atomic<std::uint64_t>& state, std::size_t child) noexcept {
        // edge directory.doubt (seq_cst): either this sees the mark, or its setter the empty leaf
        std::uint64_t seen = state.load(seq_cst);
        for (;;) {
            const bool marked = (seen & mark(child)) != 0;
            const bool claimed = (seen & claim(child)) != 0;
            if (marked == claimed) return marked ? doubted::by_another : doubted::not_marked;
            const std::uint64_t next =
                claimed ? seen | mark(child) : (seen & ~mark(child)) | claim(child);
            // edge directory.doubt (seq_cst): either a raise sees this, or the look sees its leaf
            if (state.compare_exchange_weak(seen, next, seq_cst, relaxed))
                return claimed ? doubted::by_another : doubted::by_caller;
        }
    }

    enum class settled { node_clear, node_marked, disputed };
    [[nodiscard]] static settled settle(atomic<std::uint64_t>& state, std::size_t child,
                                        bool empty) noexcept {
        std::uint64_t seen = state.load(relaxed);  // relaxed: the exchange below decides
        for (;;) {
            if ((seen & mark(child)) != 0 && !planted("directory.ignore_dispute"))
                return settled::disputed;
            const std::uint64_t next =
                (seen & ~claim(child) & ~mark(child)) | (empty ? 0 : mark(child));
            // edge directory.look (seq_cst): cleared only if it was not raised since the look
            if (state.compare_exchange_weak(seen, next, seq_cst, relaxed))
                return next == 0 ? settled::node_clear : settled::node_marked;
        }
    }

    unsigned levels_ = 0;
    node* level_[levels_max]{};        // the nodes of each level; the root is the last
    std::size_t sizes_[levels_max]{};  // and how many there are on each
    std::unique_ptr<node[]> nodes_;
};

}  // namespace coppice::internal
