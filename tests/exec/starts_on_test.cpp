// Plan: starts_on [exec.starts.on]: where the child runs and what its environment answers.
#include <coppice/exec/connect.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/then.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;
using probes::by_hand_context;

TEST(exec_starts_on, starts_the_child_on_the_scheduler_and_says_so_in_its_environment) {
    by_hand_context context;
    probes::record r;
    auto op =
        ex::connect(ex::starts_on(context.get_scheduler(), ex::read_env(ex::get_start_scheduler)) |
                        ex::then([&](auto sch) { return sch == context.get_scheduler(); }),
                    probes::receiver<>(r));
    ex::start(op);
    EXPECT_EQ(r.said(), "");
    context.run_one();
    EXPECT_EQ(r.said(), "value(true)");
}

TEST(exec_starts_on, completes_where_its_child_does) {
    by_hand_context context;
    const auto sndr = ex::starts_on(context.get_scheduler(), ex::just());
    EXPECT_EQ(ex::get_completion_scheduler<ex::set_value_t>(ex::get_env(sndr), ex::env<>()),
              context.get_scheduler());
}

}  // namespace
