// bounded_queue: P0260R20's [bounded.queue] and [conqueue.concepts], over a channel.
#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/task.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

namespace {

using namespace coppice;
namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;

static_assert(!std::is_move_constructible_v<bounded_queue<int>>);
static_assert(std::is_same_v<bounded_queue<int>::value_type, int>);
static_assert(std::is_same_v<conqueue_errc, conqueue_status>);

TEST(bounded_queue, try_operations_say_success_full_empty_or_closed) {
    bounded_queue<int> q(1);
    EXPECT_EQ(q.try_pop().error(), conqueue_status::empty);
    EXPECT_EQ(q.try_push(1), conqueue_status::success);
    EXPECT_EQ(q.try_push(2), conqueue_status::full);
    EXPECT_EQ(q.try_emplace(2), conqueue_status::full);
    q.close();
    EXPECT_TRUE(q.is_closed());
    EXPECT_EQ(q.try_push(3), conqueue_status::closed);
    auto got = q.try_pop();
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(*got, 1);
    EXPECT_EQ(q.try_pop().error(), conqueue_status::closed);
}

TEST(bounded_queue, a_try_push_that_fails_leaves_an_r_value_untouched) {
    bounded_queue<std::unique_ptr<int>> q(0);
    auto kept = std::make_unique<int>(1);
    EXPECT_EQ(q.try_push(std::move(kept)), conqueue_status::full);
    EXPECT_NE(kept, nullptr);
}

TEST(bounded_queue, push_and_pop_block_threads_until_the_other_side_or_a_close) {
    bounded_queue<std::string> q(2);
    std::thread producer([&] {
        for (int i = 0; i != 1000; ++i) EXPECT_TRUE(q.push(std::to_string(i)));
        q.close();
        EXPECT_FALSE(q.push("late"));
        EXPECT_FALSE(q.emplace(3, 'x'));
    });
    int next = 0;
    while (const std::optional<std::string> got = q.pop()) EXPECT_EQ(*got, std::to_string(next++));
    EXPECT_EQ(next, 1000);
    producer.join();
}

TEST(bounded_queue, async_operations_send_values_or_the_error_closed) {
    bounded_queue<int> q(1);
    EXPECT_TRUE(sync_wait(q.async_push(1)));
    EXPECT_EQ(sync_wait(q.async_pop()), std::tuple(1));
    q.close();
    conqueue_status seen = conqueue_status::success;
    const auto note = [&](auto error) noexcept {
        if constexpr (std::is_same_v<decltype(error), conqueue_status>) seen = error;
        return ex::just(-1);
    };
    EXPECT_EQ(sync_wait(q.async_pop() | ex::let_error(note)), std::tuple(-1));
    EXPECT_EQ(seen, conqueue_status::closed);
    seen = conqueue_status::success;
    EXPECT_EQ(
        sync_wait(q.async_push(2) | ex::then([]() noexcept { return 0; }) | ex::let_error(note)),
        std::tuple(-1));
    EXPECT_EQ(seen, conqueue_status::closed);
}

TEST(bounded_queue, a_task_that_awaits_gets_a_bool_and_an_optional) {
    bounded_queue<int> q(1);
    auto produce = [](bounded_queue<int>& to) -> task<> {
        for (int i = 0; i != 100; ++i) EXPECT_TRUE(co_await to.async_push(i));
        to.close();
        EXPECT_FALSE(co_await to.async_emplace(1));
    };
    auto consume = [](bounded_queue<int>& from) -> task<int> {
        int sum = 0;
        while (const std::optional<int> got = co_await from.async_pop()) sum += *got;
        co_return sum;
    };
    EXPECT_EQ(sync_wait(ex::when_all(produce(q), consume(q))), std::tuple(4950));
}

}  // namespace
