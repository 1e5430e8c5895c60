// Plan: a task that has changed its scheduler ends where it was started, however it ends. Its
// waiter sees a stop on its own scheduler, as it does values and errors. Covers stops by an awaited
// operation, and tasks and senders below and around the task.
#include <coppice/task/task.hpp>

#include <coppice/exec/connect.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/task/wait_for_tasks.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "moving_tasks.hpp"
#include "until_stopped.hpp"

namespace {

namespace ex = coppice::execution;
using coppice::task;
using namespace coppice::test;
using coppice::this_thread::sync_wait;

// Notes the thread that destroys it.
struct notes_its_end {
    explicit notes_its_end(thread_id& to) noexcept : ended_on(&to) {}
    notes_its_end(notes_its_end&&) = delete;
    ~notes_its_end() { *ended_on = here(); }
    thread_id* ended_on;
};

// Returns the thread on which a stop of `awaited` arrives.
template <class Sndr>
auto where_it_stops(Sndr awaited) {
    return std::move(awaited) | ex::let_value([](auto&&...) { return ex::just(thread_id()); }) |
           ex::upon_stopped(here);
}

TEST(change_scheduler, a_stop_of_an_awaited_operation_ends_the_task_where_it_was_started) {
    other_thread other;
    for (const auto make :
         {moves_and_stops, moves_and_awaits_one_that_stops, moves_and_awaits_senders_below,
          moves_and_waits_for_two, moves_twice_and_stops, moves_in_line_and_stops}) {
        EXPECT_EQ(sync_wait(where_it_stops(make(other.scheduler()))), std::tuple(here()));
    }
}

TEST(change_scheduler, a_stop_reaches_each_task_above_on_its_own_scheduler) {
    other_thread middle;
    other_thread bottom;
    struct ends {
        thread_id child, parent, root;
    };
    auto child = [](ends& ended, ex::task_scheduler to) -> task<> {
        co_await move_to(to);
        const notes_its_end local(ended.child);
        co_await ex::just_stopped();
    };
    auto parent = [child](ends& ended, ex::task_scheduler to, ex::task_scheduler below) -> task<> {
        co_await move_to(to);
        const notes_its_end local(ended.parent);
        co_await child(ended, below);
    };
    auto root = [parent](ends& ended, ex::task_scheduler to, ex::task_scheduler below) -> task<> {
        const notes_its_end local(ended.root);
        co_await parent(ended, to, below);
    };
    ends ended;
    EXPECT_EQ(sync_wait(where_it_stops(root(ended, middle.scheduler(), bottom.scheduler()))),
              std::tuple(here()));
    EXPECT_EQ(ended.child, bottom.id());
    EXPECT_EQ(ended.parent, middle.id());
    EXPECT_EQ(ended.root, here());
}

TEST(change_scheduler, a_task_continues_at_home_after_a_stop_that_it_awaits_as_a_value) {
    other_thread other;
    auto body = [](ex::task_scheduler to) -> task<bool> {
        const thread_id home = here();
        // The children are connected as senders.
        const bool none =
            !co_await ex::stopped_as_optional(moves_and_stops(to) | ex::then([] { return 1; }));
        const bool at_home = here() == home;
        co_await move_to(to);
        const thread_id there = here();
        const bool none_again = !co_await ex::stopped_as_optional(
            moves_and_stops(ex::task_scheduler(ex::inline_scheduler())) |
            ex::then([] { return 1; }));
        co_return none&& at_home&& none_again&& here() == there;
    };
    EXPECT_EQ(sync_wait(body(other.scheduler())), std::tuple(true));
}

TEST(change_scheduler, a_stop_of_a_child_of_when_all_arrives_where_the_child_was_started) {
    other_thread other;
    thread_id stopped_on;
    auto child = moves_and_stops(other.scheduler()) | ex::let_stopped([&stopped_on] {
                     stopped_on = here();
                     return ex::just_stopped();
                 });
    // The other child waits until it is stopped.
    auto all = ex::when_all(until_stopped(), std::move(child));
    EXPECT_EQ(sync_wait(where_it_stops(std::move(all))), std::tuple(here()));
    EXPECT_EQ(stopped_on, here());
}

TEST(change_scheduler, a_stop_of_a_child_of_wait_for_tasks_arrives_where_it_was_started) {
    other_thread other;
    thread_id ended_on;
    auto parent = [](ex::task_scheduler to, thread_id& ended) -> task<> {
        const notes_its_end local(ended);
        co_await coppice::wait_for_tasks(moves_and_stops(to), stops(), moves_and_stops(to));
    };
    EXPECT_EQ(sync_wait(where_it_stops(parent(other.scheduler(), ended_on))), std::tuple(here()));
    EXPECT_EQ(ended_on, here());
    // Tasks that their owner keeps.
    auto keeps = [](ex::task_scheduler to, thread_id& ended) -> task<> {
        const notes_its_end local(ended);
        task<> first = moves_and_stops(to);
        task<> second = moves_and_awaits_one_that_stops(to);
        co_await coppice::wait_for_tasks(first, second);
    };
    ended_on = thread_id();
    EXPECT_EQ(sync_wait(where_it_stops(keeps(other.scheduler(), ended_on))), std::tuple(here()));
    EXPECT_EQ(ended_on, here());
}

TEST(change_scheduler, a_stop_request_ends_a_task_under_a_timeout_where_it_was_started) {
    other_thread other;
    other_thread stopper;
    for (int i = 0; i != 20; ++i) {
        coppice::inplace_stop_source source;
        auto child = [](ex::task_scheduler to, ex::task_scheduler stops_there,
                        coppice::inplace_stop_source& stopped_by) -> task<> {
            co_await move_to(to);
            co_await ex::when_all(until_stopped(),
                                  ex::schedule(stops_there) | ex::then([&stopped_by]() noexcept {
                                      stopped_by.request_stop();
                                  }));
        };
        thread_id stopped_on;
        auto limited = ex::timeout(
            child(other.scheduler(), stopper.scheduler(), source) | ex::let_stopped([&stopped_on] {
                stopped_on = here();
                return ex::just_stopped();
            }),
            std::chrono::hours(1));
        auto rooted = ex::write_env(
            std::move(limited),
            ex::env(ex::prop(coppice::get_stop_token, source.get_token()),
                    ex::prop(ex::get_timed_scheduler, coppice::test::endless_timers())));
        EXPECT_EQ(
            sync_wait(ex::stopped_as_optional(std::move(rooted) | ex::then([] { return 1; }))),
            std::tuple(std::optional<int>()));
        EXPECT_EQ(stopped_on, here());
    }
}

TEST(change_scheduler, values_and_errors_arrive_where_the_task_was_started) {
    other_thread other;
    enum class end { value, exception, plain };
    struct plain_errors {
        using error_types =
            ex::completion_signatures<ex::set_error_t(std::exception_ptr), ex::set_error_t(int)>;
    };
    auto child = [](ex::task_scheduler to, end how, thread_id& ended) -> task<int, plain_errors> {
        co_await move_to(to);
        {
            const notes_its_end local(ended);
            if (how == end::exception) throw 1;
        }
        if (how == end::plain) co_yield ex::with_error(2);
        co_return 3;
    };
    auto awaits = [child](ex::task_scheduler to, end how,
                          thread_id& ended) -> task<bool, plain_errors> {
        const thread_id home = here();
        try {
            co_await child(to, how, ended);
        } catch (int) {
            co_return how != end::value&& here() == home;
        }
        co_return how == end::value&& here() == home;
    };
    for (const end how : {end::value, end::exception, end::plain}) {
        thread_id ended;
        EXPECT_EQ(sync_wait(awaits(other.scheduler(), how, ended)), std::tuple(true));
        EXPECT_EQ(ended, other.id());
        EXPECT_EQ(
            sync_wait(child(other.scheduler(), how, ended) | ex::then([](int) { return here(); }) |
                      ex::upon_error([](auto&&) { return here(); })),
            std::tuple(here()));
    }
}

// A receiver that notes the thread on which it is completed.
struct noted {
    ex::task_scheduler home;
    coppice::inplace_stop_source source;
    thread_id stopped_on;
};
class noting_receiver {
    struct environment {
        noted* note;
        ex::task_scheduler query(ex::get_start_scheduler_t) const noexcept { return note->home; }
        coppice::inplace_stop_token query(coppice::get_stop_token_t) const noexcept {
            return note->source.get_token();
        }
    };

public:
    using receiver_concept = ex::receiver_tag;
    explicit noting_receiver(noted& note) noexcept : note_(&note) {}
    void set_value() && noexcept { ADD_FAILURE() << "a value"; }
    void set_error(std::exception_ptr) && noexcept { ADD_FAILURE() << "an error"; }
    void set_stopped() && noexcept { note_->stopped_on = here(); }
    environment get_env() const noexcept { return {note_}; }

private:
    noted* note_;
};

TEST(change_scheduler, a_stop_request_while_the_stop_goes_home_has_no_effect) {
    ex::run_loop home;
    noted note{ex::task_scheduler(home.get_scheduler()), {}, {}};
    std::optional<other_thread> other(std::in_place);
    const thread_id there = other->id();
    thread_id ended;
    auto body = [](ex::task_scheduler to, thread_id& ended_on) -> task<> {
        co_await move_to(to);
        const notes_its_end local(ended_on);
        co_await ex::just_stopped();
    };
    auto operation = ex::connect(body(other->scheduler(), ended), noting_receiver(note));
    ex::start(operation);
    other.reset();  // the stop has left the thread, and waits in the loop
    EXPECT_EQ(ended, there);
    EXPECT_EQ(note.stopped_on, thread_id());
    note.source.request_stop();
    EXPECT_EQ(note.stopped_on, thread_id());
    home.finish();
    home.run();
    EXPECT_EQ(note.stopped_on, here());
}

// A scheduler that completes each schedule with a stop, inside start().
struct refusing_scheduler {
    using scheduler_concept = ex::scheduler_tag;
    struct attrs {
        refusing_scheduler query(ex::get_completion_scheduler_t<ex::set_value_t>) const noexcept {
            return refusing_scheduler{id};
        }
        int id;
    };
    template <class Rcvr>
    struct operation {
        using operation_state_concept = ex::operation_state_tag;
        void start() & noexcept { ex::set_stopped(std::move(rcvr)); }
        Rcvr rcvr;
    };
    struct sender {
        using sender_concept = ex::sender_tag;
        template <class, class...>
        static consteval auto get_completion_signatures() {
            return ex::completion_signatures<ex::set_value_t(), ex::set_stopped_t()>();
        }
        attrs get_env() const noexcept { return {id}; }
        template <class Rcvr>
        operation<Rcvr> connect(Rcvr rcvr) const {
            return {std::move(rcvr)};
        }
        int id;
    };
    sender schedule() const noexcept { return {id}; }
    bool operator==(const refusing_scheduler&) const = default;
    int id;
};
struct refusing {
    using scheduler_type = refusing_scheduler;
};

TEST(change_scheduler, a_stop_ends_nested_tasks_whose_homes_refuse_work_in_constant_stack) {
    std::uintptr_t low = UINTPTR_MAX;
    std::uintptr_t high = 0;
    struct notes_its_depth {
        ~notes_its_depth() {
            const auto at = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
            *low = std::min(*low, at);
            *high = std::max(*high, at);
        }
        std::uintptr_t* low;
        std::uintptr_t* high;
    };
    // A thousand tasks that wait for one another, each on a scheduler of its own.
    std::function<task<void, refusing>(int)> below = [&](int left) -> task<void, refusing> {
        co_await ex::change_coroutine_scheduler(refusing_scheduler{left});
        const notes_its_depth depth{&low, &high};
        if (left != 0) co_await below(left - 1);
        co_await ex::just_stopped();
    };
    EXPECT_FALSE(sync_wait(
        ex::write_env(below(1000), ex::prop(ex::get_start_scheduler, refusing_scheduler{-1}))));
    EXPECT_LT(high - low, 200u * 1024);
}

}  // namespace
