// exec/starting.hpp: a completion inside start() is told from one outside and from one elsewhere.
#include <coppice/exec/starting.hpp>

#include <gtest/gtest.h>

#include <thread>

namespace {

using coppice::execution::starting;

TEST(starting, notes_a_completion_inside_start_of_that_operation_only) {
    const int outer = 0, inner = 0, other = 0;
    const starting first(&outer);
    {
        const starting second(&inner);
        EXPECT_FALSE(starting::takes_completion_of(&other));
        EXPECT_TRUE(starting::takes_completion_of(&outer));
        EXPECT_FALSE(second.has_completed());
        EXPECT_TRUE(starting::takes_completion_of(&inner));
        EXPECT_TRUE(second.has_completed());
    }
    EXPECT_FALSE(starting::takes_completion_of(&inner));
    EXPECT_TRUE(first.has_completed());
}

TEST(starting, a_completion_on_another_thread_is_outside) {
    const int operation = 0;
    const starting start(&operation);
    std::thread([&] { EXPECT_FALSE(starting::takes_completion_of(&operation)); }).join();
    EXPECT_FALSE(start.has_completed());
}

}  // namespace
