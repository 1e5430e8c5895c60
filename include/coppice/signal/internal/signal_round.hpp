// signal_round: takes set signals in rounds over all leaves; for selection_bias and groups.
#pragma once
// Stepping aside. Two fair threads that meet in a leaf slow each other down, and would go on
// together leaf by leaf. A thread that lost an exchange therefore finishes its leaf and continues
// at a random marked leaf. It jumps far because two threads of equal pace that are d leaves apart
// meet again after about d * d leaves: far jumps are rare, and rare jumps do not hurt fairness. It
// counts marked leaves, not indices, so that a leaf after unused indices is no more likely than
// others. It jumps only where there are plenty of leaves, because among few leaves the skipped ones
// would suffer.
//
// Leaves, the parameter of the searches below, provides:
//   width                              signals per leaf, a power of two up to 64
//   end()                              one past the last signal
//   nodes()                            the directory over the leaves
//   available(leaf)                    the leaf's set signals as bits; 0 for a leaf outside
//   take(leaf, mask, contended)        takes the lowest set signal under the mask and returns its
//                                      bit, or -1; sets contended if it lost an exchange

#include <coppice/signal/internal/directory.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace coppice::internal {

inline constexpr std::size_t no_signal = ~std::size_t{0};

// Takes and returns the first set signal of [first, last), or no_signal. Cost: a load per node on
// the way.
template <class Leaves>
std::size_t take_between(Leaves& leaves, std::size_t first, std::size_t last,
                         bool& contended) noexcept {
    constexpr std::size_t width = Leaves::width;
    std::size_t leaf = first / width;
    std::uint64_t mask = ~std::uint64_t{0} << first % width;
    while (leaf < (last + width - 1) / width) {
        if (last - leaf * width < width) mask &= (std::uint64_t{1} << last % width) - 1;
        const int bit = leaves.take(leaf, mask, contended);
        if (bit >= 0) return leaf * width + static_cast<unsigned>(bit);
        leaf = leaves.nodes().next(leaf + 1);
        mask = ~std::uint64_t{0};
    }
    return no_signal;
}

// The position of one thread that goes round all signals.
class signal_round {
public:
    constexpr signal_round() noexcept = default;

    // Takes the next signal of this round, or no_signal if none is set.
    template <class Leaves>
    std::size_t take(Leaves& leaves) noexcept {
        const std::size_t position = position_;
        if (!contended_ && position < leaves.end()) [[likely]] {
            // Usually the same leaf has another set signal.
            const std::uint64_t mask = ~std::uint64_t{0} << position % Leaves::width;
            const int bit = leaves.take(position / Leaves::width, mask, contended_);
            if (bit >= 0) [[likely]]
                return advance((position & ~std::size_t{Leaves::width - 1}) |
                               static_cast<unsigned>(bit));
        }
        return take_elsewhere(leaves);
    }

    // Continues the round after `taken`. For a caller that takes several signals of a leaf itself.
    std::size_t advance(std::size_t taken) noexcept {
        position_ = taken + 1;
        return taken;
    }
    void lost_exchange() noexcept { contended_ = true; }
    // For a thread whose rounds are always cut short: starts at a place derived from `seed`, so
    // that no signal is always the first.
    void start_anywhere(std::size_t seed) noexcept { position_ = seed * 0x9E3779B97F4A7C15 >> 32; }

private:
    static constexpr unsigned plenty = 8;      // marked leaves; with fewer the thread does not jump
    static constexpr unsigned nodes_max = 32;  // nodes to count marks in; limits the time

    template <class Leaves>
    [[gnu::noinline]] std::size_t take_elsewhere(Leaves& leaves) noexcept {
        constexpr std::size_t width = Leaves::width;
        std::size_t from = position_ % leaves.end();
        if (contended_) {
            const std::size_t leaf_end = std::min((from + width - 1) / width * width, leaves.end());
            const std::size_t found = take_between(leaves, from, leaf_end, contended_);
            if (found != no_signal) return advance(found);
            contended_ = false;
            from = step_aside(leaves, from / width) * width;
        }
        std::size_t found = take_between(leaves, from, leaves.end(), contended_);
        if (found == no_signal) found = take_between(leaves, 0, from, contended_);
        return found == no_signal ? found : advance(found);
    }

    // Returns a random marked leaf from the node of `leaf` and the nodes behind it, each leaf with
    // equal probability. Returns `leaf` if too few are marked.
    template <class Leaves>
    std::size_t step_aside(Leaves& leaves, std::size_t leaf) noexcept {
        const auto& nodes = leaves.nodes();
        unsigned marked = 0;
        std::size_t node = leaf;
        for (unsigned i = 0; i != nodes_max; ++i) {
            marked += static_cast<unsigned>(std::popcount(nodes.marks(0, node)));
            node = node_after(leaves, node);
            if (node == first_of<Leaves>(leaf)) break;
        }
        if (marked < plenty) return leaf;
        unsigned steps = random() % marked;
        node = leaf;
        for (unsigned i = 0; i != nodes_max; ++i) {
            std::uint64_t marks = nodes.marks(0, node);
            const auto here = static_cast<unsigned>(std::popcount(marks));
            if (steps < here) {
                for (; steps != 0; --steps) marks &= marks - 1;
                return first_of<Leaves>(node) + static_cast<unsigned>(std::countr_zero(marks));
            }
            steps -= here;
            node = node_after(leaves, node);
        }
        return leaf;  // the marks have changed since they were counted
    }
    template <class Leaves>
    static std::size_t first_of(std::size_t leaf) noexcept {
        return leaf / Leaves::nodes_width * Leaves::nodes_width;
    }
    // Returns the first leaf of the next node that has a mark, wrapping at the end.
    template <class Leaves>
    static std::size_t node_after(Leaves& leaves, std::size_t leaf) noexcept {
        const auto& nodes = leaves.nodes();
        std::size_t next = nodes.next(first_of<Leaves>(leaf) + Leaves::nodes_width);
        if (next == nodes.none) next = nodes.next(0);
        return next == nodes.none ? first_of<Leaves>(leaf) : first_of<Leaves>(next);
    }
    // Marsaglia's xorshift. The seed is the address, so that each thread has another sequence.
    unsigned random() noexcept {
        if (noise_ == 0)
            noise_ = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(this) >> 4) | 1;
        noise_ ^= noise_ << 13;
        noise_ ^= noise_ >> 17;
        noise_ ^= noise_ << 5;
        return noise_ >> 8;
    }

    std::size_t position_ = 0;
    std::uint32_t noise_ = 0;
    bool contended_ = false;
};

}  // namespace coppice::internal
