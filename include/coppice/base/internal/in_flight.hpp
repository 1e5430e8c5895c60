// in_flight: delays the end of an object until the calls that other threads have begun are over.
#pragma once
// A thread that hands work to a loop or a pool may still be inside that call, about to wake a
// sleeper, when the work has run and the owner destroys the loop or the pool. Such a call holds an
// entry, and the destructor waits until there are no entries. It waits only as long as the rest of
// a call takes.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstdint>

namespace coppice::internal {

// Threads: entries by any thread; wait() by the thread that ends the object, when only the object's
// own work can still begin calls. Cost of an entry: two additions, one relaxed and one release.
class in_flight : immovable {
public:
    class entry : immovable {
    public:
        // Relaxed: the call's work is published later with release, and shows this addition too.
        explicit entry(in_flight& calls) noexcept : calls_(calls.count_) {
            calls_.fetch_add(1, relaxed);
        }
        // edge in_flight.over (release): the call touches nothing afterwards
        ~entry() { calls_.fetch_sub(1, release); }

    private:
        atomic<std::uint32_t>& calls_;
    };

    // Blocks: until the calls in flight are over.
    void wait() const noexcept {
        // edge in_flight.over (acquire): the calls' last accesses are before what follows
        while (count_.load(acquire) != 0) thread_yield();
    }

private:
    atomic<std::uint32_t> count_{0};  // calls in flight
};

}  // namespace coppice::internal
