// windows: parallel walks whose later parts depend on the earlier ones, such as scans.
#pragma once
// A walk goes from the first element to the last, chunk after chunk, as it would without workers.
// When an idle worker asks for work, the next elements become a window of blocks. The walker
// continues with the first blocks, and the other workers prepare the last ones, until they meet:
//
//   direct(from, to)          processes the next elements in order
//   prepare(b, from, to)      reads block b before the blocks in front of it are done
//   combine(first, blocks)    passes results from block to block, in order; block `first` is the
//                             first prepared one
//   apply(b, from, to)        finishes a prepared block, in parallel; if Steps::applies
//
// So each element is visited once without help, and with help some elements twice. A block takes
// about ten microseconds, as long as a join and a wake-up. A window fits into a shared cache.

#include <coppice/base/internal/fork_deque.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/base/saturating.hpp>
#include <coppice/parallel/internal/namespaces.hpp>
#include <coppice/pool/fork_join.hpp>
#include <coppice/pool/internal/loop_walks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace coppice::parallel::internal {

template <class Steps>
class window_walk : immovable {
public:
    explicit window_walk(Steps& steps) noexcept : steps_(steps) {}

    // Returns false if a stop request left elements out.
    bool run(std::size_t count) {
        std::size_t from = 0;
        while (from != count) {
            if (!goes_on()) return false;
            const std::size_t left = count - from;
            if (const std::size_t blocks = blocks_of(left); blocks > 2) {
                const std::size_t end = from + std::min(left, blocks * block_);
                run_window({from, end, (end - from + block_ - 1) / block_});
                if (!state_.is_complete()) return false;
                from = end;
            } else {
                from += walk_chunk(from, left);
            }
        }
        return true;
    }

private:
    static constexpr std::size_t blocks_per_worker = 8;
    static constexpr std::size_t blocks_max = 512;
    static constexpr std::size_t chunks_max = 16;  // in a block

    struct window {
        std::size_t from;
        std::size_t end;
        std::size_t blocks;
    };

    // Returns false if the rest is left out because of a stop request or an exception in another
    // part.
    bool goes_on() noexcept {
        if (!state_.is_over()) return true;
        state_.leave_out();
        return false;
    }
    // Walks a chunk of at most `left` elements directly, and measures its time to choose the size
    // of the next. Returns the number of elements.
    std::size_t walk_chunk(std::size_t from, std::size_t left) {
        const std::uint64_t known = state_.chunk();
        time_point time = loop_state::now();
        const std::uint64_t count = state_.run(left, time, [this, from](std::uint64_t n) {
            steps_.direct(from, from + static_cast<std::size_t>(n));
        });
        learned_ = learned_ || state_.chunk() <= known;
        return static_cast<std::size_t>(count);
    }
    // Returns the number of blocks of the next window; 0 if no other worker wants to take part, or
    // if the size of a block is not known yet.
    std::size_t blocks_of(std::size_t left) noexcept {
        fork_deque* const deque = fork_deque::current();
        if (!learned_ || deque == nullptr || !deque->asked()) return 0;
        const std::size_t workers = deque->team().size();
        if (workers == 1) return 0;
        const std::size_t wanted = std::min(blocks_per_worker * workers, blocks_max);
        const auto chunk = static_cast<std::size_t>(std::min<std::uint64_t>(state_.chunk(), left));
        block_ = std::clamp(left / wanted, chunk, saturating_mul(chunk, chunks_max));
        return std::min(wanted, (left + block_ - 1) / block_);
    }
    void run_window(window w) {
        steps_.begin(w.blocks, block_);
        std::size_t walked = 0;  // blocks; written by the walker, whose calls of this come in order
        const fork_deque* const walker = fork_deque::current();
        fork_blocks(0, w.blocks, [this, w, walker, &walked](std::size_t b) {
            const std::size_t from = w.from + b * block_;
            const std::size_t to = std::min(from + block_, w.end);
            if (fork_deque::current() != walker || walked != b) {
                if (goes_on()) steps_.prepare(b, from, to);
                return;
            }
            for (std::size_t done = from; done != to;) {
                if (!goes_on()) return;
                done += walk_chunk(done, to - done);
            }
            ++walked;
        });
        if (walked == w.blocks || !state_.is_complete()) return;
        steps_.combine(walked, w.blocks);
        if constexpr (Steps::applies) {
            fork_blocks(walked, w.blocks, [this, w](std::size_t b) {
                const std::size_t from = w.from + b * block_;
                if (goes_on()) steps_.apply(b, from, std::min(from + block_, w.end));
            });
        }
    }
    // Calls f(b) for each block of [first, last), in parallel.
    template <class F>
    static void fork_blocks(std::size_t first, std::size_t last, const F& f) {
        if (last - first == 1) return f(first);
        const std::size_t middle = first + (last - first) / 2;
        fork_join([first, middle, &f] { fork_blocks(first, middle, f); },
                  [middle, last, &f] { fork_blocks(middle, last, f); });
    }

    Steps& steps_;
    std::size_t block_ = 1;  // elements; does not change during a window
    bool learned_ = false;   // the time that elements take
    loop_state state_;
};

template <class Steps>
bool walk_windows(std::size_t count, Steps& steps) {
    window_walk<Steps> walk(steps);
    return walk.run(count);
}

}  // namespace coppice::parallel::internal
