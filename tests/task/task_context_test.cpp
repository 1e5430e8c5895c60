// Plan: task_context: which timed scheduler and which deadline a task and its awaits inherit.
#include <coppice/task/internal/task_context.hpp>

#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/task/task.hpp>
#include <coppice/task/wait_for_tasks.hpp>

#include "allocations.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

namespace {

namespace ex = coppice::execution;
using coppice::task;
using coppice::this_thread::sync_wait;

// A scheduler that no thread runs; only its name matters.
struct named_loop {
    ex::run_loop loop;
    auto scheduler() noexcept { return loop.get_scheduler(); }
};

template <class Sndr, class Sch>
auto with_timer(Sndr sndr, Sch sch) {
    return ex::write_env(std::move(sndr), ex::prop(ex::get_timed_scheduler, std::move(sch)));
}
// Runs its operations inline, and has no timers.
template <class Sndr>
auto without_timers(Sndr sndr) {
    return ex::starts_on(ex::inline_scheduler(), std::move(sndr));
}

// Returns the timer that a task so many levels below has.
template <class Env = ex::env<>>
task<ex::any_scheduler, Env> timer_below(int depth) {
    if (depth == 0) co_return co_await ex::read_env(ex::get_timed_scheduler);
    co_return co_await timer_below<Env>(depth - 1);
}
template <class Sndr>
ex::any_scheduler result_of(Sndr sndr) {
    return std::get<0>(*sync_wait(std::move(sndr)));
}

TEST(inherited_timer, is_the_tasks_own_scheduler_if_none_is_named) {
    auto own = []() -> task<bool> {
        const ex::any_scheduler mine = co_await ex::read_env(ex::get_scheduler);
        const ex::any_scheduler below = co_await timer_below(2);
        co_return mine == below;
    };
    EXPECT_EQ(sync_wait(own()), std::tuple(true));
    EXPECT_TRUE(result_of(without_timers(timer_below(1))) == ex::inline_scheduler());
}

TEST(inherited_timer, is_the_one_named_around_the_root_for_all_tasks_below) {
    named_loop l;
    for (const int depth : {0, 1, 3}) {
        EXPECT_TRUE(result_of(with_timer(timer_below(depth), l.scheduler())) == l.scheduler());
        EXPECT_TRUE(result_of(with_timer(without_timers(timer_below(depth)), l.scheduler())) ==
                    l.scheduler());
        EXPECT_TRUE(result_of(without_timers(with_timer(
                        timer_below(depth), ex::any_scheduler(l.scheduler())))) == l.scheduler());
    }
}

TEST(inherited_timer, reaches_tasks_that_run_side_by_side_and_those_behind_senders) {
    named_loop l;
    auto body = [&]() -> task<int> {
        const auto [a, b] = co_await coppice::wait_for_tasks(timer_below(0), timer_below(1));
        const auto [c, d] = co_await ex::when_all(timer_below(0), without_timers(timer_below(1)));
        co_return (a == l.scheduler()) + (b == l.scheduler()) + (c == l.scheduler()) +
            (d == l.scheduler());
    };
    EXPECT_EQ(sync_wait(with_timer(body(), l.scheduler())), std::tuple(4));
}

TEST(inherited_timer, is_the_innermost_named_one) {
    named_loop outer, inner;
    auto body = [&]() -> task<bool> {
        const ex::any_scheduler below = co_await with_timer(timer_below(1), inner.scheduler());
        const ex::any_scheduler here = co_await timer_below(1);
        co_return below == inner.scheduler() && here == outer.scheduler();
    };
    EXPECT_EQ(sync_wait(with_timer(body(), outer.scheduler())), std::tuple(true));
}

TEST(inherited_timer, is_that_of_the_nearest_task_above_if_the_tasks_own_scheduler_has_none) {
    auto child = [](int depth, bool hops) {
        return without_timers([](int d, bool h) -> task<ex::any_scheduler> {
            if (h) co_return co_await without_timers(timer_below(d));
            co_return co_await timer_below(d);
        }(depth, hops));
    };
    auto body = [&]() -> task<bool> {
        const ex::any_scheduler mine = co_await ex::read_env(ex::get_scheduler);
        const ex::any_scheduler one_hop = co_await child(1, false);
        const ex::any_scheduler two_hops = co_await child(1, true);
        co_return mine == one_hop&& mine == two_hops;
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(true));
}

TEST(inherited_timer, an_unnamed_one_has_lower_priority_than_the_tasks_own) {
    ex::run_loop other;
    std::thread runner([&] { other.run(); });
    auto child = [&](auto wrap) {
        return ex::starts_on(other.get_scheduler(), wrap(timer_below(1)));
    };
    auto body = [&]() -> task<bool> {
        const ex::any_scheduler direct = co_await child([](auto t) { return t; });
        const ex::any_scheduler hopped = co_await child([](auto t) {
            return [](auto below) -> task<ex::any_scheduler> {
                co_return co_await without_timers(std::move(below));
            }(std::move(t));
        });
        co_return direct == other.get_scheduler() && hopped == other.get_scheduler();
    };
    EXPECT_EQ(sync_wait(body()), std::tuple(true));
    named_loop l;
    auto named = [&]() -> task<bool> {
        const ex::any_scheduler below = co_await child([](auto t) { return t; });
        co_return below == l.scheduler();
    };
    EXPECT_EQ(sync_wait(with_timer(named(), l.scheduler())), std::tuple(true));
    other.finish();
    runner.join();
}

TEST(inherited_timer, is_unchanged_when_a_task_changes_its_scheduler) {
    named_loop l;
    const auto to_none = [] {
        return ex::change_coroutine_scheduler(ex::task_scheduler(ex::inline_scheduler()));
    };
    auto named = [&]() -> task<bool> {
        co_await to_none();
        const ex::any_scheduler here = co_await ex::read_env(ex::get_timed_scheduler);
        const ex::any_scheduler below = co_await timer_below(1);
        co_return here == l.scheduler() && below == l.scheduler();
    };
    EXPECT_EQ(sync_wait(with_timer(named(), l.scheduler())), std::tuple(true));
    auto unnamed = [&]() -> task<bool> {
        const ex::any_scheduler home = co_await to_none();
        const ex::any_scheduler here = co_await ex::read_env(ex::get_timed_scheduler);
        const ex::any_scheduler below = co_await timer_below(1);
        co_await to_none();
        const ex::any_scheduler again = co_await timer_below(1);
        co_return here == home&& below == home&& again == home;
    };
    EXPECT_EQ(sync_wait(unnamed()), std::tuple(true));
}

struct answering_env {
    ex::run_loop* loop = nullptr;
    template <class Outer>
    explicit answering_env(const Outer&) : loop(answer) {}
    answering_env() = default;
    auto query(ex::get_timed_scheduler_t) const noexcept { return loop->get_scheduler(); }
    static inline ex::run_loop* answer = nullptr;
};

TEST(inherited_timer, is_overridden_by_the_tasks_own_environment) {
    named_loop own, around;
    answering_env::answer = &own.loop;
    auto body = [&]() -> task<bool, answering_env> {
        auto here = co_await ex::read_env(ex::get_timed_scheduler);
        static_assert(std::is_same_v<decltype(here), decltype(own.scheduler())>);
        const ex::any_scheduler same = co_await timer_below<answering_env>(1);
        const ex::any_scheduler plain = co_await timer_below(1);
        co_return here == own.scheduler() && same == own.scheduler() && plain == own.scheduler();
    };
    EXPECT_EQ(sync_wait(with_timer(body(), around.scheduler())), std::tuple(true));
}

// The scheduler of a run_loop, with a type of its own that cannot be default-constructed.
class some_loop {
public:
    using scheduler_concept = ex::scheduler_tag;
    some_loop() = default;
    explicit some_loop(ex::run_loop::scheduler sch) noexcept : sch_(sch) {}
    auto schedule() const noexcept { return sch_->schedule(); }
    auto schedule_after(ex::time_span span) const noexcept { return sch_->schedule_after(span); }
    ex::instant now() const noexcept { return ex::now(*sch_); }
    bool operator==(const some_loop&) const = default;

private:
    std::optional<ex::run_loop::scheduler> sch_;
};
struct on_a_run_loop {
    using scheduler_type = some_loop;
};
struct inline_env {
    using scheduler_type = ex::inline_scheduler;
};

TEST(inherited_timer, passes_through_tasks_whose_scheduler_is_not_an_any_scheduler) {
    named_loop l;
    auto timed = [&]() -> task<bool, on_a_run_loop> {
        // This scheduler is always timed, and needs no other.
        auto mine = co_await ex::read_env(ex::get_timed_scheduler);
        static_assert(std::is_same_v<decltype(mine), some_loop>);
        const ex::any_scheduler below = co_await timer_below(1);
        co_return !(mine == some_loop(l.scheduler())) && below == l.scheduler();
    };
    EXPECT_EQ(sync_wait(with_timer(timed(), l.scheduler())), std::tuple(true));
    auto untimed = [&]() -> task<bool, inline_env> {
        const ex::any_scheduler below = co_await timer_below(1);
        co_return below == l.scheduler();
    };
    EXPECT_EQ(sync_wait(with_timer(untimed(), l.scheduler())), std::tuple(true));
    // Its scheduler has no timers, but its awaiter may have: timeout() finds those.
    using limited = decltype(ex::timeout(ex::just(), ex::time_span(1)));
    static_assert(ex::sender_in<limited, ex::internal::task_env<inline_env>>);
}

struct deadline_env {
    ex::instant deadline = ex::instant::never();
    template <class Outer>
        requires ex::has_query<Outer, ex::get_deadline_t>
    explicit deadline_env(const Outer& outer) : deadline(ex::get_deadline(outer)) {}
    deadline_env() = default;
    ex::instant query(ex::get_deadline_t) const noexcept { return deadline; }
};

TEST(deadline_around_a_task, is_seen_below_the_task_whatever_its_environment_type) {
    const ex::instant soon(7);
    auto plain = []() -> task<ex::instant> { co_return co_await ex::read_env(ex::get_deadline); };
    EXPECT_EQ(sync_wait(ex::write_env(plain(), ex::prop(ex::get_deadline, soon))),
              std::tuple(soon));
    auto child = []() -> task<ex::instant, deadline_env> {
        co_return co_await ex::read_env(ex::get_deadline);
    };
    auto telling = [&]() -> task<ex::instant, deadline_env> { co_return co_await child(); };
    EXPECT_EQ(sync_wait(ex::write_env(telling(), ex::prop(ex::get_deadline, soon))),
              std::tuple(soon));
}

TEST(inherited_timer, is_the_tasks_own_if_the_named_scheduler_has_no_timers) {
    auto body = []() -> task<bool> {
        const ex::any_scheduler mine = co_await ex::read_env(ex::get_scheduler);
        const ex::any_scheduler below = co_await timer_below(1);
        co_return mine == below;
    };
    EXPECT_EQ(sync_wait(with_timer(body(), ex::any_scheduler(ex::inline_scheduler()))),
              std::tuple(true));
}

TEST(inherited_timer, costs_no_allocation) {
    named_loop l;
    EXPECT_TRUE(result_of(with_timer(timer_below(2), l.scheduler())) == l.scheduler());
    const coppice::test::allocation_count count;
    EXPECT_TRUE(result_of(with_timer(timer_below(2), l.scheduler())) == l.scheduler());
    EXPECT_EQ(count.so_far(), 0u);
}

}  // namespace
