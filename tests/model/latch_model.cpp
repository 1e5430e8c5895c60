// The model of async_latch: the last count wakes all waiters, and a waiter destroys it.
#include "sync_model.hpp"

#include <coppice/sync/internal/latch_core.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;

constexpr const char* lock_file = "include/coppice/sync/internal/queue_lock.hpp";

// Two threads count down; a third one waits, sees what both did, and destroys the latch.
struct destroying_waiter : stop_test<destroying_waiter, 3> {
    manual_lifetime<latch_core> latch;
    blocked_wait<latch_request> waiter;
    plain<int> data[2];

    void before() { latch.construct(std::size_t(2)); }
    void run(unsigned index) {
        if (index != 2) {
            data[index].write(1);
            latch.get().count_down(1);
            return;
        }
        require(waiter.run({&latch.get()}), "a wait ended without a stop");
        require(data[0].read() == 1 && data[1].read() == 1, "woke before all had counted");
        latch.destroy();
    }
};

// All arrive and wait; one of them is stopped, perhaps before it begins. The others go on.
struct arrivals : stop_test<arrivals, 4> {
    latch_core latch{3};
    inplace_stop_source stop;
    blocked_wait<latch_arrival> waiters[3];

    void run(unsigned index) {
        if (index == 3) {
            stop.request_stop();
            return;
        }
        const auto token = index == 0 ? stop.get_token() : inplace_stop_token();
        // As an operation does that is stopped before its first step.
        const bool granted = waiters[index].run({{&latch}}, token);
        require(granted || index == 0, "a wait ended without a stop");
    }
    void after() { require(latch.is_zero(), "an arrival was lost"); }
};

}  // namespace

int main() {
    model::report report("latch");
    report.holds<destroying_waiter>("a waiter sees all counts, and may destroy the latch", far);
    report.holds<arrivals>("a stopped arrival counts", far);
    report.dies_weakened<destroying_waiter>(lock_file, "queue_lock.fast");
    report.dies_weakened<destroying_waiter>(lock_file, "queue_lock.left");
    report.dies_planted<arrivals>("latch.stop_before_arrival");
    report.dies_planted<arrivals>("latch.forget_waiters");
    return report.finish();
}
