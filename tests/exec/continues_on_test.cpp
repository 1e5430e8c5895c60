// Plan: continues_on [exec.continues.on]: each completion moves to the scheduler; scheduling fails.
#include <coppice/exec/connect.hpp>
#include <coppice/exec/continues_on.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/then.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;
using probes::by_hand_context;
using probes::outcome;
using probes::refusing_scheduler;

TEST(exec_continues_on, completes_on_the_scheduler_with_the_childs_results) {
    by_hand_context context;
    probes::record r;
    auto op =
        ex::connect(ex::just(1, std::string("two")) | ex::continues_on(context.get_scheduler()),
                    probes::receiver<>(r));
    ex::start(op);
    EXPECT_EQ(r.said(), "");
    context.run_one();
    EXPECT_EQ(r.said(), "value(1, two)");
}

TEST(exec_continues_on, errors_and_stops_also_arrive_on_the_scheduler) {
    by_hand_context context;
    probes::record r;
    auto op = ex::connect(ex::just_error(3) | ex::continues_on(context.get_scheduler()),
                          probes::receiver<>(r));
    auto op2 = ex::connect(ex::just_stopped() | ex::continues_on(context.get_scheduler()),
                           probes::receiver<>(r));
    ex::start(op);
    ex::start(op2);
    EXPECT_EQ(r.said(), "");
    context.run_all();
    EXPECT_EQ(r.said(), "error(3) and stopped");
}

TEST(exec_continues_on, results_that_throw_when_stored_become_an_error_on_the_scheduler) {
    by_hand_context context;
    probes::record r;
    auto sndr = ex::just() | ex::then([&]() noexcept -> const probes::throwing_copy& {
                    static probes::throwing_copy negative(1);
                    negative.value = -1;
                    return negative;
                });
    auto op = ex::connect(std::move(sndr) | ex::continues_on(context.get_scheduler()),
                          probes::receiver<>(r));
    ex::start(op);
    EXPECT_EQ(r.said(), "");
    context.run_all();
    EXPECT_EQ(r.said(), "error(exception copy)");
}

TEST(exec_continues_on, a_scheduler_that_fails_completes_with_its_error) {
    EXPECT_EQ(outcome(ex::just(1) | ex::continues_on(refusing_scheduler())), "error(full)");
    EXPECT_EQ(outcome(ex::starts_on(refusing_scheduler(), ex::just(1))), "error(full)");
    using sndr = decltype(ex::just(1) | ex::continues_on(refusing_scheduler()));
    static_assert(std::is_same_v<
                  ex::completion_signatures_of_t<sndr, ex::env<>>,
                  ex::completion_signatures<ex::set_value_t(int), ex::set_error_t(std::string)>>);
}

TEST(exec_continues_on, its_attributes_name_the_scheduler) {
    by_hand_context context;
    const auto sndr = ex::just() | ex::continues_on(context.get_scheduler());
    EXPECT_EQ(ex::get_completion_scheduler<ex::set_value_t>(ex::get_env(sndr)),
              context.get_scheduler());
    EXPECT_EQ(ex::get_completion_scheduler<ex::set_value_t>(ex::get_env(sndr), ex::env<>()),
              context.get_scheduler());
    auto& [tag, sch, child] = sndr;
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(tag)>, ex::continues_on_t>);
    static_assert(std::is_same_v<ex::tag_of_t<decltype(child)>, ex::schedule_from_t>);
    EXPECT_EQ(sch, context.get_scheduler());
}

}  // namespace
