// The wheel, the alarm, and the end of a contract_pool's timers. See contract_timers.hpp.
#include <coppice/pool/internal/contract_timers.hpp>

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/caller_runs.hpp>
#include <coppice/base/internal/futex.hpp>

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <utility>

namespace coppice::internal {

namespace {

// Waits for what other threads do inside the gate: a callback of a user may take any time. The
// first waits only yield. Later ones sleep, longer and longer, for a millisecond at most.
class patient_wait {
public:
    void once() noexcept {
        if (yields_ != 0) {
            --yields_;
            thread_yield();
            return;
        }
        const atomic<std::uint32_t> nobody_wakes{0};
        const std::int64_t now = monotonic_clock().now().time_since_epoch().count();
        (void)futex_wait_until(nobody_wakes, std::uint32_t{0}, now + nanoseconds_);
        nanoseconds_ = std::min(2 * nanoseconds_, longest);
    }
    // Called when there was something to do.
    void begin_again() noexcept { *this = patient_wait(); }

private:
    static constexpr std::int64_t longest = 1'000'000;
    unsigned yields_ = 64;
    std::int64_t nanoseconds_ = 16'000;
};

}  // namespace

contract_timers::contract_timers(contract_scheduler group) noexcept
    : group_(group), alarm_(*this), round_(*this) {}

// Enqueues timers that have ended, each after its notice, if it wants one. Those that the group
// rejects, because it has ended, are added to `rejected`. A notice may wait for one of them, so
// they are in late_ meanwhile, from which a worker that ends takes them. The caller keeps the pool
// alive.
void contract_timers::enqueue(item_chain& ended, item_chain& rejected) noexcept {
    const auto enqueue_one = [this, &rejected](work_item* item) noexcept {
        if (!group_.enqueue_if_open(static_cast<contract_timer&>(*item))) rejected.push_back(item);
    };
    item_chain without = take_without_notice(ended);
    while (work_item* const item = without.pop_front()) enqueue_one(item);
    bool leaves_late = false;
    const notice_scope here(this);
    while (work_item* const item = ended.pop_front()) {
        leaves_late = leaves_late || !rejected.empty();
        put_late(rejected);
        static_cast<contract_timer*>(item)->give_notice();
        enqueue_one(item);
    }
    if (leaves_late) take_late(rejected);
}

// Runs timers that the group has rejected. Touches no member: the pool may be gone.
void contract_timers::run_here(item_chain& rejected) noexcept {
    while (work_item* const item = rejected.pop_front()) {
        caller_runs<contract_item>::run(static_cast<contract_timer&>(*item));
    }
}

// Called inside the gate, which it leaves: enqueues timers that have ended, or runs them here.
void contract_timers::enqueue_and_leave(item_chain& ended) noexcept {
    item_chain rejected;
    item_chain deregistered;
    enqueue(ended, rejected);
    while (work_item* const item = rejected.pop_front()) {
        contract_timer& timer = static_cast<contract_timer&>(*item);
        timer.deregister(timer);
        deregistered.push_back(item);
    }
    entry_.leave();
    run_here(deregistered);
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
            if (timer.stopped.read()) timer.tell = nullptr;
            ended.push_back(&timer);
            break;
    }
    enqueue_and_leave(ended);
}

void contract_timers::stop(contract_timer& timer) noexcept {
    // The worker that closed the gate stops all timers. While this runs, the timer's item waits for
    // it on a thread that keeps the pool alive: on a worker, or inside the gate.
    if (!entry_.enter()) return;
    item_chain ended;
    if (wheel_.cancel(timer, wheel_user::other)) {
        timer.tell = nullptr;
        ended.push_back(&timer);
    }
    enqueue_and_leave(ended);
}

// What a timer's item or a notice runs may wait for another timer, which another worker that ends
// takes meanwhile. So may a stop callback that a thread runs inside the gate: this goes on until no
// thread is inside.
void contract_timers::stop_all() noexcept {
    entry_.close();
    patient_wait wait;
    for (;;) {
        const bool is_last = entry_.is_quiet();
        if (work_item* const item = take_stopped()) {
            serve_stopped(static_cast<contract_timer&>(*item));
            wait.begin_again();
        } else if (is_last) {
            return;
        } else {
            wait.once();
        }
    }
}

// Returns a timer that has ended; of those that want no notice, if there is one. nullptr if there
// is none. Under the mutex, so that no worker ends while another one has timers in its hand.
work_item* contract_timers::take_stopped() noexcept {
    const std::lock_guard lock(watch_mutex_);
    item_chain stopped;
    wheel_.take_all(wheel_user::other, stopped);
    late_.append(take_without_notice(stopped));
    untold_.append(static_cast<item_chain&&>(stopped));
    return late_.empty() ? untold_.pop_front() : late_.pop_front();
}

void contract_timers::serve_stopped(contract_timer& timer) noexcept {
    item_chain told;
    told.push_back(&timer);
    if (timer.wants_notice()) {
        {
            const notice_scope here(this);
            timer.give_notice();
        }
        leave_late(told);
    } else {
        run_here(told);
    }
}

void contract_timers::end_watch() noexcept {
    alarm_.retire();
    entry_.wait();
}

// Called with the mutex. Sets the alarm, unless it is set that early already. Returns false if the
// process's timer has ended. Errors: std::system_error if the system has no thread for it.
bool contract_timers::set_alarm(std::uint64_t tick) {
    if (tick >= alarm_at_) return true;
    if (!alarm_.arm(pool_timers::nanoseconds_of(tick))) return false;
    alarm_at_ = tick;
    return true;
}

// Has the earliest tick watched, unless it is already. Without the process's timer no timer of the
// wheel can be served, so all are stopped.
void contract_timers::watch(item_chain& ended) noexcept {
    if (!try_watch()) wheel_.take_all(wheel_user::other, ended);
}

// Returns false if the system has no thread for the process's timer, or if that timer has ended.
bool contract_timers::try_watch() noexcept {
    try {
        const std::lock_guard lock(watch_mutex_);
        const std::uint64_t next = wheel_.next();
        if (watched_ == in_round) return next == timer_shard::never || set_alarm(next + patience);
        if (next >= watched_) return true;
        if (!alarm_.arm(pool_timers::nanoseconds_of(next))) return false;
        watched_ = alarm_at_ = next;
        return true;
    } catch (const std::system_error&) {
        return false;
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
    wheel_.take_due(now, wheel_user::other, due);
    item_chain without = take_without_notice(due);
    put_late(without);
    {
        const notice_scope here(this);
        while (work_item* const item = due.pop_front()) {
            static_cast<contract_timer*>(item)->give_notice();
            item_chain told;
            told.push_back(item);
            put_late(told);
        }
    }
    const std::lock_guard lock(watch_mutex_);
    if (watched_ != in_round) {  // the round has ended while this ran
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

// Leaves timers that have ended to a thread that calls run_late() or stop_all() afterwards.
void contract_timers::leave_late(item_chain& ended) noexcept {
    const std::lock_guard lock(watch_mutex_);
    late_.append(static_cast<item_chain&&>(ended));
}

// Runs timers that have ended, one by one: an item may wait for another one, which a worker that
// ends takes meanwhile. The caller keeps the pool alive.
void contract_timers::run_late() noexcept {
    for (;;) {
        item_chain next;
        {
            const std::lock_guard lock(watch_mutex_);
            work_item* const item = late_.pop_front();
            if (item == nullptr) return;
            next.push_back(item);
        }
        run_here(next);
    }
}

void contract_timers::run_rejected(item_chain& rejected) noexcept {
    if (rejected.empty()) return;
    leave_late(rejected);
    run_late();
}

// Leaves timers that have ended to the round. If the round has ended meanwhile, another one begins.
void contract_timers::put_late(item_chain& ended) noexcept {
    if (ended.empty()) return;
    bool begins = false;
    {
        const std::lock_guard lock(watch_mutex_);
        late_.append(static_cast<item_chain&&>(ended));
        begins = std::exchange(watched_, in_round) != in_round;
    }
    // If the group has ended, the workers take them.
    if (begins) (void)group_.enqueue_if_open(round_);
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

// Called by a thread that executes the group.
void contract_timers::round::serve(contract_item* item) noexcept {
    contract_timers& timers = static_cast<round*>(item)->timers;
    // If the gate is closed, the workers that end stop all timers. What this call took out of their
    // reach could be what an item waits for.
    if (!timers.entry_.enter()) return;  // from here on no worker ends
    const auto now = pool_timers::tick_at(monotonic_clock().now().time_since_epoch().count());
    item_chain due;
    item_chain rejected;
    timers.wheel_.take_due(now, wheel_user::other, due);
    item_chain ended = take_without_notice(due);
    timers.take_late(ended);
    timers.enqueue(ended, rejected);
    if (timers.wheel_.next() <= now) {
        // More timers are due. Contracts get their turn before the next round.
        (void)timers.group_.enqueue_if_open(timers.round_);
    } else {
        {
            const std::lock_guard lock(timers.watch_mutex_);
            due.append(static_cast<item_chain&&>(timers.late_));
            timers.watched_ = timer_shard::never;
        }
        timers.watch(due);
    }
    timers.enqueue(due, rejected);
    timers.run_rejected(rejected);
    timers.entry_.leave();
}

}  // namespace coppice::internal
