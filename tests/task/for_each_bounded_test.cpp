// task/for_each_bounded.hpp: bounds, order, errors, and stops; on one thread and on a pool.
#include <coppice/task/for_each_bounded.hpp>

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/queries.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/stop/inplace.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace ex = coppice::execution;
using coppice::for_each_bounded;
using coppice::task;
using coppice::this_thread::sync_wait;
using namespace coppice::internal;

std::vector<int> numbers(int count) {
    std::vector<int> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

// Each call lets the others run for `turns` turns before it ends.
struct turns {
    int running = 0, running_max = 0;
    std::vector<int> begun = {};

    task<> take(int number, int count) {
        begun.push_back(number);
        running_max = std::max(running_max, ++running);
        const auto here = co_await ex::read_env(ex::get_scheduler);
        for (int i = 0; i != count; ++i) co_await ex::schedule(here);
        --running;
    }
};

TEST(for_each_bounded, calls_each_item_once_in_order_with_at_most_at_once_max_in_flight) {
    for (const int count : {0, 1, 2, 3, 10, 1000}) {
        for (const std::size_t most :
             {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{2000}, ~std::size_t{0}}) {
            turns t;
            const auto take = [&t](int n) { return t.take(n, 1 + n % 3); };
            ASSERT_TRUE(sync_wait(for_each_bounded(numbers(count), most, take)));
            EXPECT_EQ(t.begun, numbers(count));
            const auto bound = std::min(most, static_cast<std::size_t>(count));
            EXPECT_EQ(static_cast<std::size_t>(t.running_max), bound) << count;
            EXPECT_EQ(t.running, 0);
        }
    }
}

TEST(for_each_bounded, calls_that_end_at_once_use_constant_stack) {
    int called = 0;
    const auto count = [&called](int) -> task<> {
        ++called;
        co_return;
    };
    ASSERT_TRUE(sync_wait(for_each_bounded(numbers(100'000), 3, count)));
    EXPECT_EQ(called, 100'000);
}

TEST(for_each_bounded, takes_move_only_items_spans_and_any_sender) {
    std::vector<std::unique_ptr<int>> owned;
    for (int i = 0; i != 5; ++i) owned.push_back(std::make_unique<int>(i));
    int sum = 0;
    const auto add = [&sum](std::unique_ptr<int>& n) {
        return ex::just(std::move(n), sum += *n);  // its values are discarded
    };
    ASSERT_TRUE(sync_wait(for_each_bounded(std::move(owned), 2, add)));
    EXPECT_EQ(sum, 10);
    std::vector<std::string> texts{"a", "b"};
    const auto twice = [](std::string& text) -> task<int> {
        text += text;
        co_return 1;
    };
    ASSERT_TRUE(sync_wait(for_each_bounded(std::span(texts), 2, twice)));
    EXPECT_EQ(texts, (std::vector<std::string>{"aa", "bb"}));
}

TEST(for_each_bounded, rejects_an_at_once_max_of_zero) {
    const auto none = [](int) -> task<> { co_return; };
    EXPECT_THROW(sync_wait(for_each_bounded(numbers(2), 0, none)), std::invalid_argument);
}

TEST(for_each_bounded, the_first_error_ends_it_and_no_further_item_begins) {
    for (const bool from_the_call : {false, true}) {
        turns t;
        const auto take = [&](int n) -> task<> {
            if (n == 5 && from_the_call) throw std::runtime_error("five");
            return [](turns& of, int number) -> task<> {
                co_await of.take(number, 1);
                if (number == 5) throw std::runtime_error("five");
            }(t, n);
        };
        EXPECT_THROW(sync_wait(for_each_bounded(numbers(1000), 3, take)), std::runtime_error);
        EXPECT_LE(t.begun.size(), 10u);
    }
}

TEST(for_each_bounded, a_stop_ends_it_and_no_further_item_begins) {
    for (const int at : {-1, 0, 7}) {
        coppice::inplace_stop_source stop;
        if (at < 0) stop.request_stop();
        int begun = 0;
        const auto take = [&](int n) -> task<> {  // does not react to a stop itself
            ++begun;
            if (n == at) stop.request_stop();
            co_return;
        };
        const auto ended =
            sync_wait(ex::write_env(for_each_bounded(numbers(1000), 3, take),
                                    ex::prop(coppice::get_stop_token, stop.get_token())));
        EXPECT_FALSE(ended);
        EXPECT_EQ(begun, at + 1);
    }
}

TEST(for_each_bounded, on_a_pool_its_calls_run_side_by_side_within_the_bound) {
    coppice::thread_pool pool(4);
    atomic<int> running{0}, called{0}, running_max{0};
    const auto here = pool.get_scheduler();
    const auto take = [&](int) -> task<> {
        const int now = running.fetch_add(1, relaxed) + 1;
        if (now > 3) running_max.store(now, relaxed);
        co_await ex::schedule(here);
        called.fetch_add(1, relaxed);
        running.fetch_sub(1, relaxed);
    };
    for (int round = 1; round != 21; ++round) {
        ASSERT_TRUE(sync_wait(ex::starts_on(here, for_each_bounded(numbers(500), 3, take))));
        EXPECT_EQ(called.load(relaxed), round * 500);
        EXPECT_EQ(running_max.load(relaxed), 0);
    }
}

}  // namespace
