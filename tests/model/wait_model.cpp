// The model of a wait: its begin, a stop, and a grant race for its end.
#include "sync_model.hpp"

#include <coppice/sync/internal/event_core.hpp>
#include <coppice/sync/internal/mutex_core.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;

struct lock_request : mutex_request {
    using result = int;
    int take() noexcept { return 1; }
    int nothing() noexcept { return 0; }
};

// A thread waits for a mutex; another one unlocks it, a third one stops the wait. The lock is
// either the waiter's or free.
template <bool Granter, bool Stopper>
struct one_wait : stop_test<one_wait<Granter, Stopper>, 1 + Granter + Stopper> {
    mutex_core mutex;
    inplace_stop_source stop;
    blocked_wait<lock_request> waiter;
    plain<int> data;  // guarded by the mutex
    bool held = false;

    void before() {
        require(mutex.try_lock(), "the mutex was not free");
        data.write(0);
        held = true;
    }
    void run(unsigned index) {
        if (index == 0) {
            if (waiter.run({{&mutex}}, stop.get_token())) {
                require(Granter && data.read() == 1, "got the lock from nobody");
                mutex.unlock();
            } else {
                require(Stopper, "ended without a reason");
            }
        } else if (index == 1 && Granter) {
            data.write(1);
            mutex.unlock();
        } else {
            stop.request_stop();
        }
    }
    void after() {
        require(Granter == mutex.try_lock(), "the lock was lost, or taken by a stopped wait");
        mutex.unlock();
    }
};

// Two waits; one of them is stopped. The other one gets what both waited for.
struct two_waits : stop_test<two_waits, 4> {
    auto_event_core event{false};
    inplace_stop_source stop;
    struct request : auto_event_request {};
    blocked_wait<request> waiters[2];
    plain<int> data;

    void run(unsigned index) {
        if (index == 0) {
            // Passes on what came though it was stopped.
            if (waiters[0].run({{&event}}, stop.get_token())) event.set();
        } else if (index == 1) {
            require(waiters[1].run({{&event}}), "ended without a reason");
            require(data.read() == 1, "was granted before it was set");
        } else if (index == 2) {
            data.write(1);
            event.set();
        } else {
            stop.request_stop();
        }
    }
};

}  // namespace

int main() {
    model::report report("wait");
    report.holds<one_wait<true, false>>("a grant ends a wait");
    report.holds<one_wait<false, true>>("a stop ends a wait, before and after it is linked", far);
    report.holds<one_wait<true, true>>("a grant or a stop ends a wait, not both", far);
    report.holds<two_waits>("what a stopped wait leaves goes to the next one", far);
    report.dies_planted<one_wait<false, true>>("wait.link_after_stop");
    report.dies_planted<one_wait<true, true>>("wait.withdraw_granted", far);
    return report.finish();
}
