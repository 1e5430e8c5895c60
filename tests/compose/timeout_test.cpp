// A timeout of a whole task, awaited by a task. The timer is that of the scheduler on which the
// task runs, or one that is named at the timeout or around the root task.
#include "compose.hpp"

#include <coppice/io/run.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/task.hpp>

#include <system_error>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;

// Two operations in sequence: a timeout of either one alone would see only half of the time.
task<int> two_waits(io::context& loop, std::chrono::nanoseconds each) {
    io::timer timer(loop);
    co_await timer.wait_for(each);
    co_await timer.wait_for(each);
    co_return 7;
}

template <class Place>
struct task_timeouts : testing::Test {
    using scheduler_type = decltype(std::declval<Place&>().scheduler());
    static constexpr bool timed = ex::timed_scheduler<scheduler_type>;

    // Names the timers if the place has none.
    template <class Sndr>
    auto limited(Sndr sndr, std::chrono::nanoseconds limit) {
        if constexpr (timed) {
            return ex::timeout(std::move(sndr), limit);
        } else {
            return ex::write_env(ex::timeout(std::move(sndr), limit),
                                 ex::prop(ex::get_timed_scheduler, clock.loop().get_scheduler()));
        }
    }
    // Returns what a task in the place gets that awaits two_waits() with this limit: -1 if it timed
    // out, -2 for any other error, -3 if it continued elsewhere.
    task<int> wait(std::chrono::nanoseconds each, std::chrono::nanoseconds limit) {
        int got = 0;
        try {
            got = co_await limited(two_waits(clock.loop(), each), limit);
        } catch (const std::system_error& error) {
            got = error.code() == std::errc::timed_out ? -1 : -2;
        }
        co_return place.is_here() ? got : -3;
    }
    auto run(task<int> t) {
        return this_thread::sync_wait(ex::starts_on(place.scheduler(), std::move(t)));
    }

    test::clock_loop clock;
    Place place{clock};
};
TYPED_TEST_SUITE(task_timeouts, test::all_places, );

TYPED_TEST(task_timeouts, a_task_that_is_in_time_returns_its_value) {
    EXPECT_EQ(std::get<0>(*this->run(this->wait(100us, 1h))), 7);
}

TYPED_TEST(task_timeouts, a_task_that_is_late_is_stopped_and_timed_out_is_thrown) {
    EXPECT_EQ(std::get<0>(*this->run(this->wait(1h, 2ms))), -1);
}

TYPED_TEST(task_timeouts, an_inner_timeout_ends_the_inner_task_alone) {
    auto outer = [](task_timeouts<TypeParam>& self) -> task<int> {
        co_return co_await self.limited(self.wait(1h, 1ms), 1h);
    };
    EXPECT_EQ(std::get<0>(*this->run(outer(*this))), -1);
}

TYPED_TEST(task_timeouts, a_stop_from_outside_is_not_a_timeout) {
    io::timer timer(this->clock.loop());
    auto first = ex::when_any(ex::starts_on(this->place.scheduler(), this->wait(1h, 1h)),
                              timer.wait_for(1ms) | ex::then([] { return 3; }));
    EXPECT_EQ(std::get<0>(*this_thread::sync_wait(std::move(first))), 3);
}

// The timer is named once, around the root. No task below names it again.
template <class Place>
struct inherited_timeouts : testing::Test {
    // As in task_timeouts.
    task<int> wait(std::chrono::nanoseconds each, std::chrono::nanoseconds limit) {
        int got = 0;
        try {
            got = co_await ex::timeout(two_waits(clock.loop(), each), limit);
        } catch (const std::system_error& error) {
            got = error.code() == std::errc::timed_out ? -1 : -2;
        }
        co_return place.is_here() ? got : -3;
    }
    task<int> wait_below(int depth, std::chrono::nanoseconds each, std::chrono::nanoseconds limit) {
        if (depth == 0) co_return co_await wait(each, limit);
        const int got = co_await wait_below(depth - 1, each, limit);
        co_return place.is_here() ? got : -3;
    }
    auto rooted(task<int> t) {
        return ex::write_env(ex::starts_on(place.scheduler(), std::move(t)),
                             ex::prop(ex::get_timed_scheduler, clock.loop().get_scheduler()));
    }
    int run(task<int> t) { return std::get<0>(*this_thread::sync_wait(rooted(std::move(t)))); }

    test::clock_loop clock;
    Place place{clock};
};
TYPED_TEST_SUITE(inherited_timeouts, test::all_places, );

TYPED_TEST(inherited_timeouts, a_task_that_is_in_time_returns_its_value) {
    EXPECT_EQ(this->run(this->wait(100us, 1h)), 7);
    EXPECT_EQ(this->run(this->wait_below(3, 100us, 1h)), 7);
}

TYPED_TEST(inherited_timeouts, a_task_that_is_late_is_stopped_and_timed_out_is_thrown) {
    EXPECT_EQ(this->run(this->wait(1h, 2ms)), -1);
    EXPECT_EQ(this->run(this->wait_below(3, 1h, 2ms)), -1);
}

TYPED_TEST(inherited_timeouts, a_timeout_within_a_timeout_ends_the_inner_task_alone) {
    auto outer = [](inherited_timeouts<TypeParam>& self) -> task<int> {
        co_return co_await ex::timeout(self.wait_below(1, 1h, 1ms), 1h);
    };
    EXPECT_EQ(this->run(outer(*this)), -1);
}

TYPED_TEST(inherited_timeouts, an_outer_timeout_ends_all_below_by_a_stop) {
    auto outer = [](inherited_timeouts<TypeParam>& self) -> task<int> {
        try {
            co_return co_await ex::timeout(self.wait_below(1, 1h, 2h), 1ms);
        } catch (const std::system_error& error) {
            if (error.code() != std::errc::timed_out) co_return -2;
        }
        co_return self.place.is_here() ? -1 : -3;
    };
    EXPECT_EQ(this->run(outer(*this)), -1);
}

TYPED_TEST(inherited_timeouts, a_stop_from_outside_is_not_a_timeout) {
    io::timer timer(this->clock.loop());
    auto first = ex::when_any(this->rooted(this->wait_below(2, 1h, 1h)),
                              timer.wait_for(1ms) | ex::then([] { return 3; }));
    EXPECT_EQ(std::get<0>(*this_thread::sync_wait(std::move(first))), 3);
}

// The timer, the task, and a stop end at about the same time, each on another thread.
TYPED_TEST(inherited_timeouts, race_with_the_task_and_a_stop_and_end_once_in_their_place) {
    constexpr int rounds = 50;
    for (int i = 0; i != rounds; ++i) {
        const auto limit = std::chrono::microseconds(i % 10 * 30);
        EXPECT_NE(this->run(this->wait_below(1, 70us, limit)), -3);
        EXPECT_NE(this->run(this->wait_below(1, 70us, limit)), -2);
        io::timer timer(this->clock.loop());
        auto first = ex::when_any(this->rooted(this->wait_below(1, 100us, limit)),
                                  timer.wait_for(150us) | ex::then([] { return 3; }));
        const int got = std::get<0>(*this_thread::sync_wait(std::move(first)));
        EXPECT_TRUE(got == 3 || got == 7 || got == -1) << got;
    }
}

// Tasks that run concurrently, on other threads than their timers.
TYPED_TEST(inherited_timeouts, serve_concurrent_tasks) {
    auto both = [](inherited_timeouts<TypeParam>& self) -> task<int> {
        const auto [a, b] =
            co_await wait_for_tasks(self.wait_below(1, 1h, 1ms), self.wait_below(1, 10us, 1h));
        const auto [c, d] =
            co_await ex::when_all(self.wait_below(1, 1h, 1ms), self.wait_below(1, 10us, 1h));
        co_return a == -1 && b == 7 && c == -1 && d == 7 && self.place.is_here() ? 1 : 0;
    };
    EXPECT_EQ(this->run(both(*this)), 1);
}

// The loop's timers are not named: the parent task runs on the loop.
TYPED_TEST(inherited_timeouts, are_those_of_the_parent_task_after_a_hop) {
    auto child = [](inherited_timeouts<TypeParam>& self) -> task<int> {
        const int late = co_await self.wait_below(1, 1h, 1ms);
        const int in_time = co_await self.wait_below(1, 10us, 1h);
        co_return late == -1 && in_time == 7 && self.place.is_here() ? 1 : 0;
    };
    auto root = [child](inherited_timeouts<TypeParam>& self) -> task<int> {
        const int below = co_await ex::starts_on(self.place.scheduler(), child(self));
        if (!self.clock.is_here()) co_return -3;
        co_await ex::change_coroutine_scheduler(ex::task_scheduler(self.place.scheduler()));
        const int changed = co_await child(self);
        co_return below + changed;
    };
    EXPECT_EQ(
        this_thread::sync_wait(ex::starts_on(this->clock.loop().get_scheduler(), root(*this))),
        std::tuple(2));
}

// An operation of a loop always knows its timers. No thread runs the loop that is named.
TEST(task_timeout, of_an_operation_takes_its_loops_timers_before_those_named_around_the_task) {
    test::clock_loop clock;
    thread_pool pool(1);
    ex::run_loop unused;
    auto limits = [](io::context& loop) -> task<bool> {
        io::timer timer(loop);
        try {
            co_await ex::timeout(timer.wait_for(1h), 1ms);
        } catch (const std::system_error& error) {
            co_return error.code() == std::errc::timed_out;
        }
        co_return false;
    };
    auto root = ex::write_env(ex::starts_on(pool.get_scheduler(), limits(clock.loop())),
                              ex::prop(ex::get_timed_scheduler, unused.get_scheduler()));
    EXPECT_EQ(this_thread::sync_wait(std::move(root)), std::tuple(true));
}

template <class Pool>
task<bool> starts_a_timeout_on(Pool& pool, io::context& loop) {
    const auto wait = [&loop] { return loop.get_scheduler().schedule_after(1h); };
    try {
        co_await ex::starts_on(pool.get_scheduler(),
                               ex::timeout(ex::just() | ex::let_value(wait), 1ms));
    } catch (const std::system_error& error) {
        co_return error.code() == std::errc::timed_out;
    }
    co_return false;
}

// Without a task, the sender's environment names only the scheduler of the pool's group, which has
// no timers.
TEST(task_timeout, of_a_sender_that_it_starts_on_a_group_has_the_tasks_timers) {
    test::clock_loop clock;
    contract_pool pool(1);
    EXPECT_EQ(this_thread::sync_wait(ex::starts_on(
                  clock.loop().get_scheduler(), starts_a_timeout_on(pool.group(), clock.loop()))),
              std::tuple(true));
    EXPECT_EQ(this_thread::sync_wait(
                  ex::write_env(starts_a_timeout_on(pool.group(), clock.loop()),
                                ex::prop(ex::get_timed_scheduler, clock.loop().get_scheduler()))),
              std::tuple(true));
    EXPECT_EQ(
        io::run([&pool](io::context& loop) { return starts_a_timeout_on(pool.group(), loop); }),
        true);
}

// The timer starts after the sender has started.
TEST(task_timeout, of_a_sender_whose_start_takes_long_counts_from_its_end) {
    io::simulation world(1, io::simulated_faults::none());
    io::context loop(world);
    io::tcp::socket socket(loop);
    const auto pass = [&](std::chrono::nanoseconds time) {
        const auto until = loop.now() + time;
        while (loop.now() < until) (void)socket.set(io::no_delay(true));
    };
    const auto begin = loop.now();
    auto end = begin;
    const auto slow = [&] {
        pass(20ms);
        return loop.get_scheduler().schedule_after(1h);
    };
    const auto work = [&]() -> task<> {
        try {
            co_await ex::timeout(ex::just() | ex::let_value(slow), 10ms);
        } catch (const std::system_error& error) {
            if (error.code() == std::errc::timed_out) end = loop.now();
        }
    };
    ex::counting_scope scope;
    ex::spawn(ex::starts_on(loop.get_scheduler(), work()), scope.get_token(),
              [](auto&&) noexcept {});
    loop.run();
    this_thread::sync_wait(scope.join());
    EXPECT_GE(end - begin, 30ms);
    EXPECT_LT(end - begin, 31ms);
}

// An operation of a loop observes the deadline itself. That is a timeout, however short the limit.
TEST(task_timeout, of_zero_around_an_operation_is_a_timeout) {
    test::clock_loop clock;
    auto limits = [](io::context& loop, std::chrono::nanoseconds limit) -> task<bool> {
        io::timer timer(loop);
        try {
            co_await ex::timeout(timer.wait_for(1h), limit);
        } catch (const std::system_error& error) {
            co_return error.code() == std::errc::timed_out;
        }
        co_return false;
    };
    for (const std::chrono::nanoseconds limit : {-1ns, 0ns, 1ns, 1000ns, 300'000ns}) {
        auto root = ex::starts_on(clock.loop().get_scheduler(), limits(clock.loop(), limit));
        EXPECT_EQ(this_thread::sync_wait(std::move(root)), std::tuple(true)) << limit.count();
    }
}

// The abilities of a task's scheduler are known only at run time.
TEST(task_timeout, without_a_timer_stops_the_process) {
    EXPECT_DEATH(
        {
            test::clock_loop timers;
            contract_pool pool(1);
            auto forgets = [](io::context& loop) -> task<int> {
                co_return co_await ex::timeout(two_waits(loop, 1ms), 1s);
            };
            this_thread::sync_wait(
                ex::starts_on(pool.group().get_scheduler(), forgets(timers.loop())));
        },
        "a timer was asked of a scheduler that has none: name one");
    EXPECT_DEATH(
        {
            test::clock_loop timers;
            contract_pool pool(1);
            this_thread::sync_wait(ex::starts_on(pool.group().get_scheduler(),
                                                 starts_a_timeout_on(pool.group(), timers.loop())));
        },
        "a timer was asked of a scheduler that has none: name one");
}

}  // namespace
