// signal_tree: many flags; to set one, and to find a set one, takes a few steps.
#pragma once
// Signals are bits of leaf words, one word per cache line. A directory above tells which words hold
// set signals. set() sets the bit and then raises the leaf. select() clears a bit by an exchange,
// and lowers the leaf if it took the last bit; so empty() is exact and costs one load.
//
// Guarantees, for any interleaving:
//   - Each set() that returned true is matched by exactly one select() or reset() that took it.
//   - select() does not miss a signal that was set before it began and that stays set. It returns
//     nothing only if each signal was seen not set, or was taken by others, while it looked.
//   - set() is wait-free: it never repeats a step. select() is lock-free: it repeats a step only
//     if another thread has changed the same word.
//
// Threads: all functions from any thread; each selection_bias by one thread at a time. Source: the
// talk's signal tree. There, inner nodes count their set leaves, so every set and every select
// writes the root. Here, inner nodes are sticky marks, which busy threads only read.

#include <coppice/base/internal/check.hpp>
#include <coppice/signal/selection_bias.hpp>

#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

namespace coppice {

namespace internal {

template <unsigned LeafWidth, unsigned NodeWidth>
class basic_signal_tree : immovable {
    static_assert(LeafWidth >= 2 && LeafWidth <= 64 && std::has_single_bit(LeafWidth));

public:
    // Errors: std::invalid_argument for 0 and for more than 2^32 signals; what allocation throws.
    // Cost: one cache line per LeafWidth signals.
    explicit basic_signal_tree(std::size_t capacity)
        : count_(leaves_for(capacity)), nodes_(count_), words_(std::make_unique<word[]>(count_)) {}

    // Returns the number of signals: the capacity asked for, rounded up to whole leaves.
    std::size_t capacity() const noexcept { return count_ * LeafWidth; }

    // Sets a signal. Returns true if it was not set before. Misuse: an index outside of the
    // capacity stops the process. Cost: one locked operation and a load per level; more for the
    // first signal of a leaf.
    bool set(std::size_t index) noexcept {
        COPPICE_CHECK(index < capacity(),
                      "a signal outside of the tree was set: signals are 0 to capacity() - 1");
        const std::size_t leaf = index / LeafWidth;
        const std::uint64_t bit = std::uint64_t{1} << index % LeafWidth;
        if (planted("signal.raise_early")) raise(leaf);
        // edge signal.hand_over (release): what came before set; pairs with take() and reset()
        const std::uint64_t before = words_[leaf].signals.fetch_or(bit, seq_cst);
        // Raise even if the bit was set already: the thread that set it may not have raised the
        // leaf yet.
        if (!planted("signal.raise_early")) raise(leaf);
        return (before & bit) == 0;
    }

    // Sets all signals of [first, last). For owners of signals that are numbered in order.
    void set_range(std::size_t first, std::size_t last) noexcept {
        COPPICE_CHECK(first <= last && last <= capacity(),
                      "signals outside of the tree were set: signals are 0 to capacity() - 1");
        while (first != last) {
            const std::size_t leaf = first / LeafWidth;
            const std::size_t stop = std::min(last, (leaf + 1) * LeafWidth);
            const std::uint64_t bits = (~std::uint64_t{0} >> (64 - (stop - first)))
                                       << first % LeafWidth;
            // edge signal.hand_over (release): as in set()
            words_[leaf].signals.fetch_or(bits, seq_cst);
            raise(leaf);
            first = stop;
        }
    }

    // Takes a set signal that the bias chooses, and resets it. Returns nullopt if no signal is set,
    // or if other threads took them first. Cost: a few loads per level and one locked operation.
    std::optional<std::size_t> select(selection_bias& bias) noexcept {
        const std::size_t found = bias.take(*this);
        return found == no_signal ? std::nullopt : std::optional(found);
    }
    // Takes the lowest set signal, and resets it.
    std::optional<std::size_t> select_first() noexcept {
        bool ignored = false;
        const std::size_t found = take_between(*this, 0, end(), ignored);
        return found == no_signal ? std::nullopt : std::optional(found);
    }

    // Resets a signal. Returns true if it was set and this call took it.
    bool reset(std::size_t index) noexcept {
        COPPICE_CHECK(index < capacity(),
                      "a signal outside of the tree was reset: signals are 0 to capacity() - 1");
        const std::size_t leaf = index / LeafWidth;
        const std::uint64_t bit = std::uint64_t{1} << index % LeafWidth;
        // edge signal.hand_over (acquire): what came before set
        const std::uint64_t before = words_[leaf].signals.fetch_and(~bit, seq_cst);
        if ((before & bit) != 0 && (before & ~bit) == 0) lower(leaf);
        return (before & bit) != 0;
    }

    // Returns true if no signal is set. Exact while no thread sets or selects. Cost: one load.
    bool empty() const noexcept { return nodes_.empty(); }

    // For the searches of selection_bias.
    static constexpr unsigned width = LeafWidth;
    static constexpr unsigned nodes_width = NodeWidth;
    std::size_t end() const noexcept { return capacity(); }
    const directory<NodeWidth>& nodes() const noexcept { return nodes_; }
    std::uint64_t available(std::size_t leaf) const noexcept {
        return leaf < count_ ? words_[leaf].signals.load(relaxed) : 0;  // relaxed: take() decides
    }
    int take(std::size_t leaf, std::uint64_t mask, bool& contended) noexcept {
        // edge signal.look (seq_cst): a set that has returned is seen
        std::uint64_t seen = words_[leaf].signals.load(seq_cst);
        while ((seen & mask) != 0) {
            const int bit = std::countr_zero(seen & mask);
            const std::uint64_t rest = seen & ~(std::uint64_t{1} << bit);
            // edge signal.hand_over (acquire): what came before set
            if (words_[leaf].signals.compare_exchange_weak(seen, rest, seq_cst, relaxed)) {
                if (rest == 0) lower(leaf);
                return bit;
            }
            contended = true;
        }
        return -1;
    }

private:
    struct alignas(line_size) word {
        // One bit per signal, set by set() and cleared by select() and reset().
        atomic<std::uint64_t> signals{0};
        marks_note note;
    };

    static std::size_t leaves_for(std::size_t capacity) {
        if (capacity == 0 || capacity > std::numeric_limits<std::uint32_t>::max())
            throw std::invalid_argument("coppice: a signal tree of " + std::to_string(capacity) +
                                        " signals; allowed: 1 to 4294967295");
        return (capacity + LeafWidth - 1) / LeafWidth;
    }
    bool leaf_empty(std::size_t leaf) const noexcept {
        // edge signal.look (seq_cst): a set that came before the caller's last step is seen
        return words_[leaf].signals.load(seq_cst) == 0;
    }
    void raise(std::size_t leaf) noexcept {
        nodes_.raise(leaf, words_[leaf].note, [this, leaf] { return leaf_empty(leaf); });
    }
    void lower(std::size_t leaf) noexcept {
        nodes_.lower(leaf, words_[leaf].note, [this, leaf] { return leaf_empty(leaf); });
    }

    std::size_t count_;  // leaves
    directory<NodeWidth> nodes_;
    std::unique_ptr<word[]> words_;
};

}  // namespace internal

// A signal tree with leaves of 64 signals and nodes of 32 children. A million signals need three
// levels.
class signal_tree : public internal::basic_signal_tree<64, 32> {
public:
    using basic_signal_tree::basic_signal_tree;
};

}  // namespace coppice
