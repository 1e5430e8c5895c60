// io/context_pool.hpp: loops that run on their own threads, and how a pool ends.
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/io/context_pool.hpp>
#include <coppice/io/timer.hpp>

#include "outcome.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <thread>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
using coppice::test::outcome;
using coppice::test::outcome_receiver;

class context_pool_on : public testing::TestWithParam<io::backend> {};
INSTANTIATE_TEST_SUITE_P(rings, context_pool_on, test::real_rings, test::ring_name);

TEST_P(context_pool_on, each_context_is_run_by_its_own_thread) {
    io::context_pool pool(3, GetParam());
    ASSERT_EQ(pool.size(), 3u);
    EXPECT_GE(io::context_pool(0, GetParam()).size(), 1u);
    std::set<std::thread::id> threads;
    for (std::size_t i = 0; i != pool.size(); ++i) {
        const auto ran =
            this_thread::sync_wait(pool.at(i).get_scheduler().schedule() | ex::then([&, i] {
                                       EXPECT_TRUE(pool.at(i).is_current());
                                       return std::this_thread::get_id();
                                   }));
        threads.insert(std::get<0>(ran.value()));
    }
    EXPECT_EQ(threads.size(), 3u);
    EXPECT_NE(&pool.next(), &pool.next());
}

TEST_P(context_pool_on, its_destructor_waits_for_pending_operations) {
    bool waited = false;
    outcome ended;
    {
        std::optional<io::context_pool> pool(std::in_place, 2, GetParam());
        auto op = ex::connect(pool->at(1).get_scheduler().schedule_after(5ms) |
                                  ex::then([&]() noexcept { waited = true; }),
                              outcome_receiver(ended));
        ex::start(op);
        pool.reset();
    }
    EXPECT_TRUE(waited);
    EXPECT_EQ(ended.ends(), 1);
}

TEST_P(context_pool_on, stop_and_drain_cancel_operations_that_stay_pending) {
    for (const duration patience : {0ms, 3ms}) {
        outcome short_one, long_one;
        {
            std::optional<io::context_pool> pool(std::in_place, 2, GetParam());
            auto a = ex::connect(io::timer(pool->at(0)).wait_for(1us), outcome_receiver(short_one));
            auto b = ex::connect(io::timer(pool->at(1)).wait_for(1h), outcome_receiver(long_one));
            ex::start(a);
            ex::start(b);
            patience == 0ms ? pool->stop() : pool->drain(patience);
            pool->stop();  // the first call counts
            pool.reset();
        }
        EXPECT_EQ(short_one.ends(), 1);
        EXPECT_EQ(long_one.ends(), 1);
        EXPECT_EQ(long_one.error, std::errc::operation_canceled);
    }
}

}  // namespace
