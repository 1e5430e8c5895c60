// What stops an async_generator: its waiter, a timeout, a deadline, and its own body.
#include <coppice/token/async_generator.hpp>

#include <coppice/exec/just.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_any.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/run.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/task/task.hpp>

#include "async_generators.hpp"
#include "turnstile.hpp"
#include "witness.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <system_error>

namespace {

namespace ex = coppice::execution;
using namespace std::chrono_literals;
using coppice::async_generator;
using coppice::task;
using coppice::test::counting_receiver;
using coppice::test::counts;
using coppice::test::turnstile;
using coppice::test::waiting;
using coppice::test::witness;
using coppice::this_thread::sync_wait;

TEST(async_generator, a_stop_ends_the_body_where_it_waits_and_the_generator) {
    turnstile gate;
    int alive = 0;
    auto g = waiting(gate, alive);
    counts first;
    auto op = ex::connect(g.next(), counting_receiver(first));
    ex::start(op);
    gate.let_pass();
    EXPECT_EQ(first.values, 1);
    counts second;
    auto op2 = ex::connect(g.next(), counting_receiver(second));
    ex::start(op2);
    EXPECT_TRUE(gate.has_waiter());
    first.source.request_stop();  // the waiter before: it is not heeded any longer
    EXPECT_TRUE(gate.has_waiter());
    second.source.request_stop();
    EXPECT_EQ(second.stops, 1);
    EXPECT_EQ(alive, 0);
    counts third;
    auto op3 = ex::connect(g.next(), counting_receiver(third));
    ex::start(op3);
    EXPECT_EQ(third.values, 1);
}

TEST(async_generator, a_stop_that_its_body_awaits_stops_the_consumer) {
    int alive = 0;
    const auto elements = [](int& a) -> async_generator<int> {
        const witness local(a);
        co_yield 1;
        co_await ex::just_stopped();
    };
    bool went_on = false;
    const auto body = [&]() -> task<> {
        auto g = elements(alive);
        co_await g.next();
        co_await g.next();
        went_on = true;
    };
    EXPECT_FALSE(sync_wait(body()).has_value());
    EXPECT_FALSE(went_on);
    EXPECT_EQ(alive, 0);
}

TEST(async_generator, a_timeout_or_when_any_that_stops_next_leaves_an_ended_generator) {
    const auto forever = [](coppice::io::timer& timer, int& alive) -> async_generator<int> {
        const witness local(alive);
        co_yield 0;
        co_await timer.wait_for(1h);
    };
    coppice::io::run([&](coppice::io::context& loop) -> task<> {
        coppice::io::timer timer(loop);
        coppice::io::timer other(loop);
        int alive = 0;
        auto g = forever(timer, alive);
        EXPECT_EQ(co_await g.next(), 0);
        bool expired = false;
        try {
            co_await ex::timeout(g.next(), 1ms);
        } catch (const std::system_error& e) {
            expired = e.code() == std::errc::timed_out;
        }
        EXPECT_TRUE(expired);
        EXPECT_EQ(alive, 0);
        EXPECT_EQ(co_await g.next(), std::nullopt);
        auto h = forever(timer, alive);
        EXPECT_EQ(co_await h.next(), 0);
        const bool given =
            co_await ex::when_any(h.next() | ex::then([](std::optional<int>) { return true; }),
                                  other.wait_for(1ms) | ex::then([] { return false; }));
        EXPECT_FALSE(given);
        EXPECT_EQ(alive, 0);
        EXPECT_EQ(co_await h.next(), std::nullopt);
    });
}

TEST(async_generator, heeds_the_deadline_of_each_waiter) {
    const auto forever = [](coppice::io::timer& timer) -> async_generator<int> {
        co_await timer.wait_for(1h);
        co_yield 0;
    };
    coppice::io::run([&](coppice::io::context& loop) -> task<> {
        coppice::io::timer timer(loop);
        auto g = forever(timer);
        const ex::instant soon = ex::monotonic_now() + ex::time_span(1ms);
        const auto given = co_await (ex::write_env(g.next(), ex::prop(ex::get_deadline, soon)) |
                                     ex::stopped_as_optional);
        EXPECT_FALSE(given.has_value());
        EXPECT_EQ(co_await g.next(), std::nullopt);
    });
}

}  // namespace
