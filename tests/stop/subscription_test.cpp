// stop/subscription.hpp: a subscribed function runs once, or is removed before it runs.
#include <coppice/stop_token.hpp>

#include "allocations.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using coppice::test::allocation_count;

TEST(stop_subscription, runs_its_function_once) {
    stop_source source;
    int runs = 0;
    std::array<char, 100> large{};
    source.get_token().subscribe([&] { ++runs; });
    source.get_token().subscribe([&, owned = std::make_unique<int>(10)] { runs += *owned; });
    source.get_token().subscribe([&, large] { runs += 100 + large[7]; });
    EXPECT_TRUE(source.request_stop());
    EXPECT_EQ(runs, 111);
    const auto late = source.get_token().subscribe([&] { runs += 1000; });
    EXPECT_EQ(runs, 1111);
    EXPECT_EQ(stop_subscription(late).unsubscribe(), unsubscribed::ran);
}

TEST(stop_subscription, unsubscribe_reports_whether_the_function_ran) {
    stop_source source;
    int runs = 0;
    auto f = [&] { ++runs; };
    stop_subscription removed = source.get_token().subscribe(f);
    stop_subscription copy = removed;
    stop_subscription kept = source.get_token().subscribe(f);
    EXPECT_EQ(removed.unsubscribe(), unsubscribed::removed);
    EXPECT_EQ(copy.unsubscribe(), unsubscribed::removed);
    EXPECT_EQ(stop_subscription().unsubscribe(), unsubscribed::removed);
    source.request_stop();
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(kept.unsubscribe(), unsubscribed::ran);
    EXPECT_EQ(kept.try_unsubscribe(), unsubscribed::ran);
    EXPECT_EQ(removed.unsubscribe(), unsubscribed::removed);
}

// The node is reused, and the late handle of its first subscription does not affect the second.
TEST(stop_subscription, a_late_handle_never_ends_another_subscription) {
    stop_source source;
    int runs = 0;
    stop_subscription first = source.get_token().subscribe([] {});
    stop_subscription late = first;
    first.unsubscribe();
    stop_subscription second = source.get_token().subscribe([&] { ++runs; });
    EXPECT_EQ(late.unsubscribe(), unsubscribed::removed);
    EXPECT_EQ(first.try_unsubscribe(), unsubscribed::removed);
    source.request_stop();
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(late.unsubscribe(), unsubscribed::removed);
    EXPECT_EQ(second.unsubscribe(), unsubscribed::ran);
}

TEST(stop_subscription, is_running_inside_its_function) {
    stop_source source;
    stop_subscription self;
    unsubscribed inside = unsubscribed::ran;
    unsubscribed inside_without_waiting = unsubscribed::ran;
    self = source.get_token().subscribe([&] {
        inside = self.unsubscribe();
        inside_without_waiting = self.try_unsubscribe();
    });
    source.request_stop();
    EXPECT_EQ(inside, unsubscribed::running);
    EXPECT_EQ(inside_without_waiting, unsubscribed::running);
    EXPECT_EQ(self.unsubscribe(), unsubscribed::ran);
}

TEST(stop_subscription, unsubscribe_waits_for_its_function_and_try_unsubscribe_does_not) {
    for (int round = 0; round != 100; ++round) {
        stop_source source;
        atomic<bool> entered{false};
        atomic<bool> go_on{false};
        bool returned = false;
        stop_subscription sub = source.get_token().subscribe([&] {
            entered.store(true, release);
            while (!go_on.load(acquire)) std::this_thread::yield();
            returned = true;
        });
        std::thread requester([&] { source.request_stop(); });
        while (!entered.load(acquire)) std::this_thread::yield();
        EXPECT_EQ(sub.try_unsubscribe(), unsubscribed::running);
        go_on.store(true, release);
        EXPECT_EQ(sub.unsubscribe(), unsubscribed::ran);
        EXPECT_TRUE(returned);
        requester.join();
    }
}

TEST(stop_subscription, allocates_nothing_in_steady_state) {
    stop_source source;
    const stop_token token = source.get_token();
    int runs = 0;
    auto counted = std::make_shared<int>(0);
    token.subscribe([] {}).unsubscribe();
    allocation_count allocations;
    for (int i = 0; i != 100; ++i) {
        stop_subscription trivial = token.subscribe([&] { ++runs; });
        trivial.unsubscribe();
        stop_subscription counting = token.subscribe([&, counted] { ++runs; });
        counting.unsubscribe();
    }
    EXPECT_EQ(allocations.so_far(), 0u);
    EXPECT_EQ(counted.use_count(), 1);
}

TEST(stop_subscription, destroys_its_function_once_it_has_run_or_cannot_run) {
    auto owned = std::make_shared<int>(0);
    {
        stop_source source;
        source.get_token().subscribe([owned] {});
        EXPECT_EQ(owned.use_count(), 2);
        source.request_stop();
        EXPECT_EQ(owned.use_count(), 1);
    }
    {
        stop_source source;
        source.get_token().subscribe([owned] { ADD_FAILURE() << "no stop was requested"; });
    }
    EXPECT_EQ(owned.use_count(), 1);
}

struct throws_when_copied {
    throws_when_copied() = default;
    throws_when_copied(const throws_when_copied&) { throw std::runtime_error("copy"); }
    void operator()() {}
};
TEST(stop_subscription, whose_function_cannot_be_constructed_leaves_nothing_behind) {
    stop_source source;
    const throws_when_copied f;
    EXPECT_THROW(source.get_token().subscribe(f), std::runtime_error);
    EXPECT_TRUE(source.try_reset());
    source.request_stop();
    EXPECT_THROW(source.get_token().subscribe(f), std::runtime_error);
}

TEST(stop_subscription, all_functions_run_even_if_one_throws) {
    stop_source source;
    int runs = 0;
    for (int i = 0; i != 4; ++i) {
        source.get_token().subscribe([&, i] {
            ++runs;
            if (i % 2 == 0) throw std::runtime_error(i == 0 ? "zero" : "two");
        });
    }
    stop_callback callback(source.get_token(), [&] { ++runs; });
    std::vector<std::string> messages;
    EXPECT_TRUE(source.request_stop({1, "x"}, [&](std::exception_ptr thrown) {
        try {
            std::rethrow_exception(thrown);
        } catch (const std::runtime_error& e) {
            messages.push_back(e.what());
        }
    }));
    EXPECT_EQ(runs, 5);
    EXPECT_EQ(messages, (std::vector<std::string>{"two", "zero"}));
    EXPECT_THROW(source.get_token().subscribe([] { throw std::runtime_error("late"); }),
                 std::runtime_error);
}

TEST(stop_subscription, that_throws_terminates_without_a_handler) {
    stop_source source;
    source.get_token().subscribe([] { throw std::runtime_error("no"); });
    EXPECT_DEATH(source.request_stop(), "");
}

TEST(stop_subscription, many_threads_subscribe_and_unsubscribe_while_one_requests) {
    for (int round = 0; round != 20; ++round) {
        stop_source source;
        std::vector<std::thread> threads;
        for (int t = 0; t != 3; ++t) {
            threads.emplace_back([token = source.get_token()] {
                while (!token.stop_requested()) {
                    int runs = 0;
                    stop_subscription sub = token.subscribe([&] { ++runs; });
                    stop_subscription copy = sub;
                    const unsubscribed how = sub.unsubscribe();
                    EXPECT_EQ(runs, how == unsubscribed::ran ? 1 : 0);
                    EXPECT_EQ(copy.unsubscribe(), how);
                }
            });
        }
        for (int i = 0; i != 3; ++i) std::this_thread::yield();
        source.request_stop();
        for (std::thread& t : threads) t.join();
    }
}

}  // namespace
