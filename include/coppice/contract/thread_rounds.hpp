// thread_rounds: where each thread stands in the groups it serves without a bias of its own.
#pragma once

#include <coppice/base/atomic.hpp>
#include <coppice/signal/selection_bias.hpp>

#include <array>
#include <cstdint>
#include <utility>

namespace coppice::internal {

// A thread's rounds through the last few groups that it served. One that serves more of them in
// turn starts somewhere at random each time: still nothing starves, but it should pass its own
// bias. The group served last has a fixed place, so that its round is found without a step between.
class [[gnu::visibility("default")]] thread_rounds {
public:
    constexpr thread_rounds() noexcept = default;

    // This thread's round through the group of that number.
    static signal_round& of(std::uint64_t group) noexcept {
        thread_rounds& mine = thread_slot<thread_rounds, thread_rounds>();
        if (mine.last_.group != group) [[unlikely]]
            mine.change_to(group);
        return mine.last_.round;
    }

private:
    static constexpr std::size_t others = 7;
    struct entry {
        std::uint64_t group = 0;
        signal_round round;
    };

    [[gnu::noinline]] void change_to(std::uint64_t group) noexcept {
        for (entry& e : others_) {
            if (e.group == group) {
                std::swap(e, last_);
                return;
            }
        }
        others_[replaced_++ % others] = last_;
        last_ = entry{group, signal_round()};
        if (replaced_ > others) last_.round.start_anywhere(replaced_);
    }

    entry last_;
    std::array<entry, others> others_{};
    std::size_t replaced_ = 0;  // how many have been, in all
};

}  // namespace coppice::internal
