// Where an async_generator runs: on the scheduler of whichever waits for its element.
#include <coppice/token/async_generator.hpp>

#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/run.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/task/task.hpp>

#include "async_generators.hpp"
#include "turnstile.hpp"
#include "witness.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <system_error>
#include <thread>

namespace {

namespace ex = coppice::execution;
using namespace std::chrono_literals;
using coppice::async_generator;
using coppice::task;
using coppice::test::all_of;
using coppice::test::ints;
using coppice::test::turnstile;
using coppice::test::witness;
using coppice::this_thread::sync_wait;

TEST(async_generator, runs_each_element_on_the_scheduler_of_its_waiter) {
    coppice::thread_pool pool(1);
    coppice::io::context loop;
    const auto threads = []() -> async_generator<std::thread::id> {
        for (;;) {
            co_yield std::this_thread::get_id();
            co_await ex::just();
        }
    };
    auto g = threads();
    const auto here = std::this_thread::get_id();
    const auto on_pool = [&]() -> task<> {
        for (int i = 0; i != 3; ++i) {
            EXPECT_EQ(co_await g.next(), std::this_thread::get_id());
            EXPECT_NE(std::this_thread::get_id(), here);
        }
    };
    const auto on_loop = [&](coppice::io::context&) -> task<> {
        for (int i = 0; i != 3; ++i) {
            EXPECT_EQ(co_await g.next(), here);
            EXPECT_EQ(std::this_thread::get_id(), here);
        }
    };
    for (int round = 0; round != 3; ++round) {
        sync_wait(ex::starts_on(pool.get_scheduler(), on_pool()));
        coppice::io::run(on_loop);
    }
}

TEST(async_generator, comes_back_to_its_waiters_scheduler_after_each_await) {
    coppice::thread_pool pool(2);
    const auto threads = [&]() -> async_generator<std::thread::id> {
        for (int i = 0; i != 20; ++i) {
            co_await (ex::schedule(pool.get_scheduler()) | ex::then([] {}));
            co_yield std::this_thread::get_id();
        }
    };
    coppice::io::run([&](coppice::io::context&) -> task<> {
        auto g = threads();
        const auto here = std::this_thread::get_id();
        int count = 0;
        while (const auto id = co_await g.next()) {
            EXPECT_EQ(*id, here);
            EXPECT_EQ(std::this_thread::get_id(), here);
            ++count;
        }
        EXPECT_EQ(count, 20);
    });
}

TEST(async_generator, that_changes_its_scheduler_gives_each_element_at_home) {
    coppice::thread_pool pool(1);
    const auto threads = [&]() -> async_generator<std::thread::id> {
        for (int i = 0; i != 3; ++i) {
            co_await ex::change_coroutine_scheduler<ex::any_scheduler>(pool.get_scheduler());
            co_yield std::this_thread::get_id();  // the next element begins at home
            EXPECT_NE(std::this_thread::get_id(), std::thread::id());
        }
        co_await ex::change_coroutine_scheduler<ex::any_scheduler>(pool.get_scheduler());
        co_await ex::just_stopped();
    };
    coppice::io::run([&](coppice::io::context&) -> task<> {
        const auto here = std::this_thread::get_id();
        auto g = threads();
        for (int i = 0; i != 3; ++i) {
            const auto id = co_await g.next();
            EXPECT_NE(*id, here);
            EXPECT_EQ(std::this_thread::get_id(), here);
        }
        const auto stopped = co_await (g.next() | ex::stopped_as_optional);
        EXPECT_FALSE(stopped.has_value());
        EXPECT_EQ(std::this_thread::get_id(), here);
        EXPECT_EQ(co_await g.next(), std::nullopt);
        auto destroyed = threads();
        co_await destroyed.next();
    });
}

TEST(async_generator, waits_for_timers_of_the_scheduler_around_it) {
    turnstile never;
    const auto ticks = [&]() -> async_generator<int> {
        for (int i = 0; i != 3; ++i) {
            try {
                co_await ex::timeout(never.wait(), 1ms);
            } catch (const std::system_error&) {
            }
            co_yield i;
        }
    };
    coppice::io::run([&](coppice::io::context&) -> task<> {
        auto g = ticks();
        const ints all = co_await all_of(g);
        EXPECT_EQ(all, (ints{0, 1, 2}));
    });
}

TEST(async_generator, on_a_pool_is_stopped_from_another_thread_at_any_time) {
    coppice::thread_pool pool(2);
    const auto busy = [&](int& alive) -> async_generator<int> {
        const witness local(alive);
        for (int i = 0;; ++i) {
            co_await (ex::schedule(pool.get_scheduler()) | ex::then([] {}));
            co_yield i;
        }
    };
    for (int round = 0; round != 50; ++round) {
        int alive = 0;
        coppice::inplace_stop_source source;
        const auto consumer = [&]() -> task<> {
            auto g = busy(alive);
            const coppice::inplace_stop_token stop = co_await ex::read_env(coppice::get_stop_token);
            while (!stop.stop_requested()) co_await g.next();
        };
        std::thread stopper([&] {
            for (int i = 0; i != round % 20; ++i) std::this_thread::yield();
            source.request_stop();
        });
        sync_wait(ex::write_env(ex::starts_on(pool.get_scheduler(), consumer()),
                                ex::prop(coppice::get_stop_token, source.get_token())));
        stopper.join();
        EXPECT_EQ(alive, 0);
    }
}

}  // namespace
