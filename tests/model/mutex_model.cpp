// The model of async_mutex: hand-over, waiters that leave, and the holder that destroys it.
#include "sync_model.hpp"

#include <coppice/sync/internal/mutex_core.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;

constexpr const char* lock_file = "include/coppice/sync/internal/queue_lock.hpp";

struct request : mutex_request {
    using result = int;
    int take() noexcept { return 1; }
    int nothing() noexcept { return 0; }
};

// Threads lock, change what the mutex guards, and unlock. Some of them are stopped.
template <int Threads, bool Stops>
struct exclusion : stop_test<exclusion<Threads, Stops>, Threads + (Stops ? 1 : 0)> {
    mutex_core mutex;
    inplace_stop_source stop;
    blocked_wait<request> waiters[Threads];
    plain<int> guarded;
    atomic<int> granted{0};

    void before() {
        guarded.write(0);
        granted.store(0, relaxed);
    }
    void run(unsigned index) {
        if (index == Threads) {
            stop.request_stop();
            return;
        }
        if (waiters[index].run({{&mutex}}, index == 0 ? stop.get_token() : inplace_stop_token())) {
            guarded.write(guarded.read() + 1);
            granted.fetch_add(1, relaxed);
            mutex.unlock();
        } else {
            require(index == 0 && Stops, "a wait ended without a stop");
        }
    }
    void after() {
        require(guarded.read() == granted.load(relaxed), "two holders at once");
        require(mutex.try_lock(), "the lock was lost");
        mutex.unlock();
    }
};

// The second holder destroys the mutex, while the first one may still be inside unlock().
struct destroying_holder : stop_test<destroying_holder, 2> {
    manual_lifetime<mutex_core> mutex;
    blocked_wait<request> waiter;

    void before() {
        mutex.construct();
        require(mutex.get().try_lock(), "the mutex was not free");
    }
    void run(unsigned index) {
        if (index == 0) {
            mutex.get().unlock();
        } else {
            require(waiter.run({{&mutex.get()}}), "a wait ended without a stop");
            mutex.get().unlock();
            mutex.destroy();
        }
    }
};

// try_lock() finds a free mutex free, also while a thread is inside the queue's lock.
struct try_lock_beside_stop : stop_test<try_lock_beside_stop, 3> {
    mutex_core mutex;
    inplace_stop_source stop;
    blocked_wait<request> waiter;

    void before() { require(mutex.try_lock(), "the mutex was not free"); }
    void run(unsigned index) {
        if (index == 0) {
            if (waiter.run({{&mutex}}, stop.get_token())) mutex.unlock();
        } else if (index == 1) {
            mutex.unlock();
            if (mutex.try_lock()) mutex.unlock();
        } else {
            stop.request_stop();
        }
    }
    void after() { require(mutex.try_lock(), "the lock was lost"), mutex.unlock(); }
};

}  // namespace

int main() {
    model::report report("mutex");
    report.holds<exclusion<2, false>>("one holder at a time");
    report.holds<exclusion<3, false>>("also of three");
    report.holds<exclusion<2, true>>("a waiter that is stopped loses no lock", far);
    report.holds<destroying_holder>("a holder may destroy the mutex", {50'000});
    report.holds<try_lock_beside_stop>("try_lock beside a stop loses no lock", {50'000});
    report.dies_weakened<exclusion<2, false>>(lock_file, "queue_lock.fast");
    report.dies_weakened<exclusion<3, false>>(lock_file, "queue_lock.left");
    report.dies_planted<exclusion<2, true>>("wait.withdraw_granted", far);
    report.dies_planted<destroying_holder>("mutex.touch_after_unlock", {50'000});
    return report.finish();
}
