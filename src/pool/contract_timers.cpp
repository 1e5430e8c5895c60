// The wheel, the alarm, and the end of a contract_pool's timers. See contract_timers.hpp.
#include <coppice/pool/internal/contract_timers.hpp>

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/caller_runs.hpp>

#include <system_error>

namespace coppice::internal {

contract_timers::contract_timers(contract_scheduler group) noexcept
    : group_(group), alarm_(*this), round_(*this) {}

// Enqueues timers that have ended, or runs them here if the group has ended. Touches no member:
// once the last timer is enqueued, the pool may be gone.
void contract_timers::enqueue(contract_scheduler group, item_chain& ended) noexcept {
    while (work_item* const item = ended.pop_front()) {
        group.enqueue(static_cast<contract_timer&>(*item));
    }
}

bool contract_timers::begin(contract_timer& timer) noexcept {
    if (!entry_.enter()) {  // until the end of arm()
        timer.stopped.write(true);
        caller_runs<contract_item>::run(timer);
        return false;
    }
    timer.shard = &wheel_;
    return true;
}

void contract_timers::arm(contract_timer& timer, std::int64_t when, std::int64_t now) noexcept {
    item_chain ended;
    timer.due = pool_timers::tick_of(when);
    switch (wheel_.arm(timer, pool_timers::tick_at(now), wheel_user::other)) {
        case timer_shard::armed::waits:
            break;  // it may have ended, and be gone
        case timer_shard::armed::earliest:
            watch(ended);
            break;
        case timer_shard::armed::ended:
            if (!timer.stopped.read()) timer.give_notice();
            ended.push_back(&timer);
            break;
    }
    // enqueue() may run the item, which must not happen inside the gate.
    const contract_scheduler group = group_;
    entry_.leave();
    enqueue(group, ended);
}

void contract_timers::stop(contract_timer& timer) noexcept {
    // The worker that closed the gate stops all timers. While this runs, the timer's item waits for
    // it, so the pool is there.
    if (!entry_.enter()) return;
    item_chain ended;
    if (wheel_.cancel(timer, wheel_user::other)) ended.push_back(&timer);
    const contract_scheduler group = group_;
    entry_.leave();
    enqueue(group, ended);
}

void contract_timers::stop_all() noexcept {
    entry_.close();
    entry_.wait();
    item_chain all;
    item_chain ended;
    take_late(ended);
    wheel_.take_all(wheel_user::other, all);
    tell(all, ended);
    enqueue(group_, ended);
}

void contract_timers::end_watch() noexcept {
    alarm_.retire();
    entry_.wait();
}

// Called with the mutex. Sets the alarm, unless it is set that early already. Errors:
// std::system_error if the system has no thread for the process's timer.
void contract_timers::set_alarm(std::uint64_t tick) {
    if (tick >= alarm_at_) return;
    alarm_.arm(pool_timers::nanoseconds_of(tick));
    alarm_at_ = tick;
}

// Has the earliest tick watched, unless it is already. If the system has no thread for the
// process's timer, no timer of the wheel can be served, so all are stopped.
void contract_timers::watch(item_chain& ended) noexcept {
    try {
        const std::lock_guard lock(watch_mutex_);
        const std::uint64_t next = wheel_.next();
        if (watched_ == in_round) {
            if (next != timer_shard::never) set_alarm(next + patience);
        } else if (next < watched_) {
            alarm_.arm(pool_timers::nanoseconds_of(next));
            watched_ = alarm_at_ = next;
        }
    } catch (const std::system_error&) {
        wheel_.take_all(wheel_user::other, ended);
    }
}

// Called when the alarm rings. Says what the caller must do.
contract_timers::task contract_timers::begin_round(std::uint64_t now) noexcept {
    const std::lock_guard lock(watch_mutex_);
    alarm_at_ = timer_shard::never;
    if (watched_ == in_round) return task::tell_late;
    if (watched_ > now) {  // the round was in time, or a later time was set while this began
        if (watched_ != timer_shard::never) set_alarm(watched_);
        return task::nothing;
    }
    watched_ = in_round;
    set_alarm(now + patience);
    return task::enqueue_round;
}

// Called on the thread of the process's timer, when a round may be late.
void contract_timers::tell_late(std::uint64_t now) noexcept {
    item_chain due;
    item_chain told;
    wheel_.take_due(now, wheel_user::other, due);
    tell(due, told);
    const std::lock_guard lock(watch_mutex_);
    const bool some = !told.empty();
    late_.append(static_cast<item_chain&&>(told));
    if (watched_ != in_round) {
        // The round has ended while this ran, and has not seen these timers. Another one begins.
        if (some && watched_ > now) watched_ = now;
        if (watched_ != timer_shard::never) set_alarm(watched_);
        return;
    }
    const std::uint64_t next = wheel_.next();
    if (next <= now) {
        set_alarm(now);  // more are due; other nodes of the process's timer get their turn
    } else if (next != timer_shard::never) {
        set_alarm(next + patience);
    }
}

// Called on the thread of the process's timer.
void contract_timers::alarm::ring(process_timer_node& node) noexcept {
    contract_timers& timers = static_cast<alarm&>(node).timers;
    if (!timers.entry_.enter()) return;  // the workers stop the timers
    const auto now = pool_timers::tick_at(monotonic_clock().now().time_since_epoch().count());
    switch (timers.begin_round(now)) {
        case task::nothing:
            break;
        case task::enqueue_round:
            // If the group has ended, the workers stop the timers.
            (void)timers.group_.enqueue_if_open(timers.round_);
            break;
        case task::tell_late:
            timers.tell_late(now);
            break;
    }
    timers.entry_.leave();
}

void contract_timers::take_late(item_chain& ended) noexcept {
    const std::lock_guard lock(watch_mutex_);
    ended.append(static_cast<item_chain&&>(late_));
}

// Gives the notices of timers that have ended, and moves them to `told`.
void contract_timers::tell(item_chain& due, item_chain& told) noexcept {
    while (work_item* const item = due.pop_front()) {
        static_cast<contract_timer*>(item)->give_notice();
        told.push_back(item);
    }
}

// Called by a thread that executes the group.
void contract_timers::round::serve(contract_item* item) noexcept {
    contract_timers& timers = static_cast<round*>(item)->timers;
    const auto now = pool_timers::tick_at(monotonic_clock().now().time_since_epoch().count());
    item_chain due;
    item_chain ended;
    timers.take_late(ended);
    timers.wheel_.take_due(now, wheel_user::other, due);
    tell(due, ended);
    enqueue(timers.group_, ended);
    if (timers.wheel_.next() <= now) {
        // More timers are due. Contracts get their turn before the next round.
        (void)timers.group_.enqueue_if_open(timers.round_);
        return;
    }
    {
        const std::lock_guard lock(timers.watch_mutex_);
        ended.append(static_cast<item_chain&&>(timers.late_));
        timers.watched_ = timer_shard::never;
    }
    timers.watch(ended);
    enqueue(timers.group_, ended);
}

}  // namespace coppice::internal
