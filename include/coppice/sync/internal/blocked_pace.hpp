// blocked_pace: how long a thread that blocks in a channel looks for its partner before it sleeps.
#pragma once
// To sleep and to be woken costs two threads 10 microseconds and more. If they meet for nearly
// every item, as in a rendezvous, to look for a moment costs a tenth of that. A channel with many
// slots is another case: its sleeper lets items gather, and then each thread uses the channel
// without the other for a while, which is faster than to meet there.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/token/block_latch.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace coppice::internal {

// The pace of one thread, for all channels in which it blocks. The thread looks half as long after
// looks that did not pay, because the other side is slow or needs this processor, and twice as long
// after looks that did.
class blocked_pace {
public:
    // Returns true if threads meet in a channel of that capacity for nearly every item.
    static constexpr bool meets_often(std::size_t capacity) noexcept { return capacity < 64; }
    [[gnu::noinline]] static void look_in_this_thread(const block_latch& done) noexcept {
        thread_slot<blocked_pace, blocked_pace>().look(done);
    }

private:
    // Returns when `done` is set, or when it has looked long enough.
    void look(const block_latch& done) noexcept {
        std::uint32_t looks = looks_;
        if (looks == 0) {
            ++waits_;
            if (waits_ < first_probe || !std::has_single_bit(waits_)) return;
            looks = looks_max;
        }
        for (std::uint32_t i = 0; i != looks; ++i) {
            if (done.is_set()) {
                looks_ = std::min(2 * looks, looks_max);
                waits_ = 0;
                return;
            }
            spin_hint();
        }
        looks_ /= 2;
    }

    static constexpr std::uint32_t looks_max = 1024;  // about as long as a thread takes to wake
    static constexpr std::uint32_t first_probe = 64;  // waits without a look

    std::uint32_t looks_ = looks_max;
    std::uint32_t waits_ = 0;  // since its looks paid
};

}  // namespace coppice::internal
