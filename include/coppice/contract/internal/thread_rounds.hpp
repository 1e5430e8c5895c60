// thread_rounds: each thread's position in the groups that it serves without a bias of its own.
#pragma once

#include <coppice/base/internal/atomic.hpp>
#include <coppice/signal/selection_bias.hpp>

#include <array>
#include <cstdint>
#include <utility>

namespace coppice::internal {

// One thread's rounds through the last few groups that it served. A thread that alternates between
// more groups starts at a random place each time; no contract starves even then, but such a thread
// should pass its own bias. The group served last has a fixed place, so that its round is found
// without a search.
class [[gnu::visibility("default")]] thread_rounds {
public:
    constexpr thread_rounds() noexcept = default;

    // Returns this thread's round through the group with that number.
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
    std::size_t replaced_ = 0;  // replacements so far
};

}  // namespace coppice::internal
