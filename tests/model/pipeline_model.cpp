// The model of a pipeline's gates: serial stages, stages in order, the source, and the end.
#include "model.hpp"

#include <coppice/parallel/internal/pipeline_gates.hpp>

#include <utility>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::parallel::internal;

constexpr const char* header = "include/coppice/parallel/internal/pipeline_gates.hpp";

struct item : gate_waiter {
    plain<int> value;
};

// Each thread brings an item to a serial stage, and runs the stage for all that it is given.
struct serial_stage : model::test<serial_stage, 3> {
    pile_gate gate;
    item items[3];
    plain<int> inside;  // what the stage's function uses
    plain<int> runs;

    void before() {
        inside.write(0);
        runs.write(0);
    }
    void run(item& each) {
        model::require(inside.read() == 0, "two items are in a serial stage");
        inside.write(1);
        model::require(each.value.read() == 1, "an item came without its value");
        runs.write(runs.read() + 1);
        inside.write(0);
    }
    void thread(unsigned index) {
        items[index].value.write(1);
        if (!gate.enter(items[index])) return;
        run(items[index]);
        for (gate_waiter* more = gate.take_or_leave(); more != nullptr;
             more = gate.take_or_leave()) {
            for (more = reversed(more); more != nullptr;) {
                item& each = static_cast<item&>(*more);
                more = each.next.read();
                run(each);
            }
        }
    }
    void after() { model::require(runs.read() == 3, "an item was left in the gate"); }
};

// Each thread brings an item to a stage in order; two cells, so the third item uses the first
// one's.
struct stage_in_order : model::test<stage_in_order, 3> {
    order_gate gate;
    item items[3];
    plain<int> next;

    void before() {
        gate.make(4);
        next.write(0);
    }
    void thread(unsigned index) {
        unsigned mine = 2 - index;
        items[mine].value.write(static_cast<int>(mine));
        if (!gate.enter(mine, items[mine])) return;
        for (item* each = &items[mine]; each != nullptr;) {
            model::require(each->value.read() == next.read(), "an item is not in order");
            next.write(next.read() + 1);
            each = static_cast<item*>(gate.leave(mine++));
        }
    }
    void after() { model::require(next.read() == 3, "an item was left in the gate"); }
};

// Two visits pass items through two slots: the source belongs to one at a time, and does not stay
// behind while a slot is free.
struct source_and_slot : model::test<source_and_slot, 2> {
    static constexpr int size = 3;
    source_gate gate;
    visit_count visits;
    item slots[2];
    plain<int> given;
    plain<gate_waiter*> free;
    plain<int> alive;

    void before() {
        given.write(0);
        for (item& each : slots) each.value.write(0);
        slots[0].next.write(&slots[1]);
        slots[1].next.write(nullptr);
        free.write(&slots[0]);
        alive.write(1);
        visits.add();  // both visits have begun
    }
    bool take(item*& mine) {
        gate_waiter* pile = nullptr;
        source_gate::outcome got = gate.try_take(mine != nullptr, pile);
        if (got != source_gate::outcome::taken && mine != nullptr) {
            gate.put(*mine);
            mine = nullptr;
            if (planted("pipeline.put_and_go")) return false;
            got = gate.try_take(false, pile);
        }
        if (got != source_gate::outcome::taken) return false;
        while (pile != nullptr) {
            gate_waiter& first = *pile;
            pile = first.next.read();
            first.next.write(free.read());
            free.write(&first);
        }
        return true;
    }
    void thread(unsigned index) {
        item* mine = nullptr;
        bool may_wait = index == 1;  // its first item waits elsewhere, and keeps its slot
        while (take(mine)) {
            if (mine == nullptr) {
                model::require(free.read() != nullptr, "the source was had without a slot");
                mine = static_cast<item*>(free.read());
                free.write(mine->next.read());
            }
            if (given.read() == size) {
                gate.end();
                break;
            }
            given.write(given.read() + 1);
            gate.leave(free.read() != nullptr);
            mine->value.write(mine->value.read() + 1);
            if (std::exchange(may_wait, false)) mine = nullptr;
        }
        model::require(alive.read() == 1, "a visit found that the pipeline had ended");
        if (visits.end()) {
            model::require(given.read() == size, "the source stayed behind");
            model::require(slots[0].value.read() + slots[1].value.read() == size,
                           "an item was lost");
            alive.write(0);
        }
    }
};

// A visit forks a call; the thief counts its own visit before the forker's can end.
struct forker_and_thief : model::test<forker_and_thief, 2> {
    visit_count visits;
    handed_over to_thief;
    plain<int> alive;
    plain<int> frame;  // of the fork, on the forker's stack
    atomic<int> stolen{0};

    void before() {
        alive.write(1);
        frame.write(1);
    }
    void thread(unsigned index) {
        if (index == 0) {
            stolen.store(1, release);
            if (!planted("pipeline.forget_thief")) to_thief.wait();
            frame.write(0);
        } else {
            while (stolen.load(acquire) == 0) spin_hint();
            model::require(frame.read() == 1, "a thief read a frame that had gone");
            visits.add();
            to_thief.done();
        }
        model::require(alive.read() == 1, "a visit found that the pipeline had ended");
        if (visits.end()) alive.write(0);
    }
};

}  // namespace

int main() {
    model::report report("pipeline");
    report.holds<serial_stage>("a serial stage has each item once, one at a time");
    report.holds<stage_in_order>("a stage in order has the items in order");
    report.holds<source_and_slot>("the source gives each item once, and does not stay behind");
    report.holds<forker_and_thief>("the pipeline does not end while a thief visits it");
    report.dies_weakened<serial_stage>(header, "pile.hold");
    report.dies_weakened<serial_stage>(header, "pile.wait");
    report.dies_weakened<stage_in_order>(header, "order.open");
    report.dies_weakened<stage_in_order>(header, "order.wait");
    report.dies_weakened<source_and_slot>(header, "source.leave");
    report.dies_weakened<source_and_slot>(header, "source.put");
    report.dies_weakened<source_and_slot>(header, "pipeline.end");
    report.dies_weakened<forker_and_thief>(header, "pipeline.visit");
    report.dies_planted<source_and_slot>("pipeline.put_and_go");
    report.dies_planted<forker_and_thief>("pipeline.forget_thief");
    return report.finish();
}
