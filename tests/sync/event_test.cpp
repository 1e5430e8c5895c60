// sync/event.hpp: set, reset, and what is remembered.
#include <coppice/sync/event.hpp>

#include "kinds.hpp"

#include <array>

namespace {

using namespace coppice;
using namespace coppice::test;

constinit async_event set_before_all_constructors(true);

TEST(async_event, set_says_whether_it_was_set_before) {
    EXPECT_TRUE(set_before_all_constructors.is_set());
    async_event event;
    EXPECT_FALSE(event.is_set());
    EXPECT_TRUE(event.set());
    EXPECT_FALSE(event.set());
    event.reset();
    EXPECT_FALSE(event.is_set());
    event.reset();
    EXPECT_TRUE(event.set());
}

TEST(async_event, one_set_wakes_all_waiters_and_says_that_it_was_not_set) {
    async_event event;
    int woken = 0;
    for (int i = 0; i != 3; ++i) event.wait([&](std::error_code) { ++woken; });
    EXPECT_TRUE(event.set());
    EXPECT_EQ(woken, 3);
}

TEST(async_event, a_wait_after_a_reset_waits_for_the_next_set) {
    async_event event(true);
    int woken = 0;
    event.wait([&](std::error_code) { ++woken; });
    EXPECT_EQ(woken, 1);
    event.reset();
    event.wait([&](std::error_code) { ++woken; });
    event.reset();
    EXPECT_EQ(woken, 1);
    event.set();
    EXPECT_EQ(woken, 2);
}

TEST(async_event, two_tasks_that_wake_each_other_a_million_times_use_constant_stack) {
    async_event there;
    async_event back;
    constexpr int rounds = 500'000;
    const auto play = [](async_event& mine, async_event& others) -> task<> {
        for (int i = 0; i != rounds; ++i) {
            co_await mine.wait();
            mine.reset();
            others.set();
        }
    };
    there.set();
    EXPECT_TRUE(this_thread::sync_wait(ex::when_all(play(there, back), play(back, there))));
    EXPECT_TRUE(there.is_set());
}

TEST(async_auto_event, a_set_is_remembered_once) {
    async_auto_event event;
    EXPECT_FALSE(event.try_wait());
    event.set();
    event.set();
    EXPECT_TRUE(event.try_wait());
    EXPECT_FALSE(event.try_wait());
    async_auto_event set(true);
    EXPECT_TRUE(set.try_wait());
}

TEST(async_auto_event, each_set_wakes_one_waiter) {
    async_auto_event event;
    int woken = 0;
    for (int i = 0; i != 3; ++i) event.wait([&](std::error_code) { ++woken; });
    for (int i = 1; i != 4; ++i) {
        event.set();
        EXPECT_EQ(woken, i);
    }
    EXPECT_FALSE(event.try_wait());
    event.set();
    EXPECT_TRUE(event.try_wait());
}

}  // namespace
