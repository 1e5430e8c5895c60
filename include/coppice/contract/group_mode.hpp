// group_mode: whether a group is open, drains or has stopped; one word, of contract/core.hpp.
#pragma once
//   open        everything
//   draining    what is pending runs; nothing more is created or scheduled
//   stopped     what is pending does not run; releases still do
//
// A mode never goes back, whichever threads end the group at once: begin_drain() exchanges `open`
// and nothing else, and after `stopped` nothing is written but `stopped`. All operations are
// relaxed, for that is a promise about one word: its writes have one order, an exchange follows
// directly on the value that it expects, and a thread that knows of a call to stop(), by whatever
// ordered that call before its own, reads that write or a later one. Nothing else rides on the
// word: what is pending is ordered by the board, callers by the gate, sleepers by their own edge.
// Model: tests/model/contract_model.cpp.

#include <coppice/base/atomic.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstdint>

namespace coppice::internal {

// Threads: all functions by any. Blocks: never.
class group_mode : immovable {
public:
    bool is_open() const noexcept { return word_.load(relaxed) == open; }
    bool is_stopped() const noexcept { return word_.load(relaxed) == stopped; }

    // open -> draining; a group that drains or has stopped stays so.
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

    atomic<std::uint32_t> word_{open};  // written by whoever ends the group
};

}  // namespace coppice::internal
