// timer_guard: looks at the timers of a pool while all its workers compute.
#pragma once
// A node of the process's timer (base/internal/process_timer.hpp), which is armed only if all
// workers are busy while a timer waits. It looks `patience` after the timer is due. If the workers
// have looked by then, it finds nothing, and stands by for the next timer. So it rings once in that
// time at most, whatever the pool does. pool_timers.hpp has the protocol.
//
// It looks also after the pool was told to end: the workers stop the timers then, but not before
// they have ended the work that a timer limits.

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/process_timer.hpp>
#include <coppice/pool/internal/parking.hpp>
#include <coppice/pool/internal/pool_timers.hpp>

#include <cstddef>
#include <mutex>
#include <system_error>

namespace coppice::internal {

// Threads: any, for every member. Lifetime: that of what it is constructed with. The pool calls
// retire() when its workers have ended.
class timer_guard final : process_timer_node {
public:
    timer_guard(pool_timers& timers, parking_lots& lots) noexcept
        : process_timer_node(&ring, in_child::is_forgotten), timers_(timers), lots_(lots) {
        outlive_caller();
    }
    using process_timer_node::retire;

    // Called by a thread that keeps the pool alive, and that has found all workers busy: a timer
    // may wait that is due at `tick`. If the system has no thread for the guard, the timer is late
    // until a worker looks.
    void back(pool_timers::tick_type tick) noexcept {
        if (tick > pool_timers::never - pool_timers::patience) return;  // never
        if (timers_.guards_later_than(tick + pool_timers::patience)) {
            set(tick + pool_timers::patience);
        }
    }

private:
    void set(pool_timers::tick_type tick) noexcept {
        const std::lock_guard lock(mutex_);
        if (!timers_.guards_later_than(tick)) return;
        try {
            if (arm(pool_timers::nanoseconds_of(tick))) timers_.set_guard(tick);
        } catch (const std::system_error&) {  // there is no thread: see above
        }
    }
    static void ring(process_timer_node& node) noexcept { static_cast<timer_guard&>(node).look(); }
    // Called on the thread of the process's timer.
    void look() noexcept {
        {
            const std::lock_guard lock(mutex_);
            timers_.begin_look();
        }
        const auto now = pool_timers::tick_at(monotonic_clock().now().time_since_epoch().count());
        item_chain due;
        // A worker that finds the wheel without them finds them here: it keeps the order of times.
        const auto put_without_notice = [this](item_chain& ended) noexcept {
            item_chain without = take_without_notice(ended);
            timers_.put_late(without);
        };
        for (std::size_t i = 0; i != timers_.count(); ++i) {
            if (timers_[i].next() > now) continue;
            timers_[i].take_due(now, wheel_user::other, due, put_without_notice);
        }
        if (timers_.are_late()) lots_.wake_one(0);
        tell(due);
        timers_.end_look();
        if (!timers_.are_unwatched()) return;
        const auto next = timers_.earliest_in_wheels();
        if (next <= now) {
            set(now);  // more are due; other nodes of the process's timer get their turn
        } else {
            back(next);
        }
    }

    // A stop callback may wait for another timer, so each is put as soon as its receiver was told.
    void tell(item_chain& due) noexcept {
        const notice_scope here(this);
        while (work_item* const item = due.pop_front()) {
            static_cast<pool_timer*>(item)->give_notice();
            item_chain told;
            told.push_back(item);
            put_late(told);
        }
    }
    void put_late(item_chain& ended) noexcept {
        if (ended.empty()) return;
        timers_.put_late(ended);
        lots_.wake_one(0);
    }

    pool_timers& timers_;
    parking_lots& lots_;
    std::mutex mutex_;  // for changes of the guard's tick
};

}  // namespace coppice::internal
