// Plan: any_scheduler: scheduling, comparing, timers.
#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/parallel_scheduler.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/sync_wait.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace {

namespace ex = coppice::execution;
using namespace std::chrono_literals;

TEST(any_scheduler, schedules_on_the_held_scheduler_and_compares_equal_to_it) {
    static_assert(ex::scheduler<ex::any_scheduler>);
    static_assert(ex::infallible_scheduler<ex::any_scheduler, ex::env<>>);
    probes::by_hand_context context;
    probes::by_hand_context other;
    const ex::any_scheduler sch = context.get_scheduler();
    const ex::any_scheduler copy = sch;
    EXPECT_TRUE(sch == copy);
    EXPECT_TRUE(sch == context.get_scheduler());
    EXPECT_FALSE(sch == ex::any_scheduler(other.get_scheduler()));
    EXPECT_FALSE(sch == ex::any_scheduler(ex::inline_scheduler()));
    probes::record r;
    auto op = ex::connect(ex::schedule(copy), probes::receiver<>(r));
    ex::start(op);
    EXPECT_EQ(r.said(), "");
    context.run_one();
    EXPECT_EQ(r.said(), "value()");
}

TEST(any_scheduler, has_timers_if_the_held_scheduler_has) {
    static_assert(ex::timed_scheduler<ex::any_scheduler>);
    static_assert(!ex::certainly_timed_scheduler<ex::any_scheduler>);
    static_assert(ex::certainly_timed_scheduler<ex::run_loop::scheduler>);
    EXPECT_FALSE(ex::any_scheduler(ex::inline_scheduler()).has_timers());
    const ex::instant before = ex::monotonic_now();
    auto wait = ex::read_env(ex::get_scheduler) | ex::let_value([&](const auto& loop) {
                    const ex::any_scheduler timed = loop;
                    EXPECT_TRUE(timed.has_timers());
                    EXPECT_GE(ex::now(timed), before);
                    return ex::schedule_after(timed, 1ms);
                });
    coppice::this_thread::sync_wait(std::move(wait));
    EXPECT_GE(ex::monotonic_now(), before + ex::time_span(1ms));
}

TEST(any_scheduler, asking_for_a_timer_ends_the_process_if_there_is_none) {
    const ex::any_scheduler sch{ex::inline_scheduler()};
    EXPECT_DEATH((void)ex::schedule_after(sch, 1ms), "asked of a scheduler that has none");
    EXPECT_DEATH((void)ex::now(sch), "asked of a scheduler that has none");
}

}  // namespace
