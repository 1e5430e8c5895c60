// stop_deadline: the deadline of a stop_state, set by stop_source::request_stop_after.
#pragma once
// One thread of the process delivers all deadlines. The first request_stop_after() starts it; a
// program that never calls it pays nothing. The thread keeps pending deadlines in a pairing heap of
// intrusive nodes and sleeps until the earliest is due. It requests the stops itself, so callbacks
// run on it, one deadline after the other, with all signals blocked.
//
// End of a state: its deadline is withdrawn first. If the timer's thread is delivering it at that
// moment, the end waits until that request has returned. (The request is refused; or it is what
// ends the state, and then the timer's own thread runs the end and does not wait.)
//
// End of the process: exit() runs a handler that lets the current delivery finish, ends the thread,
// and joins it. Deadlines that are pending then, or set later, never come. The first
// request_stop_after() registers the handler. Static objects constructed later are destroyed before
// it runs, with the timer; all others after it, without the timer. If a callback on the timer's
// thread calls exit(), the thread is not joined. quick_exit() and _exit() end the thread like any
// other. A child of fork() has no timer thread; its next request_stop_after() starts one, which
// then also delivers inherited deadlines.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/internal/state.hpp>

#include <cstdint>

namespace coppice::internal {

// All fields are guarded by the timer's mutex, except where noted.
class stop_deadline : immovable {
public:
    explicit stop_deadline(stop_state& state) noexcept : state_(&state) {}

private:
    friend class deadline_timer;  // src/stop/deadline.cpp
    friend bool deadline_pending(const stop_deadline& deadline) noexcept;

    stop_state* const state_;
    std::int64_t due_ = 0;  // nanoseconds of CLOCK_MONOTONIC
    bool queued_ = false;   // in the heap
    // The pairing heap: the first child, the next sibling, and the pointer of the tree that points
    // here.
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
