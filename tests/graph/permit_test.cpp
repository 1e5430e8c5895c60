// Nodes that hold permits of a semaphore while they run.
#include "graphs.hpp"

#include <coppice/sync.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <stdexcept>

namespace coppice::graph_test {
namespace {

TEST(graph_permits, limit_how_many_nodes_run_at_once) {
    thread_pool pool(2);
    async_semaphore one(1);
    int inside = 0;  // a data race here would be seen
    int runs = 0;
    task_graph graph;
    for (int i = 0; i != 100; ++i) {
        graph
            .emplace([&] {
                ASSERT_EQ(++inside, 1);
                ++runs;
                --inside;
            })
            .acquire(one);
    }
    EXPECT_TRUE(finishes(graph.run_n(pool, 20)));
    EXPECT_EQ(runs, 2000);
    EXPECT_EQ(one.available(), 1u);
}

TEST(graph_permits, are_held_while_a_task_waits_and_no_worker_is) {
    thread_pool pool(1);
    async_semaphore two(2);
    shared_number inside;
    record ran;
    task_graph graph;
    for (int i = 0; i != 20; ++i) {
        graph
            .emplace([&]() -> task<void> {
                EXPECT_LE(inside.add(1), 2);
                co_await ex::schedule_after(pool.get_scheduler(), std::chrono::microseconds(50));
                inside.add(-1);
                ran.add("t");
            })
            .acquire(two);
    }
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(ran.count("t"), 20u);
    EXPECT_EQ(two.available(), 2u);
}

TEST(graph_permits, of_two_semaphores_are_acquired_in_order) {
    thread_pool pool(2);
    async_semaphore a(1);
    async_semaphore b(3);
    int runs = 0;
    task_graph graph;
    for (int i = 0; i != 50; ++i) graph.emplace([&runs] { ++runs; }).acquire(a).acquire(b, 3);
    EXPECT_TRUE(finishes(graph.run_n(pool, 5)));
    EXPECT_EQ(runs, 250);
    EXPECT_EQ(a.available() + b.available(), 4u);
}

TEST(graph_permits, are_given_back_before_the_successors_start) {
    thread_pool pool(2);
    async_semaphore one(1);
    std::size_t seen = 0;
    task_graph graph;
    node holds = graph.emplace([] {}).acquire(one);
    holds.precede(graph.emplace([&] { seen = one.available(); }));
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(seen, 1u);
}

TEST(graph_permits, are_given_back_after_an_exception) {
    thread_pool pool(2);
    async_semaphore one(1);
    task_graph graph;
    for (int i = 0; i != 20; ++i) {
        graph
            .emplace([i] {
                if (i == 7) throw std::runtime_error("seven");
            })
            .acquire(one);
    }
    for (int i = 0; i != 20; ++i) {
        EXPECT_THROW((void)finishes(graph.run(pool)), std::runtime_error);
        ASSERT_EQ(one.available(), 1u);
    }
}

TEST(graph_permits, a_stop_ends_the_wait_for_a_permit) {
    thread_pool pool(2);
    inplace_stop_source source;
    async_semaphore none(0);
    async_semaphore one(1);
    record ran;
    task_graph graph;
    node waits = graph.emplace(ran.say("w")).acquire(one).acquire(none);
    waits.precede(graph.emplace(ran.say("x")));
    graph.emplace([&source] { source.request_stop(); });
    EXPECT_FALSE(
        finishes(ex::write_env(graph.run(pool), ex::prop(get_stop_token, source.get_token()))));
    EXPECT_EQ(ran.text(), "");
    EXPECT_EQ(one.available(), 1u);
    none.release(1);
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_TRUE(ran.in_order("w", "x"));
}

// An earlier deadline makes the process's timer serve equal later ones in any order.
TEST(graph_permits, a_deadline_that_ends_the_wait_for_a_permit_stops_the_run) {
    thread_pool pool(2);
    for (int i = 0; i != 50; ++i) {
        async_event never;
        async_semaphore none(0);
        shared_number successors;
        task_graph graph;
        for (int n = 0; n != 19; ++n) {
            node waits = graph.emplace([] {}).acquire(none);
            waits.precede(graph.emplace([&successors] { successors.add(1); }));
        }
        const std::int64_t due = ex::monotonic_now().nanoseconds() + 500'000;
        const auto until = [](std::int64_t time) {
            return ex::prop(ex::get_deadline, ex::instant(time));
        };
        std::promise<void> earlier;
        never.wait(
            bind_env(until(due - 100'000), [&earlier](std::error_code) { earlier.set_value(); }));
        std::error_code error;
        graph.run(pool, bind_env(until(due), block[error]));
        earlier.get_future().get();
        ASSERT_EQ(error, std::errc::operation_canceled);
        ASSERT_EQ(successors.get(), 0);
    }
}

TEST(graph_permits, a_thread_outside_may_release_what_a_node_waits_for) {
    thread_pool pool(2);
    async_semaphore gate(0);
    int runs = 0;
    task_graph graph;
    graph.emplace([&runs] { ++runs; }).acquire(gate, 2);
    for (int i = 1; i != 4; ++i) {  // a wait in one run leaves nothing for the next
        std::future<void> ended = graph.run(pool, use_future);
        gate.release(1);
        gate.release(1);
        ended.get();
        EXPECT_EQ(runs, i);
        gate.try_acquire(2)->forget();
    }
    EXPECT_EQ(gate.available(), 0u);
}

TEST(graph_permits, are_held_by_a_subgraph_until_all_its_nodes_have_ended) {
    thread_pool pool(2);
    async_semaphore one(1);
    shared_number inside;
    task_graph graph;
    for (int i = 0; i != 10; ++i) {
        graph
            .emplace([&](subgraph& inner) {
                EXPECT_EQ(inside.add(1), 1);
                auto [a, b, c] = inner.emplace([] {}, [] {}, [&] { inside.add(-1); });
                c.succeed(a, b);
            })
            .acquire(one);
    }
    EXPECT_TRUE(finishes(graph.run_n(pool, 10)));
    EXPECT_EQ(one.available(), 1u);
}

}  // namespace
}  // namespace coppice::graph_test
