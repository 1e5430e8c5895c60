// The model of the channels with several senders: those of a bounded one, which claim places of a
// ring, and those of a oneshot or an unbounded one, which never wait. Receivers, a close, and
// waiters that give up. Each item has one owner, and a thread that is granted its last item may
// destroy the channel.
#include "channel_model.hpp"

#include <coppice/sync/internal/ring_core.hpp>
#include <coppice/sync/internal/single_item.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
constexpr const char* lock_header = "include/coppice/sync/internal/queue_lock.hpp";
constexpr const char* ring_header = "include/coppice/sync/internal/ring_core.hpp";

using ring = ring_core<item>;
using single = channel_core<item, single_item<item>>;

// Three items through one slot, or none, in order.
template <int Capacity, way How>
struct in_order : model::test<in_order<Capacity, How>, 2> {
    ring* c = nullptr;
    plain<int> values[3];

    void before() { c = new ring(Capacity); }
    void thread(unsigned index) {
        for (int i = 0; i != 3; ++i) {
            if (index == 0) {
                values[i].write(i);
                model::require(send(*c, &values[i], How), "an open channel refused an item");
            } else {
                const item got = receive(*c, How);
                model::require(got == &values[i], "items came out of order");
                model::require(got->read() == i, "an item was seen before it was written");
            }
        }
    }
    void after() { delete c; }
};

// Two senders fill one slot with two items each, and a receiver takes them all; in the order of
// each sender. A sender that comes while another one waits must not overtake it.
struct two_senders : model::test<two_senders, 3> {
    ring* c = nullptr;
    plain<int> values[4];

    void before() { c = new ring(1); }
    void thread(unsigned index) {
        if (index != 2) {
            for (unsigned i = 0; i != 2; ++i) {
                plain<int>& value = values[2 * index + i];
                value.write(1);
                model::require(send(*c, &value), "an open channel refused an item");
            }
            return;
        }
        unsigned next[2] = {0, 0};
        for (int n = 0; n != 4; ++n) {
            const item got = receive(*c);
            model::require(got != nullptr, "an item was lost");
            model::require(got->read() == 1, "an item was seen before it was written");
            const auto at = static_cast<unsigned>(got - values);
            model::require(next[at / 2]++ == at % 2, "items of a sender came out of order");
        }
    }
    void after() {
        model::require(c->size() == 0, "an item is left");
        delete c;
    }
};

// Two receivers take three items through two slots.
struct two_receivers : model::test<two_receivers, 3> {
    ring* c = nullptr;
    plain<int> values[3], taken[3];

    void before() { c = new ring(2); }
    void thread(unsigned index) {
        if (index == 2) {
            for (plain<int>& value : values) {
                value.write(1);
                model::require(send(*c, &value), "an open channel refused an item");
            }
            return;
        }
        const unsigned count = index == 0 ? 2 : 1;
        for (unsigned n = 0; n != count; ++n) {
            const item got = receive(*c);
            model::require(got != nullptr, "an item was lost");
            model::require(got->read() == 1, "an item was seen before it was written");
            taken[got - values].write(1);  // a race if two have it
        }
    }
    void after() { delete c; }
};

// A receiver and a sender that give up race the others. One item, one owner.
struct giving_up : model::test<giving_up, 3> {
    ring* c = nullptr;
    plain<int> values[2];
    int sent = 0;
    int owners = 0;

    void before() { c = new ring(1); }
    void thread(unsigned index) {
        if (index == 0) {
            for (plain<int>& value : values) {
                value.write(1);
                if (send(*c, &value, way::gives_up)) ++sent;
            }
            return;
        }
        const item got = index == 1 ? receive(*c, way::gives_up) : [this] {
            std::optional<item> place;
            c->try_receive(place);
            return place.value_or(nullptr);
        }();
        if (got == nullptr) return;
        model::require(got->read() == 1, "an item was seen before it was written");
        ++owners;
    }
    void after() {
        for (std::optional<item> left; c->try_receive(left), left; left.reset()) ++owners;
        model::require(owners == sent, "an item has not exactly one owner");
        delete c;
    }
};

// Of two receivers, one gives up, and the other one waits for its item.
struct leaving : model::test<leaving, 3> {
    ring* c = nullptr;
    plain<int> values[2];
    int owners = 0;

    void before() { c = new ring(2); }
    void thread(unsigned index) {
        if (index == 0) {
            for (plain<int>& value : values) {
                value.write(1);
                model::require(send(*c, &value), "an open channel refused an item");
            }
            return;
        }
        const item got = receive(*c, index == 1 ? way::gives_up : way::only_waits);
        if (got == nullptr) return model::require(index == 1, "a wait ended with nothing");
        model::require(got->read() == 1, "an item was seen before it was written");
        ++owners;
    }
    void after() {
        for (std::optional<item> left; c->try_receive(left), left; left.reset()) ++owners;
        model::require(owners == 2, "an item has not exactly one owner");
        delete c;
    }
};

// A close races a sender that may wait and a receiver. What was sent is received or still there.
struct closing : model::test<closing, 3> {
    ring* c = nullptr;
    plain<int> values[2];
    plain<int> before_close;
    int sent = 0;
    int received = 0;

    void before() { c = new ring(1); }
    void thread(unsigned index) {
        if (index == 0) {
            for (plain<int>& value : values) {
                value.write(1);
                if (send(*c, &value)) ++sent;
            }
        } else if (index == 1) {
            for (;;) {
                const item got = receive(*c);
                if (got == nullptr) break;
                model::require(got->read() == 1, "an item was seen before it was written");
                ++received;
            }
            model::require(before_close.read() == 1, "the close was seen before what precedes it");
        } else {
            before_close.write(1);
            c->close();
        }
    }
    void after() {
        model::require(sent == received, "what was sent was not received");
        delete c;
    }
};

// The receiver destroys the channel as soon as it has the only item.
template <int Capacity, way How>
struct destroying : model::test<destroying<Capacity, How>, 2> {
    ring* c = nullptr;
    plain<int> value;

    void before() { c = new ring(Capacity); }
    void thread(unsigned index) {
        if (index == 0) {
            value.write(1);
            send(*c, &value, How);
            return;
        }
        model::require(receive(*c)->read() == 1, "an item was seen before it was written");
        delete c;
    }
};

// The receiver destroys the channel as soon as it knows that it was closed.
struct destroying_closed : model::test<destroying_closed, 2> {
    ring* c = nullptr;

    void before() { c = new ring(1); }
    void thread(unsigned index) {
        if (index == 0) return c->close();
        std::optional<item> place;
        while (!c->try_receive(place)) spin_hint();
        delete c;
    }
};

// A thread that has sent an item finds one, although another sender has claimed the place before.
struct own_item : model::test<own_item, 2> {
    ring* c = nullptr;
    plain<int> values[2];

    void before() { c = new ring(2); }
    void thread(unsigned index) {
        values[index].write(1);
        item i = &values[index];
        model::require(c->try_send(i) == send_outcome::sent, "a free slot was refused");
        std::optional<item> place;
        model::require(c->try_receive(place) && place, "no item was found behind one's own");
        model::require((*place)->read() == 1, "an item was seen before it was written");
        i = &values[index];
        model::require(c->try_send(i) == send_outcome::sent, "an empty slot was refused");
    }
    void after() { delete c; }
};

// One sender that never waits, and two receivers, of which one gives up; then a close.
struct without_waiting_senders : model::test<without_waiting_senders, 3> {
    single* c = nullptr;
    plain<int> value;
    int owners = 0;

    void before() { c = new single; }
    void thread(unsigned index) {
        if (index == 0) {
            value.write(1);
            item i = &value;
            model::require(c->send_last(i), "a free slot was refused");
            return;
        }
        const item got = receive(*c, index == 1 ? way::gives_up : way::tries_first);
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
struct destroying_single : model::test<destroying_single, 2> {
    single* c = nullptr;
    plain<int> value;

    void before() { c = new single; }
    void thread(unsigned index) {
        if (index == 0) {
            value.write(1);
            item i = &value;
            c->try_send(i);
            return;
        }
        model::require(receive(*c)->read() == 1, "an item was seen before it was written");
        delete c;
    }
};

}  // namespace

int main() {
    using way::only_waits;
    using way::tries_first;
    model::report report("channel");
    report.holds<in_order<0, tries_first>>("a rendezvous keeps the order", {50'000});
    report.holds<in_order<1, tries_first>>("one slot keeps the order", {50'000});
    report.holds<in_order<1, only_waits>>("one slot keeps the order of waits", {50'000});
    report.holds<two_senders>("two senders keep their orders", {100'000});
    report.holds<two_receivers>("two receivers share items", {100'000});
    report.holds<giving_up>("an item has one owner although waiters give up", {100'000});
    report.holds<leaving>("a receiver gets its item although another one leaves", {50'000});
    report.holds<closing>("a close loses nothing that was sent", {100'000});
    report.holds<slot_reuse<ring_core<tracked>>>("a slot is used again when its item has left it",
                                                 {50'000});
    report.holds<own_item>("a thread that has sent finds an item", {50'000});
    report.holds<destroying<0, tries_first>>("a receiver may destroy a rendezvous", {50'000});
    report.holds<destroying<1, tries_first>>("a receiver may destroy a ring", {50'000});
    report.holds<destroying<1, only_waits>>("the same if the sender was inside", {50'000});
    report.holds<destroying_closed>("a receiver may destroy a closed ring", {50'000});
    report.holds<without_waiting_senders>("a oneshot's value has one owner", {50'000});
    report.holds<destroying_single>("a receiver may destroy a oneshot", {50'000});
    report.dies_weakened<in_order<1, tries_first>>(ring_header, "channel.filled", {20'000});
    report.dies_weakened<slot_reuse<ring_core<tracked>>>(ring_header, "channel.emptied", {20'000});
    report.dies_weakened<own_item>(ring_header, "channel.head", {20'000});
    report.dies_weakened<own_item>(ring_header, "channel.tail", {20'000});
    report.dies_weakened<in_order<1, only_waits>>(lock_header, "queue_lock.left", {20'000});
    report.dies_weakened<destroying_single>(lock_header, "queue_lock.left", {20'000});
    report.dies_planted<in_order<1, tries_first>>("channel.wait_in_silence", {20'000});
    report.dies_planted<in_order<1, tries_first>>("channel.head_stays_fast", {20'000});
    report.dies_planted<two_senders>("channel.tail_stays_fast", {50'000});
    report.dies_planted<leaving>("channel.settle_with_waiters", {50'000});
    report.dies_planted<in_order<1, tries_first>>("channel.forget_item_of_sender", {20'000});
    report.dies_planted<closing>("channel.close_forgets_waiters", {20'000});
    report.dies_planted<destroying<1, tries_first>>("channel.look_after_fill", {20'000});
    report.dies_planted<destroying<1, only_waits>>("channel.fill_with_fast_head", {20'000});
    report.dies_planted<destroying_single>("channel.look_after_unlock", {20'000});
    return report.finish();
}
