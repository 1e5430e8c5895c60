// The model of a broadcast_channel: each receiver gets each item in order or counts it, also if one
// gives up; a receiver may destroy the channel when it has the last item.
#include "channel_model.hpp"

#include <coppice/sync/internal/broadcast_core.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
constexpr const char* lock_header = "include/coppice/sync/internal/queue_lock.hpp";

using core = broadcast_core<item>;

// Returns nullptr if the channel is closed and drained; or if nothing is there, for a thread that
// gives up.
item receive(core& c, broadcast_cursor& cursor, bool gives_up = false) {
    spinning<core::waiter_type> w;
    std::optional<item> place;
    c.queue().lock();
    const bool done = c.take(cursor, place);
    if (!done) {
        w.place = &place;
        w.cursor = &cursor;
        c.link(w);
    }
    c.queue().unlock();
    if (done) return place.value_or(nullptr);
    if (gives_up && leaves(c, w)) return nullptr;
    w.wait();
    return place.value_or(nullptr);
}

// Two receivers, one of which gives up now and then, and a sender that is ahead of the ring.
struct two_receivers : model::test<two_receivers, 3> {
    core* c = nullptr;
    plain<int> values[3];
    broadcast_cursor cursors[2];

    void before() {
        c = new core(2);
        for (broadcast_cursor& cursor : cursors) cursor = c->subscribe();
    }
    void thread(unsigned index) {
        if (index == 2) {
            for (int i = 0; i != 3; ++i) {
                values[i].write(i);
                model::require(c->send(&values[i]), "an open channel refused an item");
            }
            c->close();
            return;
        }
        broadcast_cursor& cursor = cursors[index];
        std::uint64_t seen = 0;
        if (index == 1 && take(receive(*c, cursor, true), cursor, seen)) ++seen;
        while (take(receive(*c, cursor), cursor, seen)) ++seen;
        model::require(seen + cursor.missed == 3, "an item was neither received nor counted");
    }
    static bool take(item got, const broadcast_cursor& cursor, std::uint64_t seen) {
        if (got == nullptr) return false;
        const auto number = static_cast<std::uint64_t>(got->read());
        model::require(number == seen + cursor.missed, "items came out of order, or twice");
        return true;
    }
    void after() { delete c; }
};

// The receiver destroys the channel as soon as it has the only item.
struct destroying : model::test<destroying, 2> {
    core* c = nullptr;
    plain<int> value;
    broadcast_cursor cursor;

    void before() {
        c = new core(1);
        cursor = c->subscribe();
    }
    void thread(unsigned index) {
        if (index == 0) {
            value.write(1);
            c->send(&value);
            return;
        }
        model::require(receive(*c, cursor)->read() == 1, "an item was seen before it was written");
        delete c;
    }
};

}  // namespace

int main() {
    model::report report("broadcast");
    report.holds<two_receivers>("each receiver gets or counts each item", {100'000});
    report.holds<destroying>("a receiver may destroy it", {50'000});
    report.dies_weakened<two_receivers>(lock_header, "queue_lock.left", {20'000});
    report.dies_weakened<destroying>(lock_header, "queue_lock.left", {20'000});
    report.dies_planted<two_receivers>("broadcast.keep_cursor", {20'000});
    return report.finish();
}
