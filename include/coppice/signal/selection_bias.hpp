// selection_bias: decides which set signal a thread takes next; used by trees and groups.
#pragma once
// A bias belongs to one thread, so a selection shares only the signals themselves with others.
//
// fair      The thread goes round: it takes the first set signal at or after its position and wraps
//           at the end. Each round takes each signal that stays set exactly once, however the
//           signals are spread. (The talk toggles a bit per tree level; that would visit a lone
//           signal as often as all of its neighboring subtree.)
// prefer(i) The thread takes the set signal that shares the most top levels with i in the perfect
//           binary tree over all indices. Signals that share the top levels down to some level and
//           differ in the next one form a block, whose size is a power of two. Within a block the
//           thread goes round.
//
// internal/signal_round.hpp says what Leaves, the parameter of the searches below, provides.
//
// Source: the talk's selection bias; the round and the blocks are ours.

#include <coppice/signal/internal/signal_round.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace coppice {

// One thread's choice among set signals. Threads: one at a time. Cost: no allocation; copyable.
class selection_bias {
public:
    // Selects every set signal equally often.
    static selection_bias fair() noexcept { return selection_bias(internal::no_signal); }
    // Selects the set signal nearest to `index`, as defined above, however far that is.
    static selection_bias prefer(std::size_t index) noexcept { return selection_bias(index); }

    // Takes and returns a signal. Returns no_signal if every signal was seen not set or was taken
    // by another thread.
    template <class Leaves>
    std::size_t take(Leaves& leaves) noexcept {
        return preferred_ == internal::no_signal ? round_.take(leaves) : take_near(leaves);
    }
    // Returns the round of a fair bias; nullptr if the bias is not fair.
    internal::signal_round* round() noexcept {
        return preferred_ == internal::no_signal ? &round_ : nullptr;
    }

private:
    explicit selection_bias(std::size_t preferred) noexcept : preferred_(preferred) {}

    template <class Leaves>
    std::size_t take_near(Leaves& leaves) noexcept {
        bool ignored = false;
        if (preferred_ < leaves.end()) {
            const std::size_t found =
                internal::take_between(leaves, preferred_, preferred_ + 1, ignored);
            if (found != internal::no_signal) return found;
        }
        const std::size_t leaf = preferred_ / Leaves::width;
        std::size_t found =
            take_beside<Leaves::width>(leaves, leaves.available(leaf), preferred_, 0);
        unsigned shift = std::countr_zero(Leaves::width);
        std::size_t child = leaf;
        for (unsigned level = 0; found == internal::no_signal && level != leaves.nodes().levels();
             ++level) {
            constexpr unsigned width = Leaves::nodes_width;
            found = take_beside<width>(leaves, leaves.nodes().marks(level, child), child, shift);
            shift += std::countr_zero(width);
            child /= width;
        }
        // For an index outside of the tree, the whole tree is one block.
        if (found == internal::no_signal && child != 0)
            found = take_round(leaves, 0, leaves.end(), shift);
        return found;
    }

    // Takes a signal from the smallest block beside `child` that has one. `marks` are the children
    // of one node, each of 2^shift signals; `child` is one of them.
    template <unsigned Width, class Leaves>
    std::size_t take_beside(Leaves& leaves, std::uint64_t marks, std::size_t child,
                            unsigned shift) noexcept {
        marks &= ~(std::uint64_t{1} << child % Width);
        for (unsigned i = 0; marks != 0 && i != std::countr_zero(Width); ++i) {
            const std::size_t beside = (child % Width >> i ^ 1) << i;
            const std::uint64_t members = ((std::uint64_t{1} << (1u << i)) - 1) << beside;
            if ((marks & members) == 0) continue;
            marks &= ~members;
            const std::size_t first = (child / Width * Width + beside) << shift;
            const std::size_t found =
                take_round(leaves, first, first + (std::size_t{1} << i << shift), shift + i);
            if (found != internal::no_signal) return found;
        }
        return internal::no_signal;
    }
    template <class Leaves>
    std::size_t take_round(Leaves& leaves, std::size_t first, std::size_t last,
                           unsigned size_log) noexcept {
        bool ignored = false;
        last = std::min(last, leaves.end());
        std::size_t from = resume_[size_log];
        if (from < first || from >= last) from = first;
        std::size_t found = internal::take_between(leaves, from, last, ignored);
        if (found == internal::no_signal)
            found = internal::take_between(leaves, first, from, ignored);
        if (found != internal::no_signal) resume_[size_log] = static_cast<std::uint32_t>(found + 1);
        return found;
    }

    std::size_t preferred_;  // no_signal if the bias is fair
    internal::signal_round round_;
    std::array<std::uint32_t, 37> resume_{};  // where to resume, by log2 of the block's size
};

}  // namespace coppice
