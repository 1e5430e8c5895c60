// The model of async_condition: no notification is lost, and the lock is held after each wait.
#include "sync_model.hpp"

#include <coppice/sync/internal/condition_core.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;

constexpr const char* lock_file = "include/coppice/sync/internal/queue_lock.hpp";

struct lock_request : mutex_request {
    using result = int;
    int take() noexcept { return 1; }
    int nothing() noexcept { return 0; }
};

// Waiters wait until something is there, and take it. The notifier makes it, with or without the
// lock held while it notifies. One waiter may be stopped.
template <int Waiters, bool Stops, bool Inside>
struct take_what_comes
    : stop_test<take_what_comes<Waiters, Stops, Inside>, Waiters + 1 + (Stops ? 1 : 0)> {
    mutex_core mutex;
    condition_core condition;
    inplace_stop_source stop;
    blocked_wait<lock_request> locks[Waiters + 1];
    blocked_wait<condition_request> waits[Waiters];
    plain<int> things;  // guarded by the mutex
    plain<int> taken;

    void before() {
        things.write(0);
        taken.write(0);
    }
    void lock(unsigned index) {
        require(locks[index].run({{&mutex}}), "a wait ended without a stop");
    }
    void run(unsigned index) {
        if (index == Waiters + 1) {
            stop.request_stop();
            return;
        }
        if (index == Waiters) {
            for (int i = 0; i != Waiters; ++i) {
                lock(index);
                things.write(things.read() + 1);
                if (Inside) condition.notify_one();
                mutex.unlock();
                if (!Inside) condition.notify_one();
            }
            return;
        }
        const auto token = index == 0 && Stops ? stop.get_token() : inplace_stop_token();
        lock(index);
        while (things.read() == 0) {
            if (!waits[index].run({&condition, &mutex}, token)) {
                require(index == 0 && Stops, "a wait ended without a stop");
                things.write(things.read());  // the lock is held: no race
                mutex.unlock();
                return;
            }
        }
        things.write(things.read() - 1);
        taken.write(taken.read() + 1);
        mutex.unlock();
    }
    void after() {
        require(mutex.try_lock(), "the lock was lost");
        require(things.read() + taken.read() == Waiters, "something was lost");
        mutex.unlock();
    }
};

// The waiter destroys the condition and the mutex when it is notified, while the notifier may be
// inside notify_one() and a third thread unlocks the mutex.
struct destroying_waiter : stop_test<destroying_waiter, 2> {
    manual_lifetime<mutex_core> mutex;
    manual_lifetime<condition_core> condition;
    blocked_wait<lock_request> lock;
    blocked_wait<condition_request> wait;
    plain<int> ready;

    void before() {
        mutex.construct();
        condition.construct();
        ready.write(0);
        require(mutex.get().try_lock(), "the mutex was not free");  // the waiter's
    }
    void run(unsigned index) {
        if (index == 0) {
            while (ready.read() == 0) {
                require(wait.run({&condition.get(), &mutex.get()}), "a wait ended without a stop");
            }
            mutex.get().unlock();
            condition.destroy();
            mutex.destroy();
            return;
        }
        require(lock.run({{&mutex.get()}}), "a wait ended without a stop");
        ready.write(1);
        condition.get().notify_one();
        mutex.get().unlock();
    }
};

}  // namespace

int main() {
    model::report report("condition");
    report.holds<take_what_comes<1, false, true>>("a waiter is notified");
    report.holds<take_what_comes<1, false, false>>("also by a thread that has unlocked");
    report.holds<take_what_comes<2, false, false>>("two waiters are notified", {100'000});
    report.holds<take_what_comes<1, true, false>>("the lock is held after a stop", far);
    report.holds<take_what_comes<2, true, true>>("a stopped waiter takes no notification",
                                                 {100'000});
    report.holds<destroying_waiter>("a notified waiter may destroy both", {50'000});
    report.dies_weakened<take_what_comes<2, false, false>>(lock_file, "queue_lock.left");
    report.dies_planted<take_what_comes<1, false, false>>("condition.notify_without_looking");
    report.dies_planted<take_what_comes<1, true, false>>("condition.return_unlocked", far);
    return report.finish();
}
