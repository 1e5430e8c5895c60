// The operations of all channels with every token, on loops and pools, with deadlines and when_any.
#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/io.hpp>
#include <coppice/pool.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include "channel_operation.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <variant>

namespace {

using namespace coppice;
using namespace coppice::test;
namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;
using namespace std::chrono_literals;

template <class Channel>
struct maker {
    static Channel make() { return Channel(2); }
};
template <class T>
struct maker<unbounded_channel<T>> {
    static unbounded_channel<T> make() { return unbounded_channel<T>(); }
};

template <class T>
class channel_tokens : public testing::Test {};
using channels = testing::Types<channel<int>, spsc_channel<int>, unbounded_channel<int>>;
TYPED_TEST_SUITE(channel_tokens, channels);

template <class Channel>
void put(Channel& c, int value) {
    if constexpr (requires { c.try_send(int(value)); }) {
        EXPECT_TRUE(c.try_send(int(value)));
    } else {
        EXPECT_TRUE(c.send(value));
    }
}
template <class Channel>
task<> send_all(Channel& c, int count) {
    for (int i = 1; i <= count; ++i) {
        if constexpr (requires { c.try_send(int(i)); }) {
            co_await c.send(i);
        } else {
            EXPECT_TRUE(c.send(i));
        }
    }
    c.close();
}
template <class Channel, class Sch>
task<int> sum_all(Channel& c, const Sch* sch) {
    int sum = 0;
    while (const std::optional<int> got = co_await c.receive()) {
        if constexpr (requires { sch->running_in_this_thread(); }) {
            EXPECT_TRUE(sch->running_in_this_thread());
        }
        sum += *got;
    }
    co_return sum;
}

TYPED_TEST(channel_tokens, callbacks_futures_and_blocked_threads_receive) {
    auto c = maker<TypeParam>::make();
    int got = 0;
    c.receive([&](std::error_code, std::optional<int> value) { got = *value; });
    put(c, 1);
    EXPECT_EQ(got, 1);
    std::future<std::optional<int>> future = c.receive(use_future);
    put(c, 2);
    EXPECT_EQ(future.get(), 2);
    std::thread sender([&] { put(c, 3); });
    EXPECT_EQ(c.receive(block), 3);
    sender.join();
}

TYPED_TEST(channel_tokens, tasks_on_a_pool_send_and_receive) {
    thread_pool pool(2);
    auto c = maker<TypeParam>::make();
    const auto sch = pool.get_scheduler();
    const auto result =
        sync_wait(ex::when_all(ex::starts_on(sch, send_all(c, 500)),
                               ex::starts_on(sch, sum_all(c, static_cast<int*>(nullptr)))));
    EXPECT_EQ(result, std::tuple(500 * 501 / 2));
}

TYPED_TEST(channel_tokens, a_task_on_a_loop_receives_from_a_task_on_a_pool) {
    thread_pool pool(1);
    io::context loop;
    auto c = maker<TypeParam>::make();
    std::optional<io::context::work_guard> guard(loop);
    std::thread runner([&] { loop.run(); });
    const auto result = sync_wait(
        ex::when_all(ex::starts_on(pool.get_scheduler(), send_all(c, 500)),
                     ex::starts_on(loop.get_scheduler(), sum_all(c, static_cast<int*>(nullptr)))));
    EXPECT_EQ(result, std::tuple(500 * 501 / 2));
    guard.reset();
    runner.join();
}

TYPED_TEST(channel_tokens, a_thread_that_need_not_wait_takes_an_item_or_learns_of_the_close) {
    auto c = maker<TypeParam>::make();
    put(c, 1);
    put(c, 2);
    std::error_code ec = std::make_error_code(std::errc::io_error);
    EXPECT_EQ(c.receive(block), 1);
    EXPECT_EQ(c.receive(block[ec]), 2);
    EXPECT_FALSE(ec);
    c.close();
    EXPECT_EQ(c.receive(block), std::nullopt);
    EXPECT_EQ(c.receive(block[ec]), std::nullopt);
    EXPECT_FALSE(ec);
}

TYPED_TEST(channel_tokens, a_blocking_receive_that_was_stopped_before_leaves_the_item) {
    auto c = maker<TypeParam>::make();
    put(c, 1);
    inplace_stop_source source;
    source.request_stop();
    const auto stopped = ex::prop(get_stop_token, source.get_token());
    std::error_code ec;
    EXPECT_EQ(c.receive(bind_env(stopped, block[ec])), std::nullopt);
    EXPECT_EQ(ec, std::errc::operation_canceled);
    EXPECT_THROW(std::ignore = c.receive(bind_env(stopped, block)), std::system_error);
    EXPECT_EQ(c.try_receive(), 1);
}

template <class T>
class bounded_channels : public testing::Test {};
using owner = std::unique_ptr<int>;
using bounded = testing::Types<channel<owner>, spsc_channel<owner>>;
TYPED_TEST_SUITE(bounded_channels, bounded);

TYPED_TEST(bounded_channels, a_blocking_send_throws_or_stores_that_the_channel_is_closed) {
    TypeParam c(2);
    std::error_code ec = std::make_error_code(std::errc::io_error);
    c.send(std::make_unique<int>(1), block[ec]);
    EXPECT_FALSE(ec);
    c.close();
    c.send(std::make_unique<int>(2), block[ec]);
    EXPECT_EQ(ec, std::errc::broken_pipe);
    try {
        c.send(std::make_unique<int>(3), block);
        ADD_FAILURE() << "it was sent";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), std::errc::broken_pipe);
        EXPECT_EQ(std::string(error.what()).find("channel::send: "), 0u) << error.what();
    }
    EXPECT_EQ(**c.receive(block), 1);
    EXPECT_EQ(c.receive(block), std::nullopt);
}

TYPED_TEST(bounded_channels, a_blocking_send_that_was_stopped_before_sends_nothing) {
    TypeParam c(1);
    inplace_stop_source source;
    source.request_stop();
    const auto stopped = ex::prop(get_stop_token, source.get_token());
    std::error_code ec;
    c.send(std::make_unique<int>(1), bind_env(stopped, block[ec]));
    EXPECT_EQ(ec, std::errc::operation_canceled);
    EXPECT_THROW(c.send(std::make_unique<int>(1), bind_env(stopped, block)), std::system_error);
    EXPECT_EQ(c.size(), 0u);
}

TYPED_TEST(bounded_channels, a_blocking_send_that_waits_keeps_the_item_of_its_failed_try) {
    TypeParam c(1);
    c.send(std::make_unique<int>(1), block);
    std::thread receiver([&] {
        EXPECT_EQ(**c.receive(block), 1);
        EXPECT_EQ(**c.receive(block), 2);
    });
    c.send(std::make_unique<int>(2), block);
    receiver.join();
}

TYPED_TEST(channel_tokens, a_timeout_ends_a_receive_that_took_nothing) {
    thread_pool pool(1);
    io::context loop;
    auto c = maker<TypeParam>::make();
    std::optional<io::context::work_guard> guard(loop);
    std::thread runner([&] { loop.run(); });
    auto attempt = [](TypeParam& from) -> task<bool> {
        try {
            co_await ex::timeout(from.receive(), 1ms);
        } catch (const std::system_error& error) {
            co_return error.code() == std::errc::timed_out;
        }
        co_return false;
    };
    EXPECT_EQ(sync_wait(ex::starts_on(loop.get_scheduler(), attempt(c))), std::tuple(true));
    guard.reset();
    runner.join();
    put(c, 1);
    EXPECT_EQ(c.try_receive(), 1);
}

TYPED_TEST(channel_tokens, a_deadline_in_the_environment_ends_a_receive) {
    auto c = maker<TypeParam>::make();
    const auto soon = ex::prop(ex::get_deadline, ex::monotonic_now() + 1ms);
    EXPECT_EQ(sync_wait(ex::write_env(c.receive(), soon)), std::nullopt);  // stopped
    std::error_code ec;
    EXPECT_EQ(c.receive(bind_env(soon, block[ec])), std::nullopt);
    EXPECT_EQ(ec, std::errc::operation_canceled);
    put(c, 1);
    EXPECT_EQ(c.try_receive(), 1);
}

TYPED_TEST(channel_tokens, when_any_stops_the_receive_that_was_not_first) {
    auto a = maker<TypeParam>::make();
    auto b = maker<TypeParam>::make();
    auto both = operation_of<std::optional<int>>(ex::when_any(a.receive(), b.receive()));
    both.start();
    put(b, 1);
    both.wait();
    EXPECT_EQ(both.value(), 1);
    put(a, 2);
    EXPECT_EQ(a.try_receive(), 2);
}

TEST(channel_tokens, a_full_channel_ends_a_send_by_stop_and_by_deadline) {
    channel<int> c(1);
    EXPECT_TRUE(c.try_send(1));
    const auto soon = ex::prop(ex::get_deadline, ex::monotonic_now() + 1ms);
    EXPECT_EQ(sync_wait(ex::write_env(c.send(2), soon)), std::nullopt);
    auto s = operation_of<std::monostate>(c.send(3));
    s.start();
    s.stop();
    EXPECT_EQ(s.how(), channel_end::stopped);
    std::future<void> later = c.send(4, use_future);
    EXPECT_EQ(c.try_receive(), 1);
    later.get();
    EXPECT_EQ(c.try_receive(), 4);
    EXPECT_EQ(c.try_receive(), std::nullopt);
}

// The await of a task in place: the other side comes before it, or while it waits.
class awaits_of_tasks : public testing::TestWithParam<bool> {
protected:
    template <class Work, class Other>
    void run(Work work, Other other) {
        if (!waits) other();
        ex::spawn(std::move(work) | ex::upon_error([](auto&&) noexcept { ADD_FAILURE(); }),
                  scope.get_token(), ex::prop(ex::get_scheduler, ex::inline_scheduler()));
        if (waits) other();
        sync_wait(scope.join());
    }

    ex::counting_scope scope;
    const bool waits = GetParam();
};
INSTANTIATE_TEST_SUITE_P(both, awaits_of_tasks, testing::Bool());

TEST_P(awaits_of_tasks, store_or_throw_that_the_channel_was_closed) {
    channel<owner> c(1);
    EXPECT_TRUE(c.try_send(std::make_unique<int>(0)));  // so a send has to wait for a slot
    std::error_code stored;
    std::error_code thrown;
    const auto work = [](channel<owner>& to, std::error_code& a, std::error_code& b) -> task<> {
        co_await to.send(std::make_unique<int>(1), use_await[a]);
        try {
            co_await to.send(std::make_unique<int>(2));
        } catch (const std::system_error& error) {
            b = error.code();
        }
    };
    run(work(c, stored, thrown), [&] { c.close(); });
    EXPECT_EQ(stored, std::errc::broken_pipe);
    EXPECT_EQ(thrown, std::errc::broken_pipe);
    EXPECT_EQ(**c.try_receive(), 0);
    EXPECT_EQ(c.try_receive(), std::nullopt);
}

// Of a task that cannot be stopped.
struct unstoppable {
    struct stop_source_type {
        static never_stop_token get_token() noexcept { return {}; }
        static bool request_stop() noexcept { return false; }
    };
};

TEST_P(awaits_of_tasks, end_with_the_item_where_no_stop_is_possible) {
    channel<int> c(1);
    std::error_code ec = std::make_error_code(std::errc::io_error);
    int sum = 0;
    const auto work = [](channel<int>& from, std::error_code& code,
                         int& total) -> ex::task<void, unstoppable> {
        total += *co_await from.receive();
        co_await from.send(2);
        total += *co_await from.receive(use_await[code]);
    };
    run(work(c, ec, sum), [&] { EXPECT_TRUE(c.try_send(1)); });
    EXPECT_EQ(sum, 3);
    EXPECT_FALSE(ec);
}

TEST_P(awaits_of_tasks, are_destroyed_by_a_stop_and_take_nothing) {
    channel<int> c(1);
    const auto alive = std::make_shared<int>(0);
    bool went_on = false;
    const auto work = [](channel<int>& from, std::shared_ptr<int> kept, bool& on) -> task<> {
        co_await from.receive();
        on = *kept == 0;
    };
    run(work(c, alive, went_on), [&] { scope.request_stop(); });
    EXPECT_FALSE(went_on);
    EXPECT_EQ(alive.use_count(), 1);
    EXPECT_TRUE(c.try_send(1));
    EXPECT_EQ(c.try_receive(), 1);
}

TEST_P(awaits_of_tasks, that_store_errors_go_on_after_a_stop_with_nothing) {
    channel<int> c(1);
    std::error_code ec;
    bool is_empty = false;
    const auto work = [](channel<int>& from, std::error_code& code, bool& nothing) -> task<> {
        nothing = !co_await from.receive(use_await[code]);
    };
    run(work(c, ec, is_empty), [&] { scope.request_stop(); });
    EXPECT_TRUE(is_empty);
    EXPECT_EQ(ec, std::errc::operation_canceled);
    EXPECT_TRUE(c.try_send(1));
    EXPECT_EQ(c.try_receive(), 1);
}

}  // namespace
