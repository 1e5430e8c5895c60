// The model of async_once: one run at a time, its outcome for all, and a stop that passes it on.
#include "sync_model.hpp"

#include <coppice/sync/internal/once_core.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;

constexpr const char* lock_file = "include/coppice/sync/internal/queue_lock.hpp";

enum class first_run { succeeds, fails, is_stopped };

// Threads want the value. The first one that runs ends as the model says; the next one makes it.
template <first_run First, bool Stops>
struct gets : stop_test<gets<First, Stops>, 3 + (Stops ? 1 : 0)> {
    once_core once;
    inplace_stop_source stop;
    blocked_wait<once_request> waiters[3];
    plain<int> runs;   // ordered by the turns
    plain<int> value;  // 0 until it is made
    atomic<int> made{0};

    void before() {
        runs.write(0);
        value.write(0);
        made.store(0, relaxed);
    }
    void run(unsigned index) {
        if (index == 3) {
            stop.request_stop();
            return;
        }
        const auto token = index == 0 && Stops ? stop.get_token() : inplace_stop_token();
        if (!waiters[index].run({&once}, token)) {
            require(index == 0 && Stops, "a wait ended without a stop");
            return;
        }
        const once_turn::what turn = waiters[index].result->kind;
        if (turn == once_turn::what::run) {
            runs.write(runs.read() + 1);
            once_run duty(once);
            if (runs.read() == 1 && First == first_run::is_stopped) return;
            if (runs.read() == 1 && First == first_run::fails) {
                duty.fail(nullptr);
                return;
            }
            value.write(value.read() + 1);
            made.fetch_add(1, relaxed);
            duty.publish();
        } else if (turn == once_turn::what::value) {
            require(value.read() == 1, "got the value before it was made");
        } else {
            require(First == first_run::fails, "got an error that nobody made");
        }
    }
    void after() {
        require(made.load(relaxed) <= 1, "the value was made twice");
        require(once.is_done() == (made.load(relaxed) == 1), "the value was lost");
        if (!once.is_done()) require(once.try_run(), "nobody can make the value any more");
    }
};

}  // namespace

int main() {
    model::report report("once");
    report.holds<gets<first_run::succeeds, false>>("the value is made once, before it is got");
    report.holds<gets<first_run::succeeds, true>>("a stopped waiter leaves", far);
    report.holds<gets<first_run::fails, false>>("an error goes to all, and the next one tries");
    report.holds<gets<first_run::is_stopped, false>>("a stopped run is passed on");
    report.holds<gets<first_run::is_stopped, true>>("also past a waiter that is stopped", far);
    report.dies_weakened<gets<first_run::succeeds, false>>(lock_file, "queue_lock.left");
    report.dies_weakened<gets<first_run::succeeds, false>>(lock_file, "queue_lock.fast");
    report.dies_weakened<gets<first_run::is_stopped, false>>(lock_file, "queue_lock.left");
    report.dies_planted<gets<first_run::is_stopped, false>>("once.give_up_for_good");
    report.dies_planted<gets<first_run::succeeds, false>>("once.run_twice");
    return report.finish();
}
