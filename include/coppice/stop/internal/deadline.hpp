// stop_deadline: the deadline of a stop_state, set by stop_source::request_stop_after.
#pragma once
// The timer of the process (base/internal/process_timer.hpp) delivers all deadlines: it requests
// the stops on its own thread, so callbacks run there, one deadline after the other, with all
// signals blocked. The first request_stop_after() starts that thread; a program that never calls it
// pays nothing.
//
// End of a state: its deadline is withdrawn first. If the timer's thread is delivering it at that
// moment, the end waits until that request, which the dead state refuses, has returned. If the
// delivery itself ends the state, because its request was the last to keep the state alive, then
// the end runs on the timer's thread and does not wait.
//
// End of the process: exit() lets the current delivery finish. Deadlines that are pending then, or
// set later, never come. A child of fork() delivers inherited deadlines after its first
// request_stop_after().

#include <coppice/base/internal/process_timer.hpp>
#include <coppice/stop/internal/state.hpp>

namespace coppice::internal {

class stop_deadline : public process_timer_node {
public:
    explicit stop_deadline(stop_state& state) noexcept
        : process_timer_node(&deliver), state_(&state) {}

private:
    static void deliver(process_timer_node& node) noexcept;

    stop_state* const state_;
};

}  // namespace coppice::internal
