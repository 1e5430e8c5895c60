// Plan: any_scheduler: scheduling, comparing.
#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/parallel_scheduler.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;

TEST(any_scheduler, schedules_on_what_it_holds_and_compares_with_it) {
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

}  // namespace
