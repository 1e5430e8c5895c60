// timeout with the timers of a pool whose workers all compute: the work is stopped nevertheless.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/pool/contract_pool.hpp>
#include <coppice/pool/fork_join.hpp>
#include <coppice/pool/queue_pool.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/task/task.hpp>

#include "busy_pool.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
using coppice::internal::acquire, coppice::internal::atomic, coppice::internal::release;
using test::busy_pool, test::calls_when_stopped, test::compute, test::timed_out, test::times_out;
using this_thread::sync_wait;

task<void> poll() {
    const inplace_stop_token token = co_await ex::read_env(get_stop_token);
    const auto until_stopped = [](inplace_stop_token stop) {
        while (!stop.stop_requested()) compute();
    };
    fork_join(token, until_stopped, until_stopped, [] { compute(); });
}

using some_pools = testing::Types<thread_pool, queue_pool<mutex_queue>, contract_pool>;
TYPED_TEST_SUITE(busy_pool, some_pools);

TYPED_TEST(busy_pool, forked_calls_that_poll_the_token_are_stopped) {
    this->with_each([](TypeParam& pool) {
        EXPECT_TRUE(
            times_out(pool, [&pool] { return ex::starts_on(pool.get_scheduler(), poll()); }));
    });
}

TYPED_TEST(busy_pool, a_limit_that_has_passed_ends_the_work) {
    this->with_each([](TypeParam& pool) {
        for (const auto limit : {-1h, 0h}) {
            EXPECT_TRUE(times_out(
                pool, [&pool] { return ex::starts_on(pool.get_scheduler(), poll()); }, limit));
        }
    });
}

TYPED_TEST(busy_pool, all_of_several_timeouts_end) {
    this->with_each([](TypeParam& pool) {
        const auto one = [&pool](std::chrono::nanoseconds limit) {
            const auto make = [&pool] { return ex::starts_on(pool.get_scheduler(), poll()); };
            return ex::starts_on(pool.get_scheduler(), timed_out(make, limit));
        };
        EXPECT_EQ(sync_wait(ex::when_all(one(1ms), one(1ms), one(2ms), one(3ms), one(0ms))),
                  std::tuple(true, true, true, true, true));
    });
}

// All three may be found due at the same time. Two then compute until the work of the third has
// stopped.
TYPED_TEST(busy_pool, what_follows_a_timeout_does_not_delay_another_one) {
    this->with_each([](TypeParam& pool) {
        thread_pool other(1);
        atomic<bool> begun{false};
        atomic<bool> stopped{false};
        const auto polls = [](atomic<bool>& begins, atomic<bool>& ends) -> task<void> {
            const inplace_stop_token token = co_await ex::read_env(get_stop_token);
            begins.store(true, release);
            while (!token.stop_requested()) compute();
            ends.store(true, release);
        };
        const auto make = [&] {
            return ex::starts_on(other.get_scheduler(), polls(begun, stopped));
        };
        // Also if the limit has passed before the work begins.
        const auto third = [&]() -> task<bool> {
            const bool timely = co_await timed_out(make, 1ms);
            begun.store(true, release);
            stopped.store(true, release);
            co_return timely;
        };
        const auto first = [&](TypeParam& on) -> task<bool> {
            const auto sch = on.get_scheduler();
            while (!begun.load(acquire)) co_await ex::schedule_after(sch, 100us);
            const auto hour = [&sch] { return ex::schedule_after(sch, 1h); };
            const bool timely = co_await timed_out(hour, 1ms);
            while (!stopped.load(acquire)) compute();
            co_return timely;
        };
        const auto sch = pool.get_scheduler();
        EXPECT_EQ(
            sync_wait(ex::when_all(ex::starts_on(sch, third()), ex::starts_on(sch, first(pool)),
                                   ex::starts_on(sch, first(pool)))),
            std::tuple(true, true, true));
    });
}

TYPED_TEST(busy_pool, a_timer_that_is_no_timeout_completes_after_the_work) {
    this->with_each([](TypeParam& pool) {
        atomic<bool> over{false};
        const auto sch = pool.get_scheduler();
        const auto busy = [](atomic<bool>& says) -> task<void> {
            for (int i = 0; i != 500; ++i) compute();
            says.store(true, release);
            co_return;
        };
        EXPECT_TRUE(
            sync_wait(ex::when_all(ex::schedule_after(sch, 1ms), ex::starts_on(sch, busy(over)),
                                   ex::schedule_after(sch, 100us))));
        EXPECT_TRUE(over.load(acquire));
    });
}

TYPED_TEST(busy_pool, the_end_of_the_pool_stops_the_work_before_its_limit) {
    for (int round = 0; round != test::repeated(3); ++round) {
        TypeParam pool(2);
        const auto ends = [](TypeParam& on) -> task<void> {
            on.request_stop();
            co_await poll();
        };
        const auto make = [&] { return ex::starts_on(pool.get_scheduler(), ends(pool)); };
        // The timer ends with the pool, and so does the work that it limits.
        auto work = ex::starts_on(pool.get_scheduler(), timed_out(make, 1h));
        EXPECT_FALSE(sync_wait(std::move(work)).has_value());
    }
}

TYPED_TEST(busy_pool, a_limit_holds_although_the_pool_was_told_to_end) {
    for (int round = 0; round != test::repeated(6); ++round) {
        TypeParam pool(1 + static_cast<std::size_t>(round) % 2);
        const auto ends = [](TypeParam& on) -> task<void> {
            const inplace_stop_token token = co_await ex::read_env(get_stop_token);
            const auto until_stopped = [](inplace_stop_token stop) {
                while (!stop.stop_requested()) compute();
            };
            const auto first = [&on, until_stopped](inplace_stop_token stop) {
                on.request_stop();
                until_stopped(stop);
            };
            fork_join(token, first, until_stopped);
        };
        const auto make = [&] { return ex::starts_on(pool.get_scheduler(), ends(pool)); };
        // It times out, or a worker that sees the end first stops the timer and so the work.
        auto work = ex::starts_on(pool.get_scheduler(), timed_out(make, 2ms));
        const auto got = sync_wait(std::move(work));
        EXPECT_TRUE(!got.has_value() || std::get<0>(*got));
    }
}

TYPED_TEST(busy_pool, a_limit_ends_the_work_for_which_the_destructor_waits) {
    for (int round = 0; round != test::repeated(6); ++round) {
        ex::counting_scope scope;
        atomic<int> begun{0};
        atomic<int> over{0};
        {
            const int workers = 1 + round % 2;
            TypeParam pool(static_cast<std::size_t>(workers));
            const auto begins = [](atomic<int>& all) -> task<void> {
                all.fetch_add(1, release);
                const inplace_stop_token token = co_await ex::read_env(get_stop_token);
                while (!token.stop_requested()) compute();
            };
            const auto ends = [](auto make, atomic<int>& all) -> task<void> {
                (void)co_await ex::stopped_as_optional(timed_out(make, 2ms));
                all.fetch_add(1, release);
            };
            const auto make = [&] { return ex::starts_on(pool.get_scheduler(), begins(begun)); };
            for (int i = 0; i != workers; ++i) {
                ex::spawn(ex::starts_on(pool.get_scheduler(), ends(make, over)), scope.get_token(),
                          [](auto&&) noexcept {});
            }
            // The limit may pass before the work begins.
            while (begun.load(acquire) + over.load(acquire) == 0) {
                coppice::internal::thread_yield();
            }
        }
        EXPECT_EQ(over.load(acquire), round % 2 + 1);
        sync_wait(scope.join());
    }
}

// A time that no clock reaches must not make the guard look again and again, nor overflow.
TYPED_TEST(busy_pool, the_longest_limit_lets_the_work_end) {
    this->with_each([](TypeParam& pool) {
        const auto brief = [](atomic<int>& runs) -> task<void> {
            for (int i = 0; i != 300; ++i) compute();
            runs.fetch_add(1, release);
            co_return;
        };
        atomic<int> runs{0};
        for (const auto limit : {std::chrono::nanoseconds::max(), std::chrono::nanoseconds(1h)}) {
            EXPECT_FALSE(times_out(
                pool, [&] { return ex::starts_on(pool.get_scheduler(), brief(runs)); }, limit));
        }
        EXPECT_EQ(runs.load(acquire), 2);
    });
}

// More than a look at a wheel takes at once, all due at the same time.
TYPED_TEST(busy_pool, each_of_a_thousand_timeouts_is_told) {
    static constexpr int count = 1'000;
    this->with_each([](TypeParam& pool) {
        atomic<int> stops{0};
        ex::counting_scope scope;
        const auto sch = pool.get_scheduler();
        const auto count_one = [&stops] { stops.fetch_add(1, release); };
        const auto until_all = [](atomic<int>& all) -> task<void> {
            while (all.load(acquire) != count) compute();
            co_return;
        };
        for (int worker = 0; worker != 2; ++worker) {
            ex::spawn(ex::starts_on(sch, until_all(stops)), scope.get_token(),
                      [](auto&&) noexcept {});
        }
        for (int i = 0; i != count; ++i) {
            auto limited = ex::timeout(calls_when_stopped{count_one}, 1ms);
            ex::spawn(ex::write_env(std::move(limited), ex::prop(ex::get_timed_scheduler, sch)),
                      scope.get_token(), [](auto&&) noexcept {});
        }
        sync_wait(scope.join());
        EXPECT_EQ(stops.load(acquire), count);
    });
}

}  // namespace
