// start_race: did an operation complete before its start() returned? Used by what must not recurse.
#pragma once
// Completing inside start() would call the continuation on top of the starter's stack, and a loop
// of such steps would use it up. Instead the completion notes that it happened, and the starter
// goes on when start() has returned. When the operation completes later, or on another thread, the
// completion itself goes on.
//
//   state_     who                          becomes        goes on
//   starting   completion in start()        completed      the starter, after start()
//   starting   completion elsewhere         completed      the starter, after start()
//   starting   the starter, after start()   returned       nobody: the completion will
//   returned   the completion               -              the completion
//
// The completion inside start() is the common one and costs no atomic exchange: it compares the
// address of a thread-local with the starter's. Everything the loser wrote is seen by who goes on.
// Threads: one starter, one completion.

#include <coppice/base/atomic.hpp>

namespace coppice::execution {

// Where this thread is told from others.
class [[gnu::visibility("default")]] start_race_thread;
inline const void* this_thread_mark() noexcept {
    return &internal::thread_slot<start_race_thread, char>();
}

class start_race {
public:
    start_race() noexcept = default;

    // The starter, before start().
    void open() noexcept {
        starter_ = this_thread_mark();
        // relaxed: start() publishes the operation itself
        state_.store(starting, internal::relaxed);
    }
    // The completion. True: go on from here. False: the starter will, touch nothing.
    [[nodiscard]] bool completed() noexcept {
        if (starter_ == this_thread_mark()) {
            // relaxed: the starter's writes are this thread's own
            if (state_.load(internal::relaxed) == starting) {
                state_.store(complete, internal::relaxed);
                return false;
            }
            return true;
        }
        // edge start_race.completed (release), edge start_race.returned (acquire): both see all
        return state_.exchange(complete, internal::acq_rel) == left;
    }
    // The starter, after start(). True: it has completed, go on from here. False: touch nothing.
    [[nodiscard]] bool returned() noexcept {
        // edge start_race.completed (acquire): the result is stored
        if (state_.load(internal::acquire) == complete) return true;
        // edge start_race.returned (release), edge start_race.completed (acquire): both see all
        return state_.exchange(left, internal::acq_rel) == complete;
    }

private:
    enum state : unsigned char { starting, complete, left };

    internal::atomic<state> state_{starting};
    const void* starter_ = nullptr;  // written before start(); read by the completion
};

}  // namespace coppice::execution
