// The model of an spsc_channel: no item is lost or seen early, and no side sleeps on, whatever the
// form of the fences.
#include "model.hpp"

#include <coppice/sync/internal/spsc_core.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
constexpr const char* core_header = "include/coppice/sync/internal/spsc_core.hpp";
constexpr const char* bell_header = "include/coppice/sync/internal/spsc_bell.hpp";

using item = plain<int>*;  // written before it is sent, read after it was received
using core = spsc_core<item>;

// A waiter whose thread spins until another thread grants it.
template <class Base>
struct spinning : Base {
    spinning() : Base(&spinning::granted) {}
    static void granted(waiter& w) noexcept {
        // edge model.granted (release): the fields of the waiter
        static_cast<spinning&>(w).done.store(1, release);
    }
    void wait() {
        // edge model.granted (acquire): the fields of the waiter
        while (done.load(acquire) == 0) spin_hint();
    }
    atomic<int> done{0};
};

bool send(core& c, item i) {
    if (c.try_send(i) == send_outcome::sent) return true;
    spinning<core::sender> w;
    bool refused = false;
    granted_waiters others;
    c.queue().lock();
    const send_outcome outcome = c.offer(i, others);
    if (outcome == send_outcome::full) {
        w.item = &i;
        w.refused = &refused;
        c.link(w);
    }
    c.queue().unlock();
    others.call_all();
    if (outcome != send_outcome::full) return outcome == send_outcome::sent;
    w.wait();
    return !refused;
}
// Returns nullptr if the channel is closed and drained; or if nothing is there, for a thread that
// gives up.
item receive(core& c, bool gives_up = false) {
    std::optional<item> place;
    if (c.try_receive(place)) return place.value_or(nullptr);
    spinning<core::receiver> w;
    granted_waiters others;
    c.queue().lock();
    const bool done = c.take(place, others);
    if (!done) {
        w.place = &place;
        c.link(w);
    }
    c.queue().unlock();
    others.call_all();
    if (done) return place.value_or(nullptr);
    if (gives_up) {
        c.queue().lock();
        const bool is_linked = w.linked();
        if (is_linked) c.unlink(w);
        c.queue().unlock();
        if (is_linked) return nullptr;
    }
    w.wait();
    return place.value_or(nullptr);
}

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

// An item whose moves touch a cell of the memory that it lies in. The checker sees a race on memory
// that is used again only if the memory itself is one of its variables.
struct cells {
    static constexpr int count_max = 32;
    static cells*& current() {
        static cells* table = nullptr;
        return table;
    }
    void touch(const void* address) {
        for (int i = 0; i != count_max; ++i) {
            if (addresses[i] == nullptr) addresses[i] = address;
            if (addresses[i] == address) return all[i].write(1);
        }
        model::require(false, "items lie in more places than cells holds");
    }
    const void* addresses[count_max]{};
    plain<int> all[count_max];
};
struct tracked {
    explicit tracked(int n) : number(n) { cells::current()->touch(this); }
    tracked(tracked&& other) noexcept : number(other.number) {
        cells::current()->touch(&other);
        cells::current()->touch(this);
    }
    ~tracked() { cells::current()->touch(this); }
    int number;
};

struct slot_reuse : model::test<slot_reuse, 2> {
    cells places;
    spsc_core<tracked>* c = nullptr;

    void before() {
        cells::current() = &places;
        c = new spsc_core<tracked>(1);
    }
    void thread(unsigned index) {
        for (int i = 0; i != 3; ++i) {
            if (index == 0) {
                tracked item(i);
                while (c->try_send(item) != send_outcome::sent) spin_hint();
            } else {
                std::optional<tracked> got;
                while (!c->try_receive(got)) spin_hint();
                model::require(got->number == i, "items came out of order");
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
            if (const item got = receive(*c, true)) {
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
    report.holds<slot_reuse>("a slot is used again when its item has left it", {60'000});
    report.holds<giving_up>("a receiver that gives up loses nothing", {60'000});
    report.holds<observed_size>("the size is never more than what was sent", {60'000});
    report.holds<ring_in_forms<0b00000>>("light fences wake", {60'000});
    report.holds<ring_in_forms<0b11111>>("full fences wake", {60'000});
    report.holds<ring_in_forms<0b01010>>("fences that change their form wake", {60'000});
    report.holds<ring_in_forms<0b10010>>("fences that change back and forth wake", {60'000});
    report.dies_weakened<through_one_slot>(core_header, "spsc.sent", {20'000});
    report.dies_weakened<slot_reuse>(core_header, "spsc.freed", {20'000});
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
