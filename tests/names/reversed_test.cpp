// The umbrellas in reverse order: no header's local names shadow the declarations of another.
// clang-format off
#include <coppice/token.hpp>
#include <coppice/task.hpp>
#include <coppice/stop_token.hpp>
#include <coppice/pool.hpp>
#include <coppice/io.hpp>
#include <coppice/http.hpp>
#include <coppice/execution.hpp>
#include <coppice/contract.hpp>
// clang-format on

#include <gtest/gtest.h>

TEST(names_of_the_library, do_not_shadow_each_other_in_any_order) {
    EXPECT_FALSE(coppice::inplace_stop_source().stop_requested());
}
