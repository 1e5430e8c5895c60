// The model of an spsc_channel: no item is lost or seen early, and no side sleeps on, whatever the
// form of the fences.
#include "channel_model.hpp"

#include <coppice/sync/internal/spsc_core.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
constexpr const char* core_header = "include/coppice/sync/internal/spsc_core.hpp";
constexpr const char* bell_header = "include/coppice/sync/internal/spsc_bell.hpp";

using core = spsc_core<item>;

// Three items through one slot: both sides wait.
struct through_one_slot : model::test<through_one_slot, 2> {
    core* c = nullptr;
    plain<int> values[3];

    void before() { c = new core(1); }
    void thread(unsigned index) {
        for (int i = 0; i != 3; ++i) {
            if (index == 0) {
                values[i].write(i);
                model::require(send(*c, &values[i]), "an open channel refused an item");
            } else {
                const item got = receive(*c);
                model::require(got == &values[i], "items came out of order");
                model::require(got->read() == i, "an item was seen before it was written");
            }
        }
    }
    void after() { delete c; }
};

// The receiver gives up and comes again; the sender closes.
struct giving_up : model::test<giving_up, 2> {
    core* c = nullptr;
    plain<int> values[2];

    void before() { c = new core(1); }
    void thread(unsigned index) {
        if (index == 0) {
            for (plain<int>& value : values) {
                value.write(7);
                send(*c, &value);
            }
            c->close();
            return;
        }
        int count = 0;
        for (int i = 0; i != 2; ++i) {
            if (const item got = receive(*c, way::tries_and_gives_up)) {
                model::require(got == &values[count], "items came out of order");
                ++count;
            }
        }
        while (const item got = receive(*c)) {
            model::require(got->read() == 7, "an item was seen before it was written");
            ++count;
        }
        model::require(count == 2, "an item was lost");
    }
    void after() { delete c; }
};

// A third thread asks for the size while one item goes through three slots.
struct observed_size : model::test<observed_size, 3> {
    core* c = nullptr;
    plain<int> value;

    void before() { c = new core(3); }
    void thread(unsigned index) {
        if (index == 0) {
            model::require(send(*c, &value), "an open channel refused an item");
        } else if (index == 1) {
            receive(*c);
        } else {
            model::require(c->size() <= 1, "a channel has more items than were sent");
        }
    }
    void after() { delete c; }
};

// A bell alone: the waiter chooses the forms of the fences in turn.
template <unsigned Forms>
struct ring_in_forms : model::test<ring_in_forms<Forms>, 2> {
    static constexpr std::uint64_t rounds = 4;
    spsc_bell bell;
    spsc_bell::fence_form is_full{false};
    atomic<std::uint64_t> published{0};
    queue_lock* lock = nullptr;
    bool waits = false;  // inside the lock
    atomic<int> rung{0};

    void before() {
        lock = new queue_lock(0);
        waits = false;
    }
    void thread(unsigned index) {
        if (index == 0) {
            for (std::uint64_t i = 1; i <= rounds; ++i) {
                published.store(i, relaxed);
                if (!bell.must_ring(is_full)) continue;
                lock->lock();
                bell.retract();
                if (waits) rung.store(1, relaxed);
                waits = false;
                lock->unlock();
            }
            return;
        }
        for (std::uint64_t i = 1; i <= rounds; ++i) {
            while (published.load(relaxed) < i) {
                lock->lock();
                bell.announce(is_full, (Forms >> i & 1) != 0);
                const bool sleeps = published.load(relaxed) < i;
                if (sleeps) {
                    rung.store(0, relaxed);
                } else {
                    bell.retract();
                }
                waits = sleeps;
                lock->unlock();
                while (sleeps && rung.load(relaxed) == 0) spin_hint();
            }
        }
    }
    void after() { delete lock; }
};

}  // namespace

int main() {
    model::report report("spsc");
    report.holds<through_one_slot>("three items pass through one slot", {60'000});
    report.holds<slot_reuse<spsc_core<tracked>>>("a slot is used again when its item has left it",
                                                 {60'000});
    report.holds<giving_up>("a receiver that gives up loses nothing", {60'000});
    report.holds<observed_size>("the size is never more than what was sent", {60'000});
    report.holds<ring_in_forms<0b00000>>("light fences wake", {60'000});
    report.holds<ring_in_forms<0b11111>>("full fences wake", {60'000});
    report.holds<ring_in_forms<0b01010>>("fences that change their form wake", {60'000});
    report.holds<ring_in_forms<0b10010>>("fences that change back and forth wake", {60'000});
    report.dies_weakened<through_one_slot>(core_header, "spsc.sent", {20'000});
    report.dies_weakened<slot_reuse<spsc_core<tracked>>>(core_header, "spsc.freed", {20'000});
    report.dies_weakened<observed_size>(core_header, "spsc.freed", {20'000});
    report.dies_weakened<giving_up>(core_header, "spsc.closed", {50'000});
    report.dies_planted<through_one_slot>("spsc.grant_nothing", {20'000});
    report.dies_weakened<ring_in_forms<0b11111>>(bell_header, "spsc_bell.full", {50'000});
    report.dies_weakened<ring_in_forms<0b00000>>(bell_header, "spsc_bell.light", {50'000});
    report.dies_planted<ring_in_forms<0b00000>>("spsc_bell.no_light_fence", {50'000});
    report.dies_planted<ring_in_forms<0b00000>>("spsc_bell.no_heavy_fence", {50'000});
    report.dies_planted<ring_in_forms<0b01010>>("spsc_bell.change_without_fence", {100'000});
    return report.finish();
}
