// base/internal/check.hpp: a programmer's error stops the process and says what failed, and where.
#include <coppice/base/internal/check.hpp>

#include <gtest/gtest.h>

namespace {

TEST(check, a_true_condition_is_evaluated_once_and_execution_continues) {
    int evaluated = 0;
    COPPICE_CHECK(++evaluated == 1, "never said");
    EXPECT_EQ(evaluated, 1);
}

TEST(check, is_one_statement_after_an_if_without_braces) {
    bool other = false;
    if (other)
        COPPICE_CHECK(false, "never said");
    else
        other = true;
    EXPECT_TRUE(other);
}

TEST(check_death, prints_message_condition_file_and_line) {
    const int answer = 41;
    EXPECT_DEATH(COPPICE_CHECK(answer == 42, "the answer is wrong"),
                 "coppice: the answer is wrong \\(answer == 42\\) at .*check_test.cpp:[0-9]+");
}

}  // namespace
