// The model of async_barrier: phases end when all have arrived, also with one that was stopped.
#include "sync_model.hpp"

#include <coppice/sync/internal/barrier_core.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;

constexpr const char* lock_file = "include/coppice/sync/internal/queue_lock.hpp";

// Three participants, two phases. Each sees what the others did before the phase.
struct phases : stop_test<phases, 3> {
    barrier_core barrier{3};
    blocked_wait<barrier_request> waiters[3];
    plain<int> done[3];

    void before() {
        for (auto& d : done) d.write(0);
    }
    void run(unsigned index) {
        for (int phase = 0; phase != 2; ++phase) {
            if (phase == 0) done[index].write(1);
            require(waiters[index].run({&barrier}), "a wait ended without a stop");
            require(waiters[index].result == std::uint64_t(phase), "ended another phase");
            for (auto& d : done) require(d.read() == 1, "went on before all had arrived");
        }
    }
};

// One participant is stopped, perhaps before it begins; another one drops.
struct stop_and_drop : stop_test<stop_and_drop, 4> {
    barrier_core barrier{3};
    inplace_stop_source stop;
    blocked_wait<barrier_request> waiters[2];

    void run(unsigned index) {
        if (index == 3) {
            stop.request_stop();
        } else if (index == 2) {
            barrier.arrive_now(true);
        } else {
            const auto token = index == 0 ? stop.get_token() : inplace_stop_token();
            const bool granted = waiters[index].run({&barrier}, token);
            require(granted || index == 0, "a wait ended without a stop");
        }
    }
    void after() {
        require(barrier.phase() == 1, "an arrival was lost");
        barrier.arrive_now(false);
        barrier.arrive_now(false);
        require(barrier.phase() == 2, "the participant did not drop");
    }
};

// One waits, the other one only arrives; the waiter destroys the barrier.
struct destroying_waiter : stop_test<destroying_waiter, 2> {
    manual_lifetime<barrier_core> barrier;
    blocked_wait<barrier_request> waiter;

    void before() { barrier.construct(std::size_t(2)); }
    void run(unsigned index) {
        if (index == 0) {
            barrier.get().arrive_now(true);
        } else {
            require(waiter.run({&barrier.get()}), "a wait ended without a stop");
            barrier.destroy();
        }
    }
};

}  // namespace

int main() {
    model::report report("barrier");
    report.holds<phases>("a phase ends when all have arrived");
    report.holds<stop_and_drop>("a stopped participant has arrived", far);
    report.holds<destroying_waiter>("a waiter may destroy the barrier", {50'000});
    report.dies_weakened<phases>(lock_file, "queue_lock.left");
    report.dies_planted<stop_and_drop>("barrier.stop_before_arrival");
    report.dies_planted<phases>("barrier.keep_phase");
    return report.finish();
}
