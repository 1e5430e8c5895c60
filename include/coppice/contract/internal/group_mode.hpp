// group_mode: whether a group is open, draining, or stopped; one word, for internal/core.hpp.
#pragma once
//   open        everything is allowed
//   draining    pending contracts run; nothing more is created or scheduled
//   stopped     pending contracts do not run; releases still do
//
// A mode never goes back, whichever threads end the group at once: begin_drain() exchanges only
// `open`, and after `stopped` only `stopped` is written. All operations are relaxed, because that
// is a promise about one word. Its writes have a single order, and an exchange directly follows the
// value that it expects. A thread that knows of a call to stop(), because some ordering put that
// call before its own, reads that write or a later one. No other data depends on the word: the
// board orders pending contracts, the gate orders callers, and an edge of their own orders
// sleepers. Model: tests/model/contract_end_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstdint>

namespace coppice::internal {

// Threads: all functions from any thread. Blocks: never.
class group_mode : immovable {
public:
    bool is_open() const noexcept { return word_.load(relaxed) == open; }
    bool is_stopped() const noexcept { return word_.load(relaxed) == stopped; }

    // open -> draining. A group that is draining or stopped stays so.
    void begin_drain() noexcept {
        std::uint32_t expected = open;
        if (planted("contract.check_then_drain")) {
            if (is_open()) word_.store(draining, relaxed);
            return;
        }
        word_.compare_exchange_strong(expected, draining, relaxed, relaxed);
    }
    // open or draining -> stopped.
    void stop() noexcept { word_.store(stopped, relaxed); }

private:
    static constexpr std::uint32_t open = 0;
    static constexpr std::uint32_t draining = 1;
    static constexpr std::uint32_t stopped = 2;

    atomic<std::uint32_t> word_{open};  // written by the threads that end the group
};

}  // namespace coppice::internal
