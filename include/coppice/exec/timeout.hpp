// timeout: limits the time of a sender, then stops it and sends std::errc::timed_out.
#pragma once
// The sender and a timer run concurrently. The sender's environment answers get_deadline with the
// end of the limit, or with the receiver's deadline if that is earlier.
//
// Scheduler of the timer, first match: the environment's timed scheduler, if it is certain to have
// timers; the timed scheduler that the sender's attributes name, which for an operation of an
// io::context is that context's; the timed scheduler that the awaiting task or a task above it was
// given; the awaiting task's own scheduler, if that has timers.
//
// Order. The sender is started first, whatever the limit. A sender that completes inside its start
// needs no timer, and is in time even if the limit is 0 or less. The timer is started next. If the
// sender's start computes or blocks for a while, the end is later than the deadline by that time.
//
// A stop that the sender sends by itself is passed on. A sender that asked for the deadline and
// stops after it has timed out. A timer that ends with its pool or loop stops the sender too, which
// would have no limit otherwise; the timeout is then stopped, and does not send timed_out. Source:
// ours.

#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/timeout_sender.hpp>

namespace coppice::execution {

// Stops sndr after `limit` and then sends std::errc::timed_out as an std::error_code. It still
// waits for sndr, and drops what sndr sends after the limit. What sndr sends earlier is passed on,
// including a stop of its own; if the limit is 0 or less, that is what sndr sends inside its start.
// Cost: no allocation, and no timer for a sender that completes inside its start. Units: any
// <chrono> duration.
struct timeout_t {
    template <sender Sndr>
    constexpr auto operator()(Sndr&& sndr, time_span limit) const {
        return internal::timeout_sender<std::decay_t<Sndr>>(limit, static_cast<Sndr&&>(sndr));
    }
    constexpr auto operator()(time_span limit) const noexcept {
        return execution::bind_adaptor(*this, limit);
    }
};
inline constexpr timeout_t timeout{};

}  // namespace coppice::execution
