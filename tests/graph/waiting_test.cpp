// Nodes that wait: tasks, senders, permits. They hold no worker, and a stop reaches them.
#include "graphs.hpp"

#include <coppice/sync.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace coppice::graph_test {
namespace {

TEST(graph_waiting, the_successors_of_a_task_run_when_it_has_ended) {
    thread_pool pool(1);
    record ran;
    task_graph graph;
    node wait = graph.emplace([&]() -> task<void> {
        ran.add("a");
        co_await ex::schedule_after(pool.get_scheduler(), milliseconds(1));
        ran.add("b");
    });
    wait.precede(graph.emplace(ran.say("c")));
    EXPECT_TRUE(finishes(graph.run_n(pool, 3)));
    EXPECT_EQ(ran.text(), "abcabcabc");
}

TEST(graph_waiting, a_node_that_waits_holds_no_worker) {
    thread_pool pool(1);
    async_event open;
    record ran;
    task_graph graph;
    auto [waits, opens] = graph.emplace(
        [&]() -> task<void> {
            ran.add("w");
            co_await open.wait();
            ran.add("o");
        },
        [&] {
            ran.add("s");
            open.set();
        });
    waits.priority(1);
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(ran.text(), "wso");
}

TEST(graph_waiting, a_task_that_does_not_wait_ends_in_place) {
    thread_pool pool(2);
    int n = 0;
    task_graph graph;
    node last;
    for (int i = 0; i != 10'000; ++i) {
        node next = graph.emplace([&n]() -> task<void> {
            ++n;
            co_return;
        });
        if (last) last.precede(next);
        last = next;
    }
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(n, 10'000);
}

TEST(graph_waiting, a_task_continues_on_the_pool_and_sees_the_stop_token_of_the_run) {
    thread_pool pool(2);
    inplace_stop_source source;
    bool on_pool = false;
    bool stoppable = false;
    task_graph graph;
    graph.emplace([&]() -> task<void> {
        co_await ex::schedule_after(pool.get_scheduler(), milliseconds(1));
        on_pool = pool.is_current();
        stoppable = (co_await ex::read_env(get_stop_token)).stop_possible();
    });
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_TRUE(on_pool && stoppable);
}

TEST(graph_waiting, a_coroutine_may_be_a_lambda_that_captures) {
    thread_pool pool(2);
    record ran;
    task_graph graph;
    {
        std::string text = "captured, and longer than a small string's buffer";
        graph.emplace([&ran, &pool, text]() -> task<void> {
            co_await ex::schedule_after(pool.get_scheduler(), milliseconds(1));
            ran.add(text);
        });
    }
    EXPECT_TRUE(finishes(graph.run_n(pool, 2)));
    EXPECT_EQ(ran.count("captured, and longer than a small string's buffer"), 2u);
}

TEST(graph_waiting, a_sender_is_started_at_each_run_and_its_value_is_dropped) {
    thread_pool pool(2);
    int n = 0;
    record ran;
    task_graph graph;
    node sender = graph.emplace_sender(ex::just(1) | ex::then([&n](int i) { return n += i; }));
    node made = graph.emplace([&n] { return ex::just() | ex::then([&n] { n += 10; }); });
    sender.precede(made);
    made.precede(graph.emplace(ran.say("x")));
    EXPECT_TRUE(finishes(graph.run_n(pool, 3)));
    EXPECT_EQ(n, 33);
    EXPECT_EQ(ran.text(), "xxx");
}

TEST(graph_waiting, successors_of_a_sender_run_on_the_pool_wherever_it_completes) {
    thread_pool pool(1);
    thread_pool other(1);
    bool before = true;
    bool after = false;
    task_graph graph;
    node there = graph.emplace_sender(ex::schedule(other.get_scheduler()) |
                                      ex::then([&] { before = pool.is_current(); }));
    there.precede(graph.emplace([&] { after = pool.is_current(); }));
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_FALSE(before);
    EXPECT_TRUE(after);
}

TEST(graph_waiting, an_error_of_a_sender_is_thrown) {
    thread_pool pool(2);
    record ran;
    task_graph graph;
    node fails =
        graph.emplace_sender(ex::just_error(std::make_error_code(std::errc::connection_refused)));
    fails.precede(graph.emplace(ran.say("x")));
    EXPECT_EQ(refusal(graph.run(pool)), std::errc::connection_refused);
    EXPECT_EQ(ran.text(), "");
}

TEST(graph_waiting, a_sender_that_is_stopped_by_itself_stops_the_run) {
    thread_pool pool(2);
    record ran;
    task_graph graph;
    graph.emplace_sender(ex::just_stopped()).precede(graph.emplace(ran.say("x")));
    EXPECT_FALSE(finishes(graph.run(pool)));
    EXPECT_EQ(ran.text(), "");
}

TEST(graph_waiting, a_stop_reaches_a_task_and_a_sender_that_wait) {
    thread_pool pool(2);
    inplace_stop_source source;
    async_event never;
    record ran;
    task_graph graph;
    node task_waits = graph.emplace([&]() -> task<void> { co_await never.wait(); });
    node sender_waits = graph.emplace_sender(never.wait() | ex::then([] {}) | ex::split());
    graph.emplace([&source] { source.request_stop(); });
    task_waits.precede(graph.emplace(ran.say("x")));
    sender_waits.precede(graph.emplace(ran.say("y")));
    const auto run = [&] {
        return ex::write_env(graph.run(pool), ex::prop(get_stop_token, source.get_token()));
    };
    EXPECT_FALSE(finishes(run()));
    EXPECT_EQ(ran.text(), "");
}

TEST(graph_waiting, an_exception_ends_the_nodes_that_wait) {
    thread_pool pool(2);
    async_event never;
    task_graph graph;
    for (int i = 0; i != 10; ++i) {
        graph.emplace([&never]() -> task<void> { co_await never.wait(); });
    }
    graph.emplace([] { throw std::runtime_error("first"); });
    for (int i = 0; i != 5; ++i) {
        EXPECT_THROW((void)finishes(graph.run(pool)), std::runtime_error);
    }
}

TEST(graph_waiting, a_deadline_of_the_waiter_stops_the_run) {
    thread_pool pool(2);
    async_event never;
    task_graph graph;
    graph.emplace([&never]() -> task<void> { co_await never.wait(); });
    EXPECT_THROW((void)finishes(ex::starts_on(pool.get_scheduler(),
                                              ex::timeout(graph.run(pool), milliseconds(1)))),
                 std::system_error);
    never.set();
    EXPECT_TRUE(finishes(graph.run(pool)));
}

TEST(graph_waiting, a_function_that_takes_a_token_sees_the_stop) {
    thread_pool pool(2);
    inplace_stop_source source;
    task_graph graph;
    graph.emplace([](inplace_stop_token token) {
        while (!token.stop_requested()) std::this_thread::yield();
    });
    graph.emplace([&source] { source.request_stop(); });
    EXPECT_FALSE(
        finishes(ex::write_env(graph.run(pool), ex::prop(get_stop_token, source.get_token()))));
}

TEST(graph_waiting, a_thousand_nodes_wait_side_by_side) {
    thread_pool pool(2);
    task_graph graph;
    for (int i = 0; i != 1000; ++i) {
        graph.emplace([&pool]() -> task<void> {
            co_await ex::schedule_after(pool.get_scheduler(), milliseconds(20));
        });
    }
    EXPECT_TRUE(finishes(graph.run_n(pool, 2)));
}

}  // namespace
}  // namespace coppice::graph_test
