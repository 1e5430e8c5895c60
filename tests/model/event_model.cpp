// The models of async_event and async_auto_event.
#include "sync_model.hpp"

#include <coppice/sync/internal/event_core.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;

constexpr const char* lock_file = "include/coppice/sync/internal/queue_lock.hpp";

// One thread sets; two wait, and one of them may be stopped.
template <bool Stops>
struct wakes_all : stop_test<wakes_all<Stops>, 3 + Stops> {
    event_core event{false};
    inplace_stop_source stop;
    blocked_wait<event_request> waiters[2];
    plain<int> data;

    void run(unsigned index) {
        if (index == 2) {
            data.write(1);
            require(event.set(), "was set already");
        } else if (index == 3) {
            stop.request_stop();
        } else {
            const auto token = index == 0 ? stop.get_token() : inplace_stop_token();
            if (waiters[index].run({&event}, token)) {
                require(data.read() == 1, "woke before the event was set");
            } else {
                require(index == 0 && Stops, "a wait ended without a stop");
            }
        }
    }
    void after() { require(event.is_set(), "the event was lost"); }
};

// Two threads set; the waiter sees what the one did that set it, and destroys the event if it is
// the only one.
struct destroying_waiter : stop_test<destroying_waiter, 2> {
    manual_lifetime<event_core> event;
    blocked_wait<event_request> waiter;
    plain<int> data;

    void before() { event.construct(false); }
    void run(unsigned index) {
        if (index == 0) {
            data.write(1);
            event.get().set();
        } else {
            require(waiter.run({&event.get()}), "a wait ended without a stop");
            require(data.read() == 1, "woke before the event was set");
            event.destroy();
        }
    }
};

// Each set() of an auto event that finds a waiter lets one go on.
template <bool Stops>
struct one_each : stop_test<one_each<Stops>, 3 + Stops> {
    auto_event_core event{true};
    inplace_stop_source stop;
    blocked_wait<auto_event_request> waiters[3];
    plain<int> turn;
    atomic<int> granted{0};

    void before() {
        turn.write(0);
        granted.store(0, relaxed);
    }
    void run(unsigned index) {
        if (index == 3) {
            stop.request_stop();
            return;
        }
        const auto token = index == 0 ? stop.get_token() : inplace_stop_token();
        if (waiters[index].run({&event}, token)) {
            turn.write(turn.read() + 1);
            granted.fetch_add(1, relaxed);
            event.set();
        } else {
            require(index == 0 && Stops, "a wait ended without a stop");
        }
    }
    void after() {
        require(turn.read() == granted.load(relaxed), "one set() let two waiters go on");
        require(event.try_wait(), "the set() was lost");
        require(!event.try_wait(), "a set() was made");
    }
};

// A set() that races with a reset() and a wait.
struct set_and_reset : stop_test<set_and_reset, 3> {
    event_core event{false};
    blocked_wait<event_request> waiter;

    void run(unsigned index) {
        if (index == 0) {
            event.set();
            event.set();
        } else if (index == 1) {
            event.reset();
            event.set();
        } else {
            require(waiter.run({&event}), "a wait ended without a stop");
        }
    }
    void after() { require(event.is_set(), "a set() was lost"); }
};

}  // namespace

int main() {
    model::report report("event");
    report.holds<wakes_all<false>>("all waiters wake, after the set");
    report.holds<wakes_all<true>>("a stop of one leaves the other", far);
    report.holds<set_and_reset>("no set() is lost to a reset() that came before it", {50'000});
    report.holds<destroying_waiter>("a waiter may destroy the event", {50'000});
    report.holds<one_each<false>>("each set() lets one waiter go on");
    report.holds<one_each<true>>("a stopped waiter takes no set()", far);
    report.dies_weakened<wakes_all<false>>(lock_file, "queue_lock.left");
    report.dies_weakened<destroying_waiter>(lock_file, "queue_lock.fast", {50'000});
    report.dies_weakened<one_each<false>>(lock_file, "queue_lock.fast");
    report.dies_planted<wakes_all<false>>("event.wake_one");
    report.dies_planted<one_each<false>>("auto_event.stay_set");
    report.dies_planted<one_each<true>>("auto_event.forget_set", far);
    return report.finish();
}
