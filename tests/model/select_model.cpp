// The select model: two selects and a plain operation meet in two objects, while a stop comes. Each
// ends once, what one sends another receives, and the last to end destroys all objects.
#include "sync_model.hpp"

#include <coppice/sync/internal/joined_select.hpp>
#include <coppice/sync/internal/ring_core.hpp>
#include <coppice/sync/internal/select_branches.hpp>
#include <coppice/sync/internal/select_core.hpp>
#include <coppice/token/use_await.hpp>

#include <optional>

namespace {

using namespace coppice;
using namespace coppice::internal;

constexpr const char* lock_header = "include/coppice/sync/internal/queue_lock.hpp";
constexpr const char* joined_header = "include/coppice/sync/internal/joined_select.hpp";

// A rendezvous, and a channel with one slot.
constexpr std::size_t no_slots = 0;
constexpr std::size_t one_slot = 1;

// What room_branch takes apart.
template <class Request>
struct operand {
    Request request;
    struct initiation {
        Request request;
        Request take_request() && noexcept { return std::move(request); }
    };
    static use_await_t errors() noexcept { return {}; }
    initiation take_initiation() && noexcept { return {std::move(request)}; }
};

template <std::size_t Slots>
struct core : ring_core<int> {
    core() : ring_core<int>(Slots) {}
};
template <std::size_t Slots>
using sends = room_branch<send_request<core<Slots>>, use_await_t>;
template <std::size_t Slots>
using receives = room_branch<receive_request<core<Slots>>, use_await_t>;

// Two channels, and what was moved through them. The last operation to end destroys both.
template <std::size_t Slots>
struct stage {
    manual_lifetime<core<Slots>> place_a;
    manual_lifetime<core<Slots>> place_b;
    core<Slots>* a = &place_a.construct();
    core<Slots>* b = &place_b.construct();
    atomic<int> left;
    atomic<int> sent{0};
    atomic<int> received{0};
    int kept = 0;  // in slots, at the end

    explicit stage(int operations) : left(operations) {}
    void ended() {
        if (left.fetch_sub(1, acq_rel) != 1) return;
        kept = drain(*a) + drain(*b);
        place_a.destroy();
        place_b.destroy();
    }
    static int drain(core<Slots>& c) {
        std::optional<int> got;
        return c.try_receive(got) && got ? *got : 0;
    }
    void require_balance() {
        model::require(left.load(relaxed) == 0, "an operation has not ended");
        model::require(sent.load(relaxed) == received.load(relaxed) + kept,
                       "an item was lost or doubled");
    }
};

// select(x.send(value), y.receive()), in any order of the two. Destroys itself at its end.
template <std::size_t Slots>
struct two_branches : lone_select {
    stage<Slots>& on;
    const int value;
    sends<Slots> send;
    receives<Slots> receive;

    two_branches(stage<Slots>& s, core<Slots>& to, int v, core<Slots>& from)
        : lone_select(&two_branches::ended),
          on(s),
          value(v),
          send(operand<send_request<core<Slots>>>{{to, int(v)}}, *this, 0, 0),
          receive(operand<receive_request<core<Slots>>>{receive_request<core<Slots>>(from)}, *this,
                  0, 1) {}

    void run(inplace_stop_token stop) {
        this->shuffle([](std::uint32_t count) { return rl::rand(count); });
        if (this->begin(completion_env(stop, execution::instant::never()))) ended(*this);
    }
    static void ended(select_core& c) noexcept {
        auto& self = static_cast<two_branches&>(c);
        if (self.end() == wait_end::granted) {
            if (self.winner() == 0) {
                self.on.sent.fetch_add(self.value, relaxed);
            } else {
                self.on.received.fetch_add(*self.receive.take(), relaxed);
            }
        }
        stage<Slots>& on = self.on;
        self.~two_branches();
        on.ended();
    }
};

// Two selects that are each other's partners in both objects. A third thread sends or receives
// without waiting, and then stops both.
template <std::size_t Slots>
struct partners : protocol_model::stop_test<partners<Slots>, 3> {
    stage<Slots> on{3};
    inplace_stop_source stops[2];
    manual_lifetime<two_branches<Slots>> selects[2];

    void run(unsigned index) {
        if (index == 0) {
            selects[0].construct(on, *on.a, 1, *on.b).run(stops[0].get_token());
        } else if (index == 1) {
            selects[1].construct(on, *on.b, 10, *on.a).run(stops[1].get_token());
        } else {
            plain();
            stops[0].request_stop();
            stops[1].request_stop();
        }
    }
    void plain() {
        if (rl::rand(2) == 0) {
            int value = 100;
            if (on.a->try_send(value) == send_outcome::sent) on.sent.fetch_add(100, relaxed);
        } else {
            std::optional<int> got;
            if (on.b->try_receive(got) && got) on.received.fetch_add(*got, relaxed);
        }
        on.ended();
    }
    void after() { on.require_balance(); }
};

// A select that sends to and receives from the same object, and is granted or stopped.
template <std::size_t Slots>
struct same_object : protocol_model::stop_test<same_object<Slots>, 3> {
    stage<Slots> on{2};
    inplace_stop_source stop;
    manual_lifetime<two_branches<Slots>> select;

    void run(unsigned index) {
        if (index == 0) {
            select.construct(on, *on.a, 1, *on.a).run(stop.get_token());
        } else if (index == 1) {
            int value = 10;
            if (on.a->try_send(value) == send_outcome::sent) on.sent.fetch_add(10, relaxed);
            on.ended();
        } else {
            stop.request_stop();
        }
    }
    void after() { on.require_balance(); }
};

// A child that another thread completes, if no stop does so first.
//
//   state   0 not started; 1 running; 2 completed
class child final : public select_child {
public:
    child(joined_select& s, atomic<int>& state) : select_child(s, 1), state_(state) {}
    void start() noexcept override {
        stop_.emplace(this->select_.child_token(), on_stop{this});
        int expected = 0;
        if (!state_.compare_exchange_strong(expected, 1, acq_rel, acquire)) complete(false);
    }
    void complete(bool with_value) noexcept {
        stop_.reset();
        if (claim()) {
            won(with_value ? wait_end::granted : wait_end::withdrawn);
        } else {
            lost();
        }
    }

private:
    struct on_stop {
        child* self;
        void operator()() const noexcept {
            int expected = 0;
            if (self->state_.compare_exchange_strong(expected, 2, acq_rel, acquire)) return;
            expected = 1;
            if (self->state_.compare_exchange_strong(expected, 2, acq_rel, acquire))
                self->complete(false);
        }
    };
    std::optional<inplace_stop_callback<on_stop>> stop_;
    atomic<int>& state_;  // outlives the child
};

// A select of a receive and of a child. The other threads complete the child, and send and stop.
struct with_child : protocol_model::stop_test<with_child, 3> {
    static constexpr std::size_t slots = no_slots;
    struct joined : joined_select {
        with_child& on;
        receives<slots> receive;
        child other;
        explicit joined(with_child& s)
            : joined_select(&joined::ended),
              on(s),
              receive(operand<receive_request<core<slots>>>{receive_request<core<slots>>(*s.on.a)},
                      *this, 0, 0),
              other(*this, s.state) {}
        static void ended(select_core& c) noexcept {
            auto& self = static_cast<joined&>(c);
            with_child& s = self.on;
            if (self.end() == wait_end::granted && self.winner() == 0)
                s.on.received.fetch_add(*self.receive.take(), relaxed);
            self.~joined();
            s.ends.fetch_add(1, relaxed);
            s.on.ended();
        }
    };

    stage<slots> on{2};
    inplace_stop_source stop;
    atomic<int> state{0};
    atomic<int> ends{0};
    manual_lifetime<joined> select;

    void before() { select.construct(*this); }
    void run(unsigned index) {
        if (index == 0) {
            joined& self = select.get();
            if (self.begin(completion_env(stop.get_token(), execution::instant::never())))
                joined::ended(self);
        } else if (index == 1) {
            int expected = 1;
            if (state.compare_exchange_strong(expected, 2, acq_rel, acquire))
                select.get().other.complete(true);
        } else {
            int value = 10;
            if (on.a->try_send(value) == send_outcome::sent) on.sent.fetch_add(10, relaxed);
            on.ended();
            stop.request_stop();
        }
    }
    void after() {
        model::require(ends.load(relaxed) == 1, "the select has not ended once");
        on.require_balance();
    }
};

// A child that a thread of its own completes, and that does not listen to a stop.
class deaf_child final : public select_child {
public:
    deaf_child(joined_select& s, std::uint32_t number) : select_child(s, number) {}
    void start() noexcept override { started_.store(1, release); }
    // Returns when it was started, and has completed; or if it is not needed.
    void run(atomic<int>& ends) {
        while (started_.load(acquire) == 0) {
            if (ends.load(relaxed) != 0) return;
            spin_hint();
        }
        if (claim()) {
            won(wait_end::granted);
        } else {
            lost();
        }
    }

private:
    atomic<int> started_{0};
};

// Two children complete at the same time: the last one of them and the starter ends the select.
struct two_children : protocol_model::stop_test<two_children, 3> {
    struct joined : joined_select {
        two_children& on;
        deaf_child first{*this, 0};
        deaf_child second{*this, 1};
        explicit joined(two_children& s) : joined_select(&joined::ended), on(s) {}
        static void ended(select_core& c) noexcept {
            auto& self = static_cast<joined&>(c);
            model::require(self.end() == wait_end::granted && self.winner() <= 1,
                           "the outcome is not visible");
            self.on.ends.fetch_add(1, relaxed);
        }
    };
    joined select{*this};
    atomic<int> ends{0};

    void run(unsigned index) {
        if (index == 0) {
            if (select.begin(completion_env())) joined::ended(select);
        } else {
            (index == 1 ? select.first : select.second).run(ends);
        }
    }
    void after() { model::require(ends.load(relaxed) == 1, "the select has not ended once"); }
};

}  // namespace

int main() {
    model::report report("select");
    report.holds<partners<no_slots>>("two partners and a third in two rendezvous", {200'000});
    report.holds<partners<one_slot>>("two partners and a third in two channels", {100'000});
    report.holds<same_object<no_slots>>("a send and a receive of one rendezvous", {50'000});
    report.holds<same_object<one_slot>>("a send and a receive of one channel", {50'000});
    report.holds<with_child>("a receive and another sender", {200'000});
    report.holds<two_children>("two other senders", {100'000});
    report.dies_planted<partners<no_slots>>("shared_choice.claim_twice");
    report.dies_planted<partners<no_slots>>("select.leave_linked");
    report.dies_planted<partners<no_slots>>("select.link_after_stop", {100'000});
    report.dies_weakened<partners<no_slots>>(lock_header, "queue_lock.left");
    report.dies_planted<with_child>("shared_choice.claim_twice");
    report.dies_planted<with_child>("select.leave_linked");
    report.dies_planted<with_child>("select.stop_after_arrival", {100'000});
    report.dies_weakened<two_children>(joined_header, "select.arrive", {100'000});
    return report.finish();
}
