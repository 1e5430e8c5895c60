// The model of a channel: senders, receivers, a close, and waiters that give up. Each item has one
// owner, and a thread that is granted its last item may destroy the channel.
#include "model.hpp"

#include <coppice/sync/internal/channel_core.hpp>
#include <coppice/sync/internal/item_ring.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
constexpr const char* lock_header = "include/coppice/sync/internal/queue_lock.hpp";

using item = plain<int>*;  // written before it is sent, read after it was received
using core = channel_core<item, item_ring<item>>;

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

// Returns true if the item was sent; false: the channel is closed.
bool send(core& c, item i) {
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

// Returns the item, or nullptr if the channel is closed and drained.
item receive(core& c) {
    spinning<core::receiver> w;
    std::optional<item> place;
    granted_waiters others;
    c.queue().lock();
    const bool done = c.take(place, others);
    if (!done) {
        w.place = &place;
        c.link(w);
    }
    c.queue().unlock();
    others.call_all();
    if (!done) w.wait();
    return place.value_or(nullptr);
}

// Waits, and gives up at once if nothing was granted meanwhile. Returns the item, or nullptr.
item receive_or_give_up(core& c) {
    spinning<core::receiver> w;
    std::optional<item> place;
    granted_waiters others;
    c.queue().lock();
    const bool done = c.take(place, others);
    if (!done) {
        w.place = &place;
        c.link(w);
    }
    c.queue().unlock();
    others.call_all();
    if (!done) {
        c.queue().lock();
        const bool is_linked = w.linked();
        if (is_linked) c.unlink(w);
        c.queue().unlock();
        if (!is_linked) w.wait();
    }
    return place.value_or(nullptr);
}

// Two items through one slot, or none, in order.
template <int Capacity>
struct in_order : model::test<in_order<Capacity>, 2> {
    core* c = nullptr;
    plain<int> values[3];

    void before() { c = new core(Capacity); }
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

// A receiver that gives up races a sender and a second receiver. One item, one owner.
struct giving_up : model::test<giving_up, 3> {
    core* c = nullptr;
    plain<int> value;
    int owners = 0;

    void before() { c = new core(1); }
    void thread(unsigned index) {
        if (index == 0) {
            value.write(1);
            item i = &value;
            model::require(c->try_send(i) == send_outcome::sent, "a free slot was refused");
            return;
        }
        const item got = index == 1 ? receive_or_give_up(*c) : [this] {
            std::optional<item> place;
            c->try_receive(place);
            return place.value_or(nullptr);
        }();
        if (got == nullptr) return;
        model::require(got->read() == 1, "an item was seen before it was written");
        ++owners;
    }
    void after() {
        std::optional<item> left;
        c->try_receive(left);
        if (left) ++owners;
        model::require(owners == 1, "an item has not exactly one owner");
        delete c;
    }
};

// A close races a sender that may wait and a receiver. What was sent is received or still there.
struct closing : model::test<closing, 3> {
    core* c = nullptr;
    plain<int> values[2];
    int sent = 0;
    int received = 0;

    void before() { c = new core(1); }
    void thread(unsigned index) {
        if (index == 0) {
            for (plain<int>& value : values) {
                value.write(1);
                if (send(*c, &value)) ++sent;
            }
        } else if (index == 1) {
            if (const item got = receive(*c)) {
                model::require(got->read() == 1, "an item was seen before it was written");
                ++received;
            }
        } else {
            c->close();
        }
    }
    void after() {
        for (std::optional<item> left; c->try_receive(left) && left; left.reset()) ++received;
        model::require(sent == received, "what was sent was not received");
        delete c;
    }
};

// The receiver destroys the channel as soon as it has the only item.
template <int Capacity>
struct destroying : model::test<destroying<Capacity>, 2> {
    core* c = nullptr;
    plain<int> value;

    void before() { c = new core(Capacity); }
    void thread(unsigned index) {
        if (index == 0) {
            value.write(1);
            if (Capacity == 0) {
                send(*c, &value);
            } else {
                item i = &value;
                c->try_send(i);
            }
            return;
        }
        model::require(receive(*c)->read() == 1, "an item was seen before it was written");
        delete c;
    }
};

}  // namespace

int main() {
    model::report report("channel");
    report.holds<in_order<0>>("a rendezvous keeps the order", {50'000});
    report.holds<in_order<1>>("one slot keeps the order", {50'000});
    report.holds<giving_up>("an item has one owner although a receiver gives up", {100'000});
    report.holds<closing>("a close loses nothing that was sent", {100'000});
    report.holds<destroying<0>>("a receiver may destroy a rendezvous", {50'000});
    report.holds<destroying<1>>("a receiver may destroy a channel with slots", {50'000});
    report.dies_weakened<in_order<1>>(lock_header, "queue_lock.left", {20'000});
    report.dies_weakened<destroying<1>>(lock_header, "queue_lock.left", {20'000});
    report.dies_planted<in_order<1>>("channel.keep_item_of_sender", {20'000});
    report.dies_planted<closing>("channel.close_forgets_waiters", {20'000});
    report.dies_planted<destroying<1>>("channel.look_after_unlock", {20'000});
    return report.finish();
}
