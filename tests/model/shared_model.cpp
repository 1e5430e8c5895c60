// The model of the shared source: what keeps the state alive, growth of stripes, reuse of nodes.
#include "stop_model.hpp"

#include <coppice/stop/inplace.hpp>
#include <coppice/stop/shared.hpp>

// A deadline is a mutex and a thread; it asks of a state only what links ask too. Here it is only
// an object to which a state refers.
class coppice::internal::stop_deadline {
public:
    plain<int> constructed{1};
};
void coppice::internal::disarm(stop_deadline&) noexcept {}
void coppice::internal::destroy(stop_deadline&) noexcept {}
bool coppice::internal::deadline_pending(const stop_deadline&) noexcept {
    return false;
}

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
using namespace model;

struct shared {
    using source = stop_source;
    using token = stop_token;
    static token token_of(const source& s) { return s.get_token(); }
};
struct inplace {
    using source = inplace_stop_source;
    using token = inplace_stop_token;
    static token token_of(const source& s) { return s.get_token(); }
};

constexpr const char* state = "include/coppice/stop/internal/state.hpp";
constexpr const char* stripes = "include/coppice/stop/internal/stripes.hpp";
constexpr const char* list = "include/coppice/stop/internal/list.hpp";
constexpr const char* subscriptions = "include/coppice/stop/subscription.hpp";

template <class Derived, int Threads>
struct shared_test : stop_test<Derived, Threads> {
    void thread(unsigned index) {
        thread_slot<stop_state, std::size_t>() = 0;  // every thread starts at the first stripe
        stop_test<Derived, Threads>::thread(index);
    }
};

// Handles and a callback end on different threads, in any order. The state dies once, at the end,
// and after everything that they have read in it.
template <bool Stop>
struct last_owner : shared_test<last_owner<Stop>, 3> {
    std::optional<stop_source> source;
    std::optional<stop_token> tokens[2];
    void before() {
        source.emplace();
        for (auto& token : tokens) token.emplace(source->get_token());
        if (Stop) source->request_stop(stop_cause{1, "before"});
    }
    void run(unsigned index) {
        if (index == 0) source.reset();
        if (index == 1) {
            require(tokens[0]->cause().code == Stop,
                    "the cause is not that of the winning request");
            tokens[0].reset();
        }
        if (index == 2) {
            auto f = [] {};
            std::optional<stop_callback<decltype(f)>> callback(std::in_place, *tokens[1], f);
            tokens[1].reset();
            callback.reset();
        }
    }
};

// The last source is dropped inside a callback while another thread removes its own callback.
struct last_source_in_callback : shared_test<last_source_in_callback, 2> {
    std::optional<stop_source> source;
    std::optional<stop_token> token;
    void before() {
        source.emplace();
        token.emplace(source->get_token());
    }
    void run(unsigned index) {
        if (index == 0) {
            auto f = [this] { source.reset(); };
            stop_callback<decltype(f)> callback(source->get_token(), f);
            require(source->request_stop(), "the only request lost");
        } else {
            plain<int> data;
            {
                auto f = [&] { data.write(1); };
                std::optional<stop_callback<decltype(f)>> callback(std::in_place, *token, f);
                token.reset();
                callback.reset();
            }
            data.write(2);
        }
    }
};

// A chain of three. One thread stops its head, another drops the middle and stops the last source.
// The callback of the last one runs once, and the stop is visible there before the head's request
// returns.
struct chain : shared_test<chain, 2> {
    stop_source head;
    std::optional<stop_source> middle;
    std::optional<stop_source> last;
    atomic<int> runs{0};
    void before() {
        middle.emplace(stop_source::linked_to(head.get_token()));
        last.emplace(stop_source::linked_to(middle->get_token()));
    }
    void run(unsigned index) {
        if (index == 0) {
            auto f = [this] { runs.fetch_add(1, relaxed); };
            stop_callback<decltype(f)> callback(last->get_token(), f);
            head.request_stop();
            require(callback_token().stop_requested(), "a stop has not reached the end");
            while (runs.load(relaxed) == 0) spin_hint();
        } else {
            middle.reset();
            stop_source(*last).request_stop();
        }
    }
    stop_token callback_token() { return last->get_token(); }
    void after() { require(runs.load(relaxed) == 1, "a callback of a chain did not run once"); }
};
// As above, but no other thread stops the last source.
struct undisturbed_chain : shared_test<undisturbed_chain, 2> {
    stop_source head;
    std::optional<stop_source> last;
    atomic<int> runs{0};
    void before() {
        const stop_source middle = stop_source::linked_to(head.get_token());
        last.emplace(stop_source::linked_to(middle.get_token()));
    }
    void run(unsigned index) {
        if (index == 0) {
            head.request_stop();
            return;
        }
        auto f = [this] { runs.fetch_add(1, relaxed); };
        stop_callback<decltype(f)> callback(last->get_token(), f);
        last.reset();
        while (runs.load(relaxed) == 0) spin_hint();
    }
};

// A parent stops while the last handle of the linked source is dropped. The request is refused, or
// ends the state.
template <class Parent>
struct linked_dies : shared_test<linked_dies<Parent>, 2> {
    typename Parent::source parent;
    std::optional<stop_source> linked;
    plain<int> data;
    void before() {
        linked.emplace(stop_source::linked_to(Parent::token_of(parent)));
        linked->get_token().subscribe([] {});
    }
    void run(unsigned index) {
        if (index == 0) {
            parent.request_stop();
        } else {
            auto f = [this] { data.write(1); };
            std::optional<stop_callback<decltype(f)>> callback(std::in_place, linked->get_token(),
                                                               f);
            linked.reset();
            callback.reset();
            data.write(2);
        }
    }
};

// Two of three threads meet at the lock, so a table grows, while the third requests.
template <int Rounds>
struct growth : shared_test<growth<Rounds>, 3> {
    stop_source source;
    plain<int> data[2];
    void run(unsigned index) {
        if (index == 2) {
            require(source.request_stop(), "the only request lost");
            return;
        }
        for (int round = 0; round != Rounds; ++round) {
            data[index].write(0);
            int ran = 0;
            {
                const bool late = source.stop_requested();
                auto f = [&, index] {
                    data[index].write(1);
                    require(!late || rl::ctx().threadx_->index_ == index,
                            "a late callback was left to the requester");
                    ++ran;
                };
                stop_callback<decltype(f)> callback(source.get_token(), f);
                if (late) require(ran == 1, "a late callback did not run in its constructor");
            }
            data[index].write(2);
            require(ran <= 1, "ran twice");
        }
    }
};

// Two callbacks stay until they have run. A stop that is lost in a stripe is a livelock.
struct no_stop_is_lost_in_a_stripe : shared_test<no_stop_is_lost_in_a_stripe, 3> {
    stop_source source;
    void run(unsigned index) {
        if (index == 2) {
            source.request_stop();
            return;
        }
        {
            stop_callback<void (*)()> meets(source.get_token(), +[] {});
        }
        atomic<int> ran{0};
        auto f = [&] { ran.store(1, relaxed); };
        stop_callback<decltype(f)> callback(source.get_token(), f);
        while (ran.load(relaxed) == 0) spin_hint();
    }
};

// A node is reused. The late copy of its old handle never ends the new subscription.
struct late_handle : shared_test<late_handle, 2> {
    stop_source source;
    std::optional<stop_subscription> first;
    std::optional<stop_subscription> copy;
    bool second_ran = false;
    bool first_ran = false;
    void before() {
        first.emplace(source.get_token().subscribe([this] { first_ran = true; }));
        copy.emplace(*first);
    }
    void run(unsigned index) {
        if (index == 0) {
            const unsubscribed how = first->unsubscribe();
            require(how == unsubscribed::removed, "no thread requested a stop");
            stop_subscription second = source.get_token().subscribe([this] { second_ran = true; });
            source.request_stop();
            require(second_ran, "another subscription was ended");
        } else {
            const unsubscribed how = copy->unsubscribe();
            require(how == unsubscribed::removed, "the first subscription was not removed");
        }
    }
    void after() {
        require(!first_ran, "a removed function ran");
        first.reset();
        copy.reset();
    }
};

// A subscription ends while a request runs. The answer says what happened.
template <bool Wait>
struct unsubscribe_answers : shared_test<unsubscribe_answers<Wait>, 2> {
    stop_source source;
    plain<int> data;
    void run(unsigned index) {
        if (index == 1) {
            source.request_stop();
            return;
        }
        atomic<int> runs{0};
        stop_subscription sub = source.get_token().subscribe([&] {
            data.write(1);
            spin_hint();
            data.write(2);
            runs.fetch_add(1, relaxed);
        });
        unsubscribed how = Wait ? sub.unsubscribe() : sub.try_unsubscribe();
        if (how == unsubscribed::running) {
            require(!Wait, "did not wait");
            how = sub.unsubscribe();
        }
        require(runs.load(relaxed) == (how == unsubscribed::ran), "the answer is wrong");
        data.write(3);
    }
};

// Every thread that sees the stop sees the winner's cause.
struct one_cause : shared_test<one_cause, 3> {
    stop_source source;
    int winner = 0;
    void run(unsigned index) {
        if (index == 2) {
            const stop_token token = source.get_token();
            if (token.stop_requested()) require(token.cause().code != 0, "a stop without a cause");
            return;
        }
        const int code = static_cast<int>(index) + 1;
        if (source.request_stop(stop_cause{code, "model"})) winner = code;
        require(source.cause().code != 0, "a losing request saw no cause");
    }
    void after() {
        require(source.cause().code == winner, "the cause is that of a losing request");
    }
};

// Two threads install a first deadline. Both use the same one, and find it constructed.
struct one_deadline : shared_test<one_deadline, 2> {
    stop_state state;
    stop_deadline* deadlines[2]{};
    stop_deadline* used[2]{};
    void run(unsigned index) {
        used[index] = state.deadline();
        if (used[index] == nullptr) {
            deadlines[index] = new stop_deadline;
            used[index] = state.install(*deadlines[index]);
            if (used[index] == nullptr) used[index] = deadlines[index];
        }
        require(used[index]->constructed.read() == 1, "a deadline that is not constructed");
    }
    void after() {
        require(used[0] == used[1], "two deadlines");
        for (stop_deadline* d : deadlines) delete d;
    }
};

// Callbacks in two stripes outlive the last handle. The state dies with the last of them.
struct members_of_two_stripes : shared_test<members_of_two_stripes, 3> {
    std::optional<stop_source> source;
    std::optional<stop_token> tokens[2];
    void before() {
        source.emplace();
        for (auto& token : tokens) token.emplace(source->get_token());
    }
    void run(unsigned index) {
        if (index == 2) {
            source.reset();
            return;
        }
        {
            stop_callback<void (*)()> meets(*tokens[index], +[] {});
        }
        std::optional<stop_callback<void (*)()>> callback(std::in_place, *tokens[index], +[] {});
        tokens[index].reset();
        callback.reset();
    }
};

// A reset races with a parent's stop, as with a deadline. If it returns true, no stop came before.
struct reset_answers : shared_test<reset_answers, 2> {
    stop_source source;
    void run(unsigned index) {
        if (index == 0) {
            source.request_stop();
        } else {
            const bool requested = source.stop_requested();
            const bool reset = source.try_reset();
            require(!(requested && reset), "a stopped source was reset");
            stop_callback<void (*)()> callback(source.get_token(), +[] {});
            require(!source.try_reset(), "a source with a callback was reset");
        }
    }
};

}  // namespace

int main() {
    report report("shared");
    report.holds<register_and_remove<shared>>("register and remove against request", far);
    report.holds<no_stop_is_lost<shared>>("no stop is lost", far);
    report.holds<late_callback<shared>>("a late callback runs in its constructor", far);
    report.holds<racing_requests<shared>>("one of racing requests wins", far);
    report.holds<remove_while_running<shared>>("removal waits for a running callback", far);
    report.holds<self_removal<shared>>("a callback removes itself", far);
    report.holds<forward_and_destroy<inplace, shared>>("the last completion frees all", far);
    report.holds<forward_and_destroy<shared, inplace>>("the same under a shared parent", far);
    report.holds<last_owner<false>>("the last handle or callback ends the state", far);
    report.holds<last_owner<true>>("the same after a stop", far);
    report.holds<last_source_in_callback>("the last source ends in a callback", far);
    report.holds<linked_dies<inplace>>("a linked source ends while its parent stops", far);
    report.holds<linked_dies<shared>>("the same under a shared parent", far);
    report.holds<chain>("a chain is stopped at both ends", {.iterations = 100'000});
    report.holds<undisturbed_chain>("a stop reaches the end of a chain", {.iterations = 100'000});
    report.holds<growth<2>>("stripes grow during a stop", far);
    report.holds<no_stop_is_lost_in_a_stripe>("no stop is lost in a stripe", far);
    report.holds<late_handle>("a late handle has no effect", far);
    report.holds<unsubscribe_answers<true>>("unsubscribe tells the truth", far);
    report.holds<unsubscribe_answers<false>>("try_unsubscribe tells the truth", far);
    report.holds<members_of_two_stripes>("callbacks in stripes outlive the handles", far);
    report.holds<one_deadline>("there is one deadline", far);
    report.holds<one_cause>("every thread sees the winner's cause", far);
    report.holds<reset_answers>("reset fails after a stop", far);

    report.dies_weakened<growth<2>>(list, "stop.list", far);
    report.dies_weakened<one_cause>(list, "stop.requested", far);
    report.dies_weakened<growth<2>>(stripes, "stop.table", far);
    report.dies_weakened<last_owner<true>>(state, "stop.handle", far);
    report.dies_weakened<unsubscribe_answers<true>>(subscriptions, "stop.done", far);
    report.dies_weakened<one_deadline>(state, "stop.deadline", far);
    report.dies_planted<linked_dies<inplace>>("shared.stop_the_dead", far);
    report.dies_planted<undisturbed_chain>("shared.forget_linked", far);
    report.dies_planted<members_of_two_stripes>("shared.forget_members", far);
    report.dies_planted<growth<2>>("shared.steal_late_callback", far);
    report.dies_planted<growth<2>>("shared.grow_twice", far);
    report.dies_planted<no_stop_is_lost_in_a_stripe>("shared.skip_table", far);
    report.dies_planted<late_handle>("shared.ignore_generation", far);
    return report.finish();
}
