// start_race: did an operation complete before its start() returned? Prevents recursion.
#pragma once
// A continuation called from a completion inside start() would run on top of the starter's stack,
// and a loop of such steps would use up the stack. Instead the completion notes that it happened,
// and the starter continues after start() has returned. If the operation completes after that, the
// completion itself continues.
//
//   state_     actor                        next state     continued by
//   starting   completion in start()        complete       the starter, after start()
//   starting   completion elsewhere         complete       the starter, after start()
//   starting   the starter, after start()   left           the completion, later
//   left       the completion               -              the completion
//
// A completion on the starter's thread is the common case and needs no atomic exchange: it compares
// the address of a thread-local variable with the one that the starter stored. The side that
// continues sees everything that the other side wrote. Threads: one starter, one completion. Model:
// tests/model/start_race_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/namespaces.hpp>

namespace coppice::execution::internal {

// An address that identifies this thread.
class [[gnu::visibility("default")]] start_race_thread;
inline const void* this_thread_mark() noexcept {
    return &thread_slot<start_race_thread, char>();
}

class start_race {
public:
    start_race() noexcept = default;

    // Called by the starter before start().
    void open() noexcept {
        starter_ = this_thread_mark();
        // relaxed: start() publishes the operation itself
        state_.store(starting, relaxed);
    }
    // Called by the completion. Returns true if the completion must continue from here. If it
    // returns false, the starter continues, and the completion must touch nothing.
    [[nodiscard]] bool completed() noexcept {
        if (starter_ == this_thread_mark()) {
            // relaxed: the starter's writes are this thread's own
            if (state_.load(relaxed) == starting) {
                state_.store(complete, relaxed);
                return false;
            }
            return true;
        }
        // edge start_race.completed (release), edge start_race.returned (acquire): all writes
        return state_.exchange(complete, acq_rel) == left;
    }
    // Called by the starter after start(). Returns true if the operation has completed and the
    // starter must continue. If it returns false, the starter must touch nothing.
    [[nodiscard]] bool returned() noexcept {
        // edge start_race.completed (acquire): the result is stored
        if (state_.load(acquire) == complete) return true;
        // edge start_race.returned (release), edge start_race.completed (acquire): all writes
        return state_.exchange(left, acq_rel) == complete;
    }

private:
    enum state : unsigned char { starting, complete, left };

    atomic<state> state_{starting};
    const void* starter_ = nullptr;  // written before start(); read by the completion
};

}  // namespace coppice::execution::internal
