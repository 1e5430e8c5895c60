// The model of the gate: the end finds admitted work; the caller runs the work that is rejected.
#include "model.hpp"

#include <coppice/base/internal/gate.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;

constexpr const char* header = "include/coppice/base/internal/gate.hpp";

// A pool of one worker. Another thread tells it to end, and the worker destroys the object that it
// was in. The words of the queue are relaxed: only the gate orders them.
template <int Callers>
struct submit_and_end : model::test<submit_and_end<Callers>, 2 + Callers> {
    gate entry;
    plain<int> object;          // stands for what a call uses in the pool
    plain<int> items[Callers];  // 1: submitted, 2: run
    atomic<int> queued[Callers];

    void before() {
        object.write(1);
        for (plain<int>& each : items) each.write(0);
        for (atomic<int>& each : queued) each.store(0, relaxed);
    }
    void run(int i) {
        model::require(items[i].read() == 1, "an item ran twice, or before it was written");
        items[i].write(2);
    }
    void caller(int i) {
        items[i].write(1);
        if (!entry.enter()) return run(i);
        queued[i].store(1, relaxed);
        model::require(object.read() == 1, "the pool ended under a call");
        entry.leave();
    }
    // The queue is read after the gate is quiet.
    void worker() {
        while (!entry.is_closed()) spin_hint();
        if (!planted("gate.end_at_once")) {
            while (!entry.is_quiet()) spin_hint();
        }
        for (int i = 0; i != Callers; ++i) {
            if (queued[i].load(relaxed) != 0) run(i);
        }
        entry.wait();
        object.write(0);  // the end of the object
    }
    void thread(unsigned index) {
        if (index == 0) return worker();
        if (index == 1) return entry.close();
        caller(static_cast<int>(index) - 2);
    }
    void after() {
        for (plain<int>& each : items) model::require(each.read() == 2, "an item was lost");
    }
};

// An admitted call's work may run before the call leaves, and may end the object; the end waits for
// the call.
struct leave_and_end : model::test<leave_and_end, 2> {
    gate entry;
    atomic<int> work{0};
    plain<int> object;

    void before() { object.write(1); }
    void thread(unsigned index) {
        if (index == 0) {
            if (!entry.enter()) return;
            work.store(1, release);
            model::require(object.read() == 1, "the object ended under a call");
            entry.leave();
        } else {
            while (work.load(acquire) == 0) spin_hint();
            if (!planted("gate.forget_to_wait")) entry.wait();
            object.write(0);
        }
    }
};

}  // namespace

int main() {
    model::report report("gate");
    report.holds<submit_and_end<1>>("one caller, one closing thread, one ending thread", {200'000});
    report.holds<submit_and_end<2>>("the same with two callers", {200'000});
    report.holds<leave_and_end>("the end waits for a call whose work has run", {100'000});
    report.dies_weakened<submit_and_end<2>>(header, "gate.left", {200'000});
    report.dies_weakened<leave_and_end>(header, "gate.left", {100'000});
    report.dies_planted<submit_and_end<1>>("gate.let_in", {200'000});
    report.dies_planted<submit_and_end<1>>("gate.end_at_once", {200'000});
    report.dies_planted<leave_and_end>("gate.forget_to_wait", {100'000});
    return report.finish();
}
