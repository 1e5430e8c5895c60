// What the models of the stop sources share: sleepers, and shapes that every family runs.
#pragma once
// Each shape is one claim of the room, as two or three threads see it. A family says how to get a
// token; see single_model.cpp. Data that a callback touches is plain, so the checker reports a race
// if the end of the callback is not ordered before the return of its destructor, or its beginning
// not after its construction. Atomics of dead objects are marked, and a later access is reported.
// Objects are therefore destroyed in place, because compilers omit the marks in memory that is
// freed.

#include "model.hpp"

#include <coppice/base/lifetime.hpp>
#include <coppice/stop/concepts.hpp>
#include <coppice/stop/internal/further.hpp>
#include <coppice/stop/internal/running.hpp>
#include <coppice/stop/internal/sleepers.hpp>

#include <memory>
#include <optional>

namespace coppice::protocol_model {

using namespace coppice::internal;

using model::effort;
using model::require;
using model::test;

// More schedules than usual: some of these paths need a dozen steps of one thread in a row.
inline constexpr effort far{.iterations = 300'000};

template <class Derived, int Threads>
struct stop_test : test<Derived, Threads> {
    stop_sleepers sleepers;
    stop_list further;
    stop_test() {
        stop_sleepers::current() = &sleepers;
        installed_further_lock() = &further;
    }
    void thread(unsigned index) {
        // A mutant that died may have left its chain behind.
        thread_slot<running_request, running_request*>() = nullptr;
        static_cast<Derived*>(this)->run(index);
    }
};

template <class Family, class F>
using callback_of = stop_callback_for_t<typename Family::token, F>;

// One thread requests; another registers and removes at the same place, again and again. A running
// callback sees its data. When it is gone, its memory is free for reuse.
template <class Family, int Rounds = 2>
struct register_and_remove : stop_test<register_and_remove<Family, Rounds>, 2> {
    typename Family::source source;
    plain<int> before_request;
    plain<int> data;  // the callback's: written before its registration and after its removal

    void before() { before_request.write(0); }
    void run(unsigned index) {
        if (index == 0) {
            before_request.write(1);
            require(source.request_stop(), "the only request lost");
            return;
        }
        for (int round = 0; round != Rounds; ++round) {
            const bool late = source.stop_requested();
            if (late) require(before_request.read() == 1, "saw the stop without its past");
            data.write(round);
            int ran = 0;
            {
                auto f = [&, round] {
                    require(data.read() == round, "ran before it was constructed");
                    data.write(round);
                    ++ran;
                };
                callback_of<Family, decltype(f)> callback(Family::token_of(source), f);
                if (late) require(ran == 1, "a late callback did not run in its constructor");
            }
            data.write(-1);
            require(ran <= 1, "ran twice");
        }
    }
    void after() { require(source.stop_requested(), "a stop was forgotten"); }
};

// A request runs a callback that stays registered, whichever of the two comes first. Its destructor
// then finds it done, and its effects are visible.
template <class Family>
struct no_stop_is_lost : stop_test<no_stop_is_lost<Family>, 2> {
    typename Family::source source;
    plain<int> data;
    void run(unsigned index) {
        if (index == 0) {
            source.request_stop();
            return;
        }
        atomic<int> ran{0};
        {
            auto f = [&] {
                data.write(1);
                ran.store(1, relaxed);
            };
            callback_of<Family, decltype(f)> callback(Family::token_of(source), f);
            while (ran.load(relaxed) == 0) spin_hint();  // a lost stop is reported as a livelock
            for (int i = 0; i != 3; ++i) spin_hint();
        }
        data.write(2);
    }
};

// Once a stop is visible, a callback runs in its constructor. The requester, which may still be
// visiting slots, does not take it.
template <class Family>
struct late_callback : stop_test<late_callback<Family>, 2> {
    typename Family::source source;
    void run(unsigned index) {
        if (index == 0) {
            source.request_stop();
            return;
        }
        while (!source.stop_requested()) spin_hint();
        bool ran = false;
        bool constructed = false;
        auto f = [&] {
            require(rl::ctx().threadx_->index_ == 1, "a late callback was left to the requester");
            require(!constructed, "a late callback ran after its constructor");
            ran = true;
        };
        callback_of<Family, decltype(f)> callback(Family::token_of(source), f);
        constructed = true;
        require(ran, "a late callback did not run in its constructor");
    }
};

// One of two requests wins, and the loser sees the stop. A third thread registers meanwhile.
template <class Family>
struct racing_requests : stop_test<racing_requests<Family>, 3> {
    typename Family::source source;
    int wins[2]{};
    plain<int> data;
    int runs = 0;
    void run(unsigned index) {
        if (index < 2) {
            wins[index] = source.request_stop();
            require(source.stop_requested(), "a request returned before the stop was visible");
            return;
        }
        data.write(1);
        {
            auto f = [&] {
                data.write(data.read() + 1);
                ++runs;
            };
            callback_of<Family, decltype(f)> callback(Family::token_of(source), f);
        }
        data.write(0);
    }
    void after() {
        require(wins[0] + wins[1] == 1, "not exactly one request won");
        require(runs <= 1, "ran twice");
    }
};

// The destructor waits while the callback runs on another thread, even if it has to sleep.
template <class Family>
struct remove_while_running : stop_test<remove_while_running<Family>, 2> {
    typename Family::source source;
    struct on_stop {
        remove_while_running* self;
        void operator()() noexcept {
            self->data.write(1);
            spin_hint();  // long enough for the other thread to fall asleep
            spin_hint();
            self->data.write(2);
        }
    };
    // Not on a stack, so that a mutant that runs it too late still finds it.
    std::optional<callback_of<Family, on_stop>> registered;
    atomic<int> entered{0};
    plain<int> data;
    void run(unsigned index) {
        if (index == 0) {
            registered.emplace(Family::token_of(source), on_stop{this});
            entered.store(1, release);
            registered.reset();
            data.write(3);
        } else {
            while (entered.load(acquire) == 0) spin_hint();
            source.request_stop();
        }
    }
};

// A callback removes itself: no thread waits, and the requester does not touch it again. Another
// thread looks at the source until the stop, then registers late.
template <class Family>
struct self_removal : stop_test<self_removal<Family>, 2> {
    typename Family::source source;
    void run(unsigned index) {
        if (index == 0) {
            struct operation {
                struct on_stop {
                    operation* self;
                    void operator()() noexcept {
                        operation* const gone = self;
                        gone->callback.reset();
                        std::destroy_at(gone);
                    }
                };
                std::optional<callback_of<Family, on_stop>> callback;
            };
            manual_lifetime<operation> storage;
            operation* const op = &storage.construct();
            op->callback.emplace(Family::token_of(source), typename operation::on_stop{op});
            require(source.request_stop(), "the only request lost");
        } else {
            while (!source.stop_requested()) spin_hint();
        }
    }
};

// The function of a callback destroys the source and makes a new one in its place. The running
// request does not touch the new one.
template <class Family>
struct source_dies_inside : stop_test<source_dies_inside<Family>, 2> {
    manual_lifetime<typename Family::source> storage;
    atomic<int> over{0};
    void run(unsigned index) {
        if (index == 1) {
            while (over.load(acquire) == 0) spin_hint();
            return;
        }
        typename Family::source& source = storage.construct();
        {
            auto f = [this] {
                storage.destroy();
                storage.construct();
            };
            callback_of<Family, decltype(f)> callback(Family::token_of(source), f);
            require(source.request_stop(), "the only request lost");
        }
        {
            bool ran = false;
            auto f = [&ran] { ran = true; };
            callback_of<Family, decltype(f)> callback(Family::token_of(storage.get()), f);
            require(!ran, "a request has touched the next source");
        }
        storage.destroy();
        over.store(1, release);
    }
};

// The shape of when_all. A parent forwards its stop to the child source. Each child's callback, or
// the child itself, completes the child once. The last completion removes the parent's callback and
// frees everything, inside a callback or outside. Without Complete, only the stop completes the
// child.
template <class Parent, class Child, bool Complete = true>
struct forward_and_destroy : stop_test<forward_and_destroy<Parent, Child, Complete>, 2> {
    struct operation {
        struct forward {
            operation* self;
            void operator()() noexcept { self->child.request_stop(); }
        };
        struct complete_child {
            operation* self;
            void operator()() noexcept { self->complete(); }
        };
        typename Child::source child;
        std::optional<callback_of<Parent, forward>> from_parent;
        std::optional<callback_of<Child, complete_child>> on_stop;
        atomic<int> completed{0};
        atomic<int> pending{2};
        plain<int> data{0};

        // The child completes through its stop callback or by itself, whichever comes first.
        void complete() noexcept {
            if (completed.exchange(1, acq_rel) != 0) return;
            on_stop.reset();
            data.write(data.read() + 1);
            arrive();
        }
        void arrive() noexcept {
            if (pending.fetch_sub(1, acq_rel) != 1) return;
            from_parent.reset();
            data.write(data.read() + 1);
            std::destroy_at(this);
        }
    };
    typename Parent::source parent;
    manual_lifetime<operation> storage;
    operation* op = nullptr;

    void before() {
        op = &storage.construct();
        op->from_parent.emplace(Parent::token_of(parent), typename operation::forward{op});
        op->on_stop.emplace(Child::token_of(op->child), typename operation::complete_child{op});
    }
    void run(unsigned index) {
        if (index == 0) {
            parent.request_stop();
        } else {
            if (Complete) op->complete();
            op->arrive();  // the second child, which never registered a callback
        }
    }
};

}  // namespace coppice::protocol_model
