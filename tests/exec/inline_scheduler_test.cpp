// Plan: inline_scheduler completes in start.
#include <coppice/exec/inline_scheduler.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;
using probes::by_hand_context;
using probes::outcome;

TEST(exec_inline_scheduler, completes_in_start_and_all_are_equal) {
    EXPECT_EQ(outcome(ex::schedule(ex::inline_scheduler())), "value()");
    EXPECT_TRUE(ex::inline_scheduler() == ex::inline_scheduler());
    static_assert(
        std::is_same_v<ex::completion_signatures_of_t<ex::schedule_result_t<ex::inline_scheduler>>,
                       ex::completion_signatures<ex::set_value_t()>>);
    by_hand_context context;
    const auto e = ex::prop(ex::get_scheduler, context.get_scheduler());
    EXPECT_EQ(ex::get_completion_scheduler<ex::set_value_t>(ex::inline_scheduler(), e),
              context.get_scheduler());
}

}  // namespace
