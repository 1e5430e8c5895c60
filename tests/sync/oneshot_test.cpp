// oneshot: one value, received once; a receiver that gives up leaves it to the next one.
#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include "allocations.hpp"
#include "channel_operation.hpp"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <system_error>
#include <thread>

namespace {

using namespace coppice;
using namespace coppice::test;
using coppice::this_thread::sync_wait;

TEST(oneshot, a_value_that_was_sent_is_received_once) {
    oneshot<int> o;
    EXPECT_EQ(o.try_receive(), std::nullopt);
    EXPECT_TRUE(o.send(1));
    EXPECT_FALSE(o.send(2));
    auto r = operation_of<int>(o.receive());
    r.start();
    EXPECT_EQ(r.value(), 1);
    auto second = operation_of<int>(o.receive());
    second.start();
    EXPECT_EQ(second.how(), channel_end::error);
    EXPECT_EQ(second.error(), std::errc::broken_pipe);
    EXPECT_EQ(o.try_receive(), std::nullopt);
}

TEST(oneshot, the_oldest_receiver_gets_the_value_and_the_others_an_error) {
    oneshot<int> o;
    auto a = operation_of<int>(o.receive());
    auto b = operation_of<int>(o.receive());
    auto c = operation_of<int>(o.receive());
    a.start();
    b.start();
    c.start();
    a.stop();
    EXPECT_EQ(a.how(), channel_end::stopped);
    EXPECT_TRUE(o.send(5));
    EXPECT_EQ(b.value(), 5);
    EXPECT_EQ(c.error(), std::errc::broken_pipe);
}

TEST(oneshot, close_fails_receivers_but_not_a_value_that_was_sent) {
    oneshot<int> never;
    auto waiting = operation_of<int>(never.receive());
    waiting.start();
    never.close();
    EXPECT_EQ(waiting.error(), std::errc::broken_pipe);
    EXPECT_FALSE(never.send(1));

    oneshot<int> sent;
    EXPECT_FALSE(sent.is_closed());
    EXPECT_TRUE(sent.send(1));
    EXPECT_TRUE(sent.is_closed());
    sent.close();
    EXPECT_EQ(sent.try_receive(), 1);
}

TEST(oneshot, a_task_receives_a_value_that_cannot_be_copied) {
    using parcel = std::unique_ptr<int>;
    oneshot<parcel> o;
    auto get = [](oneshot<parcel>& from) -> task<int> {
        const parcel got = co_await from.receive();
        bool failed = false;
        try {
            static_cast<void>(co_await from.receive());
        } catch (const std::system_error& error) {
            failed = error.code() == std::errc::broken_pipe;
        }
        EXPECT_TRUE(failed);
        std::error_code ec;
        EXPECT_EQ(co_await from.receive(use_await[ec]), nullptr);
        EXPECT_EQ(ec, std::errc::broken_pipe);
        co_return *got;
    };
    std::thread sender([&] { EXPECT_TRUE(o.send(std::make_unique<int>(3))); });
    EXPECT_EQ(sync_wait(get(o)), std::tuple(3));
    sender.join();
}

TEST(oneshot, every_token_gets_the_value_or_the_error) {
    oneshot<int> a;
    std::future<int> future = a.receive(use_future);
    EXPECT_TRUE(a.send(1));
    EXPECT_EQ(future.get(), 1);
    EXPECT_THROW(static_cast<void>(a.receive(block)), std::system_error);
    std::error_code ec;
    EXPECT_EQ(a.receive(block[ec]), 0);
    EXPECT_EQ(ec, std::errc::broken_pipe);

    oneshot<int> b;
    std::thread sender([&] { b.send(2); });
    EXPECT_EQ(b.receive(block), 2);
    sender.join();

    oneshot<int> c;
    int got = 0;
    c.receive([&](std::error_code error, int value) { got = error ? -1 : value; });
    c.close();
    EXPECT_EQ(got, -1);
}

TEST(oneshot, the_receiver_may_destroy_it_as_soon_as_it_has_the_value) {
    for (int i = 0; i != 200; ++i) {
        auto* const o = new oneshot<int>;
        std::thread sender([o] { o->send(7); });
        EXPECT_EQ(o->receive(block), 7);
        delete o;
        sender.join();
    }
}

TEST(oneshot, sending_and_receiving_allocate_nothing) {
    const allocation_count count;
    for (int i = 0; i != 100; ++i) {
        oneshot<int> o;
        auto r = operation_of<int>(o.receive());
        r.start();
        EXPECT_TRUE(o.send(i));
        EXPECT_EQ(r.value(), i);
    }
    EXPECT_EQ(count.so_far(), 0u);
}

}  // namespace
