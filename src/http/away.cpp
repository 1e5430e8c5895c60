// handling on the pool: a batch leaves for a thread there, and comes home to its loop.
#include "connection.hpp"

#include <coppice/base/saturating.hpp>

#include <algorithm>
#include <utility>

namespace coppice::http {

using namespace internal;

// Prepares the batch to go to a thread of the pool.
void connection::prepare_departure(exchange& e) {
    begin_run(e);
    loop_.date().copy(e.date.data(), e.date.size());
    e.right.depart(e.output.empty(), e.deadline);
    e.departing = true;
    away_ = true;
}

// Called on the pool when a handler starts. The first handler's time began with the departure, so
// it includes the wait for a thread. Returns false if the loop has given the connection up
// meanwhile.
bool connection::begin_away(exchange& e) noexcept {
    if (std::exchange(e.departing, false)) return e.right.begin_first();
    e.origin.arrived = loop_.context.now();  // the answer before it was waited for
    e.origin.followed = true;
    e.origin.deadline = saturating_add(e.origin.arrived, loop_.options.timeouts.handler);
    return e.right.begin(e.output.empty(), e.origin.deadline);
}

// Returns the connection to its loop if the caller runs there. Returns true if it does.
bool connection::come_home_at_once() noexcept {
    if (!loop_.context.is_current()) return false;
    at_home();
    return true;
}

// Returns the connection to its loop.
task<> connection::come_home() {
    if (!loop_.context.is_current()) co_await loop_.context.get_scheduler().schedule();
    at_home();
}

void connection::at_home() noexcept {
    away_ = false;
    if (cut_) break_off();
}

// Returns true if the batch is away and none of its handlers is late: each has its own time limit.
// The timer then asks again when one may be late.
bool connection::is_on_time() noexcept {
    if (!away_) return false;
    const time_point now = loop_.context.turn_time();
    time_point due{};
    if (batch_->right.tell_if_late(now, due)) return false;
    set_deadline(std::min(due, saturating_add(now, loop_.options.timeouts.handler)));
    return true;
}

}  // namespace coppice::http
