// watch: a waiter sees a version that it has not seen, and never misses the latest value.
#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include "allocations.hpp"
#include "channel_operation.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
using version = std::uint64_t;

TEST(watch, set_replaces_the_value_and_counts_versions) {
    watch<std::string> w("a");
    EXPECT_EQ(w.version(), 0u);
    EXPECT_EQ(w.get(), "a");
    w.set("b");
    EXPECT_EQ(w.version(), 1u);
    EXPECT_EQ(w.get(), "b");
}

TEST(watch, changed_is_ready_at_once_for_a_version_that_is_not_the_latest) {
    watch<int> w(1);
    w.set(2);
    w.set(3);
    EXPECT_EQ(w.changed(0, block), 2u);
    auto wait = operation_of<version>(w.changed(2));
    wait.start();
    EXPECT_TRUE(wait.pending());
    w.set(4);
    EXPECT_EQ(wait.value(), 3u);
}

TEST(watch, set_completes_all_waiters_except_a_stopped_one) {
    watch<int> w(0);
    auto a = operation_of<version>(w.changed(0));
    auto b = operation_of<version>(w.changed(0));
    auto c = operation_of<version>(w.changed(0));
    a.start();
    b.start();
    c.start();
    b.stop();
    EXPECT_EQ(b.how(), channel_end::stopped);
    w.set(1);
    EXPECT_EQ(a.value(), 1u);
    EXPECT_EQ(c.value(), 1u);
}

TEST(watch, a_waiter_may_destroy_it) {
    auto* const w = new watch<int>(0);
    w->changed(0, [w](std::error_code, version) { delete w; });
    w->set(1);
}

TEST(watch, followers_on_threads_see_growing_values_and_the_last_one) {
    watch<int> w(0);
    constexpr int last = 2000;
    std::vector<std::thread> threads;
    for (int t = 0; t != 3; ++t) {
        threads.emplace_back([&] {
            version seen = 0;
            int value = 0;
            while (value != last) {
                seen = w.changed(seen, block);
                const int now = w.get();
                EXPECT_GE(now, value);
                EXPECT_GE(now, static_cast<int>(seen));
                value = now;
            }
        });
    }
    for (int i = 1; i <= last; ++i) w.set(i);
    for (std::thread& thread : threads) thread.join();
}

TEST(watch, a_task_follows_it) {
    watch<int> w(0);
    auto follow = [](watch<int>& from) -> task<int> {
        version seen = from.version();
        while (from.get() != 3) seen = co_await from.changed(seen);
        co_return from.get();
    };
    std::thread setter([&] {
        for (int i = 1; i != 4; ++i) w.set(i);
    });
    EXPECT_EQ(coppice::this_thread::sync_wait(follow(w)), std::tuple(3));
    setter.join();
}

TEST(watch, setting_and_waiting_allocate_nothing) {
    watch<int> w(0);
    const allocation_count count;
    for (int i = 0; i != 100; ++i) {
        auto wait = operation_of<version>(w.changed(w.version()));
        wait.start();
        w.set(i);
        EXPECT_EQ(wait.how(), channel_end::value);
    }
    EXPECT_EQ(count.so_far(), 0u);
}

}  // namespace
