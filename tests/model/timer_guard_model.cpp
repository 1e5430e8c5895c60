// The model of the guard of a pool's timers: while all workers compute, each receiver is told.
#include "exec_model.hpp"

#include <coppice/base/internal/biased_lock.hpp>
#include <coppice/pool/internal/parking.hpp>
#include <coppice/pool/internal/pool_timers.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;

constexpr const char* timers_file = "include/coppice/pool/internal/pool_timers.hpp";

// A worker, the guard, and a thread that adds an item, which computes until the receiver of a timer
// is told. If the worker looks before it runs the item, it tells the receiver itself. Otherwise
// only the guard can; a timer that goes unnoticed is a deadlock.
//   armed_by_the_item  the item arms the timer, in the worker's wheel
//   promised           the thread arms it; the worker may have promised to watch it, and is woken
//                      for the item
//   lifted             the same, while the guard is set for an earlier time, which comes: it may
//                      find the promise, and not set itself again
//   ended              there is no such item: the pool ends while the guard looks, and the worker
//                      stops the timer or completes it before it ends
enum class course { armed_by_the_item, promised, lifted, ended };
template <course Course>
struct guarded : model::test<guarded<Course>, 3> {
    static constexpr std::uint64_t due = 100;
    static constexpr std::uint64_t early = 20;
    static constexpr unsigned timer_item = 1;
    static constexpr unsigned busy_item = 2;
    static constexpr std::uint32_t items = Course == course::ended ? 1 : 2;

    struct timer : pool_timer {
        explicit timer(guarded& t) noexcept : pool_timer(nullptr, any_node), test(t) {
            tell = &notice;
        }
        static void notice(pool_timer& self) noexcept { static_cast<timer&>(self).test.be_told(); }
        guarded& test;
    };
    parking_lots lots{1};
    pool_timers timers{1};
    timer the_timer{*this};
    plain<int> notice{0};  // written by the thread that tells the receiver; read by the item
    atomic<unsigned> ready{0};
    atomic<std::uint32_t> told{0};
    atomic<std::uint32_t> ended{0};  // items
    // The node of the process's timer, and its mutex.
    biased_lock lock{biased_lock::initially::shared};
    atomic<std::uint64_t> alarm{pool_timers::never};
    atomic<std::uint32_t> bell{0};  // the alarm was set, or all has ended
    atomic<bool> closed{false};

    void before() {
        if (Course == course::ended) {
            arm(timers[0], wheel_user::owner);
            alarm.store(due, relaxed);
            timers.set_guard(due);
        }
        if (Course != course::lifted) return;
        alarm.store(early, relaxed);
        timers.set_guard(early);
    }
    void pass_time(std::uint64_t to) { this->futexes.pass_time(pool_timers::nanoseconds_of(to)); }
    std::uint64_t now() const { return pool_timers::tick_at(this->futexes.time); }

    void be_told() {
        model::require(notice.read() == 0, "told twice");
        notice.write(1);
        told.store(1, relaxed);  // relaxed: late_ and the queue order the notice
    }
    void add(unsigned item) {
        ready.fetch_or(item, release);
        lots.wake_one(0);
    }
    unsigned take() {
        unsigned all = ready.load(acquire);
        while (all != 0) {
            const unsigned one = all & (0 - all);
            if (ready.compare_exchange_weak(all, all - one, acq_rel, acquire)) return one;
        }
        return 0;
    }
    // What timer_guard.hpp does.
    void back(std::uint64_t tick) {
        if (planted("timer_guard.unset")) return;
        const std::uint64_t later = tick + pool_timers::patience;
        if (timers.guards_later_than(later)) set(later);
    }
    void set(std::uint64_t tick) {
        lock.lock();
        if (timers.guards_later_than(tick)) {
            alarm.store(tick, relaxed);
            timers.set_guard(tick);
            bell.fetch_add(1, release);
            futex_wake_all(bell);
        }
        lock.unlock();
    }
    void look() {
        lock.lock();
        timers.begin_look();
        lock.unlock();
        item_chain found;
        for (std::size_t i = 0; i != timers.count(); ++i) {
            if (timers[i].next() <= now()) timers[i].take_due(now(), wheel_user::other, found);
        }
        while (work_item* const item = found.pop_front()) {
            static_cast<pool_timer*>(item)->give_notice();
            item_chain late;
            late.push_back(item);
            timers.put_late(late);
            // The checker switches threads here, which it does not do before a fence.
            (void)told.load(relaxed);
            lots.wake_one(0);
        }
        timers.end_look();
        if (!timers.are_unwatched() || planted("timer_guard.stay_lifted")) return;
        const std::uint64_t next = timers.earliest_in_wheels();
        if (next <= now()) {
            set(now());
        } else {
            back(next);
        }
    }
    void guard() {
        while (ended.load(relaxed) != items) {
            const std::uint32_t rung = bell.load(acquire);
            if (ended.load(relaxed) == items) return;
            lock.lock();
            const std::uint64_t tick = alarm.load(relaxed);
            const bool rings = tick <= now();
            if (rings) alarm.store(pool_timers::never, relaxed);
            lock.unlock();
            if (rings) {
                look();
            } else if (tick == pool_timers::never) {
                futex_wait(bell, rung);
            } else {
                (void)futex_wait_until(bell, rung, pool_timers::nanoseconds_of(tick));
            }
        }
    }
    // What pool_members.hpp and the workers do.
    void watch(std::uint64_t tick) {
        if (lots.wake_one_fenced(0) == parking_wake::busy) back(tick);
    }
    void arm(timer_shard& shard, wheel_user user) {
        the_timer.shard = &shard;
        the_timer.due = due;
        const timer_shard::armed how = timers.arm(the_timer, now(), user);
        if (how == timer_shard::armed::ended) {
            the_timer.give_notice();
            add(timer_item);
        } else if (how == timer_shard::armed::earliest && timers.must_wake(due)) {
            watch(due);
        }
    }
    void take_timers(item_chain& out) {
        for (std::size_t i = 0; i != timers.count(); ++i) {
            const wheel_user user = i == 0 ? wheel_user::owner : wheel_user::other;
            if (closed.load(relaxed)) {
                if (timers[i].next() != pool_timers::never) timers[i].take_all(user, out);
            } else if (timers[i].next() <= now()) {
                timers[i].take_due(now(), user, out);
            }
        }
        timers.take_late(out);
    }
    void run_timers(item_chain& out) {
        while (work_item* const item = out.pop_front()) {
            static_cast<pool_timer*>(item)->give_notice();
            ready.fetch_or(timer_item, release);
            lots.wake_one(0);
        }
    }
    void run(unsigned item) {
        if (item == timer_item) {
            model::require(notice.read() == 1, "completed before it was told");
        } else {
            if (Course == course::armed_by_the_item) arm(timers[0], wheel_user::owner);
            while (told.load(relaxed) == 0) thread_yield();
        }
        if (ended.fetch_add(1, acq_rel) + 1 != items) return;
        lots.wake_all();
        bell.fetch_add(1, release);
        futex_wake_all(bell);
    }
    bool still_has_timers() { return !planted("timer_guard.end_early") && timers.has_any_for(0); }
    void worker() {
        parking& lot = lots[0];
        for (;;) {
            item_chain out;
            for (;;) {
                take_timers(out);
                run_timers(out);
                const unsigned item = take();
                if (item == 0) break;
                run(item);
            }
            lot.begin_search();
            unsigned found = 0;
            for (;;) {
                take_timers(out);
                if (!out.empty() || (found = take()) != 0) break;
                lot.announce_sleep();
                if (ready.load(relaxed) != 0) {
                    lot.cancel_sleep();
                    continue;
                }
                if (Course == course::ended && closed.load(acquire)) {
                    lot.cancel_sleep();
                    (void)lot.end_search();
                    take_timers(out);
                    run_timers(out);
                    if (ready.load(relaxed) == 0 && !still_has_timers()) return;
                    thread_yield();
                    lot.begin_search();
                    continue;
                }
                if (Course != course::ended && ended.load(relaxed) == items) return;
                const std::uint64_t promised = timers.promise();
                if (promised == pool_timers::never) {
                    lot.sleep();
                } else {
                    lot.sleep_or_wake_at(pool_timers::nanoseconds_of(promised));
                    timers.take_back(promised);
                }
            }
            if (lot.end_search()) {
                if (timers.are_unwatched()) {
                    watch(timers.earliest_in_wheels());
                } else if (ready.load(relaxed) != 0) {
                    lots.wake_one(0);
                }
            }
            run_timers(out);
            if (found != 0) run(found);
        }
    }
    void thread(unsigned index) {
        if (index == 1) return guard();
        if (index == 2) return worker();
        if (Course == course::ended) return end();
        if (Course != course::armed_by_the_item) arm(timers.outside(), wheel_user::other);
        if (Course == course::lifted) pass_time(early);
        add(busy_item);
        pass_time(due);
        pass_time(due + pool_timers::patience);
    }
    void end() {
        pass_time(due);
        closed.store(true, release);
        lots.wake_all();
    }
    void after() {
        model::require(ended.load(relaxed) == items, "an item was lost");
        model::require(!timers.are_late(), "a timer was left behind");
    }
};

// Two workers of a pool that was told to end. The notice of one timer waits for the other timer,
// which completes on the other worker; if that has ended, this is a deadlock.
struct ended_by_two : model::test<ended_by_two, 2> {
    static constexpr std::uint64_t due = 100;
    static constexpr unsigned plain_item = 1;
    static constexpr unsigned told_item = 2;

    struct timer : pool_timer {
        explicit timer(ended_by_two& t) noexcept : pool_timer(nullptr, any_node), test(t) {}
        static void notice(pool_timer& self) noexcept {
            ended_by_two& test = static_cast<timer&>(self).test;
            while (test.completed.load(acquire) == 0) thread_yield();
        }
        ended_by_two& test;
    };
    pool_timers timers{2};
    timer without{*this};
    timer with{*this};
    atomic<unsigned> ready{0};
    atomic<unsigned> completed{0};
    atomic<unsigned> ended{0};

    void before() {
        with.tell = &timer::notice;
        for (timer* const each : {&without, &with}) {
            each->shard = &timers.outside();
            each->due = due;
            (void)timers.arm(*each, 0, wheel_user::other);
        }
    }
    // What take_timers() and run_timers() do.
    void serve(unsigned index) {
        item_chain found;
        timers[index].begin_taking();
        if (timers.outside().next() != pool_timers::never) {
            timers.outside().take_all(wheel_user::other, found);
        }
        timers.take_late(found);
        item_chain first = take_without_notice(found);
        while (first.pop_front() != nullptr) ready.fetch_or(plain_item, release);
        while (work_item* const item = found.pop_front()) {
            static_cast<pool_timer*>(item)->give_notice();
            ready.fetch_or(told_item, release);
        }
        timers[index].end_taking();
    }
    void run_ready() {
        const unsigned items = ready.exchange(0, acq_rel);
        if (items & plain_item) completed.store(1, release);
        if (items & plain_item) ended.fetch_add(1, relaxed);
        if (items & told_item) ended.fetch_add(1, relaxed);
    }
    void thread(unsigned index) {
        for (;;) {
            serve(index);
            if (ready.load(relaxed) == 0 && !timers.has_any_for(index)) return;
            run_ready();
            thread_yield();
        }
    }
    void after() { model::require(ended.load(relaxed) == 2, "a timer was lost"); }
};

using by_item = guarded<course::armed_by_the_item>;
using promised = guarded<course::promised>;
using lifted = guarded<course::lifted>;
using at_the_end = guarded<course::ended>;

}  // namespace

int main() {
    model::report report("timer_guard");
    report.holds<by_item>("a worker that arms a timer and computes is backed", {200'000});
    report.holds<promised>("so is one that has promised to watch, and computes", {200'000});
    report.holds<lifted>("so is one that promises while the guard looks", {500'000});
    report.holds<at_the_end>("no timer is lost if the pool ends while it looks", {200'000});
    report.holds<ended_by_two>("no worker ends before a timer for which a notice waits", {200'000});
    report.dies_planted<by_item>("timer_guard.unset", {200'000});
    report.dies_planted<lifted>("timer_guard.stay_lifted", {500'000});
    report.dies_planted<at_the_end>("timer_guard.end_early", {200'000});
    report.dies_planted<ended_by_two>("pool_timers.take_unseen", {200'000});
    report.dies_weakened<ended_by_two>(timers_file, "pool_timers.taken", {500'000});
    report.dies_weakened<by_item>(timers_file, "pool_timers.late", {500'000});
    report.dies_weakened<at_the_end>(timers_file, "pool_timers.looked", {500'000});
    report.dies_weakened<lifted>(timers_file, "pool_timers.watch", {1'000'000});
    return report.finish();
}
