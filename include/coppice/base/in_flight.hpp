// in_flight: lets an object end only after the calls on it that other threads have begun are over.
#pragma once
// A thread that hands work to a loop or a pool may still be inside that call, about to wake a
// sleeper, when the work has run and its owner destroys the loop or the pool. Such calls hold an
// entry; the destructor waits for the entries. The wait is as short as the rest of a call.

#include <coppice/base/atomic.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstdint>

namespace coppice::internal {

// Threads: entries by any; wait() by the one that ends the object, when nobody can begin a call
// that the object's own work did not cause. Cost of an entry: two relaxed-or-release additions.
class in_flight : immovable {
public:
    class entry : immovable {
    public:
        // Relaxed: who sees the call's work, which is published later with release, sees this too.
        explicit entry(in_flight& calls) noexcept : calls_(calls.count_) {
            calls_.fetch_add(1, relaxed);
        }
        // edge in_flight.over (release): the call touches nothing any more
        ~entry() { calls_.fetch_sub(1, release); }

    private:
        atomic<std::uint32_t>& calls_;
    };

    // Blocks: until the calls under way are over.
    void wait() const noexcept {
        // edge in_flight.over (acquire): the calls' last accesses are before what follows
        while (count_.load(acquire) != 0) thread_yield();
    }

private:
    atomic<std::uint32_t> count_{0};  // calls under way
};

}  // namespace coppice::internal
