// Shared by the models of channels: threads that send and receive, and items that show their place.
#pragma once
#include "model.hpp"

#include <coppice/sync/internal/channel_core.hpp>
#include <coppice/sync/internal/waiter.hpp>

#include <optional>

namespace coppice::protocol_model {

using namespace coppice::internal;

using item = plain<int>*;  // written before it is sent, read after it was received

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

// How a thread begins, and if it gives up when nothing was granted at once.
enum class way { tries_first, only_waits, gives_up, tries_and_gives_up };
inline bool tries(way how) {
    return how == way::tries_first || how == way::tries_and_gives_up;
}
inline bool gives_up(way how) {
    return how == way::gives_up || how == way::tries_and_gives_up;
}

// Takes a waiter out of its queue. Returns false if it was granted before.
template <class Core, class Waiter>
bool leaves(Core& c, Waiter& w) {
    c.queue().lock();
    const bool is_linked = w.linked();
    if (is_linked) c.unlink(w);
    c.queue().unlock();
    return is_linked;
}

// Returns true if the item was sent; false: the channel is closed, or the sender gave up.
template <class Core>
bool send(Core& c, item i, way how = way::tries_first) {
    if (tries(how)) {
        const send_outcome tried = c.try_send(i);
        if (tried != send_outcome::full) return tried == send_outcome::sent;
    }
    spinning<typename Core::sender> w;
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
    if (gives_up(how) && leaves(c, w)) return false;
    w.wait();
    return !refused;
}

// Returns the item, or nullptr if the channel is closed and drained, or if the receiver gave up.
template <class Core>
item receive(Core& c, way how = way::tries_first) {
    std::optional<item> place;
    if (tries(how) && c.try_receive(place)) return place.value_or(nullptr);
    spinning<typename Core::receiver> w;
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
    if (gives_up(how) && leaves(c, w)) return nullptr;
    w.wait();
    return place.value_or(nullptr);
}

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

// Three items through one slot, by threads that only try. Core: a channel of `tracked`.
template <class Core>
struct slot_reuse : model::test<slot_reuse<Core>, 2> {
    cells places;
    Core* c = nullptr;

    void before() {
        cells::current() = &places;
        c = new Core(1);
    }
    void thread(unsigned index) {
        for (int i = 0; i != 3; ++i) {
            if (index == 0) {
                tracked sent(i);
                while (c->try_send(sent) != send_outcome::sent) spin_hint();
            } else {
                std::optional<tracked> got;
                while (!c->try_receive(got)) spin_hint();
                model::require(got->number == i, "items came out of order");
            }
        }
    }
    void after() { delete c; }
};

}  // namespace coppice::protocol_model
