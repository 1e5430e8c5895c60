// The deadline of a stop_state, as stop_source::request_stop_after sets it.
#pragma once
// One thread of the process delivers all deadlines; the first request_stop_after() starts it, and a
// program that never calls it pays nothing. The thread keeps pending deadlines in a pairing heap of
// intrusive nodes and sleeps until the earliest is due. It requests the stop itself, so callbacks
// run on it, one deadline after the other, with all signals blocked.
//
// End of a state: its deadline is taken back first. If it is being delivered at that moment by the
// timer's thread, the end waits until that request has returned (it is refused, or is what ends the
// state, and then the thread is the timer's own and does not wait).
//
// End of the process: exit() runs a handler that lets the current delivery finish, ends the thread
// and joins it; deadlines that are pending then, or set later, never come. The handler is
// registered by the first request_stop_after(): the destructors of static objects that were
// constructed later run before it, with the timer, the others after it, without. If exit() is
// called by a callback on the timer's thread, nothing is joined. quick_exit() and _exit() end the
// thread as any other. A child of fork() has no timer thread: its next request_stop_after() starts
// one, which then delivers what was inherited, too.

#include <coppice/base/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/state.hpp>

#include <cstdint>

namespace coppice::internal {

// Guarded by the timer's mutex, but for what says otherwise.
class stop_deadline : immovable {
public:
    explicit stop_deadline(stop_state& state) noexcept : state_(&state) {}

private:
    friend class deadline_timer;  // src/stop/deadline.cpp
    friend bool deadline_pending(const stop_deadline& deadline) noexcept;

    stop_state* const state_;
    std::int64_t due_ = 0;  // nanoseconds of CLOCK_MONOTONIC
    bool queued_ = false;   // in the heap
    // The pairing heap: the first child, the next sibling, and what points here in the tree.
    stop_deadline* child_ = nullptr;
    stop_deadline* sibling_ = nullptr;
    stop_deadline** link_ = nullptr;
    // True from arming to the end of the delivery. Written under the mutex; read without it by
    // stop_possible().
    atomic<bool> pending_{false};
};

inline bool deadline_pending(const stop_deadline& deadline) noexcept {
    // edge stop.delivered (acquire): the stop that the deadline has requested is visible
    return deadline.pending_.load(acquire);
}

}  // namespace coppice::internal
