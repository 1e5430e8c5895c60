// How long a connection may stay in a state, and what happens when that time is over.
#include "connection.hpp"

#include <coppice/base/saturating.hpp>

#include <algorithm>

namespace coppice::http {

using namespace internal;

// Enters a state that must be left within `time`. Moves the timer only if it would fire too late;
// expired() arms again a timer that fires too early.
void connection::enter(state s, duration time) noexcept {
    state_ = s;
    set_deadline(saturating_add(loop_.context.turn_time(), time));
}

void connection::set_deadline(time_point when) noexcept {
    exchange& e = *batch_;
    e.deadline = when;
    if (when == time_point::max()) return;
    if (e.armed()) {
        if (e.armed_for <= when) return;
        loop_.context.disarm(e);
    }
    e.armed_for = when;
    loop_.context.arm(e, when);
}

void connection::expired(io::timer_entry* entry) noexcept {
    exchange& e = *static_cast<exchange*>(entry);
    // The exchange is free, or its context is ending.
    if (e.owner == nullptr || e.owner->loop_.context.ending()) return;
    connection& c = *e.owner;
    if (c.loop_.context.turn_time() < e.deadline) {
        c.set_deadline(e.deadline);
    } else {
        c.run_out_of_time();
    }
}

// Leaves the state whose time is over. Called last: it may end the connection.
void connection::run_out_of_time() noexcept {
    if (state_ == state::overdue) {
        give_up();
    } else if (state_ == state::handling) {
        if (!is_on_time()) tell_to_stop();
    } else {
        if (state_ != state::lingering) loop_.counts.timed_out.add();
        if (link_ != nullptr) link_->blame_client();
        break_off();  // pending operations end, and the session with them
    }
}

// Limits the current state to `time` from now.
void connection::end_within(duration time) noexcept {
    const time_point latest = saturating_add(loop_.context.turn_time(), time);
    if (latest < batch_->deadline) set_deadline(latest);
}

// Returns the time for a part of a request, which is `time` if the server does not drain. In a
// drain, all parts that have not come share one time.
duration connection::time_in_drain(duration time) const noexcept {
    if (!loop_.draining) return time;
    const time_point from = std::max(loop_.drain_began, batch_->began);
    const time_point latest = saturating_add(from, loop_.options.timeouts.drain_request);
    return std::min(time, saturating_sub(latest, loop_.context.turn_time()));
}

duration connection::transfer_time(duration base, std::uint64_t bytes) const noexcept {
    return saturating_add(base, time_at_rate<duration>(bytes, loop_.options.timeouts.rate_min));
}

// Extends the time for a body of which `received` bytes have arrived since `began`, by the time
// that they take at the lowest permitted rate. A declared length extends nothing, and a drain's
// limit is not extended.
void connection::allow_time_for(time_point began, std::uint64_t received) noexcept {
    if (loop_.draining) return;
    set_deadline(saturating_add(began, transfer_time(loop_.options.timeouts.body, received)));
}

}  // namespace coppice::http
