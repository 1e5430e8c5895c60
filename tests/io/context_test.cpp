// io/context.hpp and io/timer.hpp on both rings: posting, timers, stopping, and destruction.
#include <coppice/io/context.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/task/task.hpp>

#include "allocations.hpp"
#include "detached.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using coppice::test::detached;

class context_on : public testing::TestWithParam<io::backend> {};

INSTANTIATE_TEST_SUITE_P(rings, context_on, test::all_rings, test::ring_name);

TEST_P(context_on, takes_the_ring_it_was_asked_for) {
    EXPECT_EQ(io::context(GetParam()).kind(), GetParam());
    EXPECT_NE(io::context().kind(), io::backend::automatic);
}

TEST_P(context_on, run_returns_when_nothing_is_pending) {
    io::context loop(GetParam());
    loop.run();
    loop.run();
}

TEST_P(context_on, a_guard_keeps_run_until_it_is_released_on_another_thread) {
    io::context loop(GetParam());
    auto guard = std::make_unique<io::context::work_guard>(loop);
    bool released = false;
    std::thread other([&] {
        released = true;
        guard.reset();
    });
    loop.run();
    EXPECT_TRUE(released);
    other.join();
}

TEST_P(context_on, stop_ends_run_from_another_thread_and_restart_undoes_it) {
    io::context loop(GetParam());
    const io::context::work_guard guard(loop);
    std::thread other([&] { loop.stop(); });
    loop.run();
    other.join();
    loop.run();  // still stopped
    loop.restart();
    std::thread again([&] { loop.stop(); });
    loop.run();
    again.join();
}

TEST_P(context_on, posts_of_many_threads_all_run_on_the_loop) {
    io::context loop(GetParam());
    auto guard = std::make_unique<io::context::work_guard>(loop);
    constexpr int threads = 4, each = 2000;
    int ran = 0;  // written on the loop only
    auto hop = [&](io::context& to) -> task<> {
        co_await to.get_scheduler().schedule();
        EXPECT_TRUE(to.is_current());
        ++ran;
    };
    auto sender = [&](io::context& to) -> detached {
        for (int i = 0; i != each; ++i) co_await hop(to);
    };
    std::vector<std::thread> senders;
    std::thread runner([&] { loop.run(); });
    for (int i = 0; i != threads; ++i) senders.emplace_back([&] { sender(loop); });
    for (auto& s : senders) s.join();
    // Everything after a hop runs on the loop, so this runs last.
    auto finish = [&](io::context& to) -> detached {
        do {
            co_await to.get_scheduler().schedule();
        } while (ran != threads * each);
        guard.reset();
    };
    finish(loop);
    runner.join();
    EXPECT_EQ(ran, threads * each);
}

TEST_P(context_on, timers_end_in_the_order_of_their_times_and_never_early) {
    io::context loop(GetParam());
    std::vector<int> order;
    auto wait = [&](int id, duration time) -> detached {
        io::timer timer(loop);
        const time_point before = loop.now();
        co_await timer.wait_for(time);
        EXPECT_GE(loop.now() - before, time);
        order.push_back(id);
    };
    wait(3, 30ms);
    wait(1, 1ms);
    wait(2, 15ms);
    wait(0, 0ms);
    wait(-1, -5ms);
    loop.run();
    EXPECT_EQ(order.size(), 5u);
    EXPECT_EQ((std::vector<int>{order[2], order[3], order[4]}), (std::vector<int>{1, 2, 3}));
}

TEST_P(context_on, timers_allocate_nothing_in_steady_state) {
    io::context loop(GetParam());
    std::size_t allocated = 1;
    auto waits = [&]() -> detached {
        io::timer timer(loop);
        co_await timer.wait_for(1ms);
        const coppice::test::allocation_count count;
        for (int i = 0; i != 5; ++i) co_await timer.wait_for(1ms);
        allocated = count.so_far();
    };
    waits();
    loop.run();
    EXPECT_EQ(allocated, 0u);
}

// Waits twice. The frame and its arguments outlive the loop that ends it.
detached wait_twice(io::context& loop, int& cancelled) {
    io::timer timer(loop);
    std::error_code ec;
    for (int i = 0; i != 2; ++i) {
        co_await timer.wait_for(1h, use_await[ec]);
        cancelled += ec == std::errc::operation_canceled;
    }
}

TEST_P(context_on, its_destructor_cancels_what_waits_and_what_starts_then) {
    int cancelled = 0;
    {
        io::context loop(GetParam());
        wait_twice(loop, cancelled);
        loop.stop();
        loop.run();
        EXPECT_EQ(cancelled, 0);
    }
    EXPECT_EQ(cancelled, 2);
}

TEST_P(context_on, may_be_destroyed_on_another_thread_than_it_ran_on) {
    int cancelled = 0;
    {
        io::context loop(GetParam());
        std::thread([&] {
            wait_twice(loop, cancelled);
            loop.stop();
            loop.run();
        }).join();
    }
    EXPECT_EQ(cancelled, 2);
}

TEST(context_death, running_a_loop_inside_a_loop_stops_the_process) {
    EXPECT_DEATH(
        {
            io::context outer(io::backend::epoll);
            auto inner = [](io::context& loop) -> detached {
                co_await loop.get_scheduler().schedule();
                io::context(io::backend::epoll).run();
            };
            inner(outer);
            outer.run();
        },
        "inside a running loop");
}

}  // namespace
