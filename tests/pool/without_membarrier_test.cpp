// Everything that forks, without membarrier(2): base/internal/fork_deque.hpp then uses its lock.
#include <coppice/base/internal/asymmetric.hpp>

#include "without_call.hpp"

#include <gtest/gtest.h>

#include <linux/membarrier.h>
#include <string>

namespace {

void passes_again(const std::string& tests) {
    coppice::test::expect_passes_without(SYS_membarrier, ENOSYS, tests + ":fall_back.is_used*");
}

TEST(fall_back, is_used_where_membarrier_is_missing) {
    EXPECT_EQ(coppice::internal::light_fences_are_free(),
              ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0);
}

TEST(fall_back, fork_join_and_loops_return_the_same_results_without_membarrier) {
    passes_again("fork_join*:parallel*:pool_bulk*");
}
TEST(fall_back, tasks_return_the_same_results_without_membarrier) {
    passes_again("pool_tasks*");
}
TEST(fall_back, pools_sleep_and_end_without_membarrier) {
    passes_again("thread_pool.*:pool_nodes.*:pool_counts.*:pool_trace.*");
}

}  // namespace
