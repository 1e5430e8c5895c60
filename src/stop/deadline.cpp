// request_stop_after: a stop request that the process's timer makes; deadline.hpp.
#include <coppice/stop/internal/deadline.hpp>

#include <coppice/base/clock.hpp>
#include <coppice/base/saturating.hpp>
#include <coppice/stop/shared.hpp>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace coppice {

using namespace internal;

namespace internal {

void stop_deadline::deliver(process_timer_node& node) noexcept {
    static_cast<stop_deadline&>(node).state_->request(
        stop_cause{ETIMEDOUT, "the time of request_stop_after has passed"});
}

bool deadline_pending(const stop_deadline& deadline) noexcept {
    return deadline.pending();
}

void disarm(stop_deadline& deadline) noexcept {
    deadline.disarm();
}

void destroy(stop_deadline& deadline) noexcept {
    deadline.retire();
    delete &deadline;
}

}  // namespace internal

bool stop_source::request_stop_after(std::chrono::nanoseconds time) {
    if (state_ == nullptr || state_->stop_requested()) return false;
    stop_deadline* deadline = state_->deadline();
    if (deadline == nullptr) {
        auto first = std::make_unique<stop_deadline>(*state_);
        deadline = state_->install(*first);
        if (deadline == nullptr) deadline = first.release();
    }
    const std::int64_t now = monotonic_clock().now().time_since_epoch().count();
    const std::int64_t wait = std::max<std::int64_t>(time.count(), 0);
    deadline->arm(saturating_add(now, wait));
    return true;
}

}  // namespace coppice
