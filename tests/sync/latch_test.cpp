// sync/latch.hpp: counting, and arrivals that are stopped.
#include <coppice/sync/latch.hpp>

#include "kinds.hpp"

#include <array>

namespace {

using namespace coppice;
using namespace coppice::test;

TEST(async_latch, opens_when_the_count_is_zero_and_stays_open) {
    async_latch latch(3);
    int woken = 0;
    latch.wait([&](std::error_code ec) { woken += !ec; });
    latch.count_down(2);
    EXPECT_FALSE(latch.try_wait());
    EXPECT_EQ(woken, 0);
    latch.count_down();
    EXPECT_TRUE(latch.try_wait());
    EXPECT_EQ(woken, 1);
    latch.wait([&](std::error_code ec) { woken += !ec; });
    EXPECT_EQ(woken, 2);
    latch.count_down(0);
}

TEST(async_latch, of_nothing_is_open) {
    async_latch latch(0);
    EXPECT_TRUE(latch.try_wait());
    EXPECT_TRUE(this_thread::sync_wait(latch.wait()));
}

TEST(async_latch, an_arrival_that_is_stopped_has_counted) {
    async_latch latch(3);
    inplace_stop_source stop;
    std::error_code ends[2];
    const auto arrive = [&](int i) {
        latch.arrive_and_wait(bind_env(ex::prop(get_stop_token, stop.get_token()),
                                       [&ends, i](std::error_code ec) { ends[i] = ec; }));
    };
    arrive(0);
    stop.request_stop();
    EXPECT_EQ(ends[0], std::errc::operation_canceled);
    arrive(1);  // stopped before it begins
    EXPECT_EQ(ends[1], std::errc::operation_canceled);
    EXPECT_FALSE(latch.try_wait());
    latch.count_down();
    EXPECT_TRUE(latch.try_wait());
}

TEST(async_latch, the_last_arrival_does_not_wait) {
    async_latch latch(1);
    EXPECT_TRUE(this_thread::sync_wait(latch.arrive_and_wait()));
}

TEST(async_latch_death_test, counting_below_zero_stops_the_process) {
    async_latch latch(1);
    EXPECT_DEATH(latch.count_down(2), "counted down below zero");
}

}  // namespace
