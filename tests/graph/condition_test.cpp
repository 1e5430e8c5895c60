// Conditions: choices, loops, joins inside loops, and starts that come while a node runs.
#include "graphs.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace coppice::graph_test {
namespace {

TEST(graph_condition, runs_the_successor_that_it_names_in_the_order_of_precede) {
    thread_pool pool(2);
    for (int choice = -1; choice != 4; ++choice) {
        record ran;
        task_graph graph;
        auto [start, choose, a, b, c] = graph.emplace([] {}, [choice] { return choice; },
                                                      ran.say("a"), ran.say("b"), ran.say("c"));
        start.precede(choose);
        choose.precede(a).precede(b, c);
        c.priority(5);
        ASSERT_TRUE(finishes(graph.run_n(pool, 2)));
        static const std::string expected[] = {"", "aa", "bb", "cc", ""};
        EXPECT_EQ(ran.text(), expected[choice + 1]);
    }
}

TEST(graph_condition, a_loop_ends_when_the_condition_says_so) {
    thread_pool pool(2);
    int n = 0;
    record ran;
    task_graph graph;
    auto [init, body, again, done] = graph.emplace(
        [&n] { n = 0; }, [&n] { ++n; }, [&n] { return n < 1000 ? 0 : 1; }, ran.say("done"));
    init.precede(body);
    body.precede(again);
    again.precede(body, done);
    ASSERT_TRUE(finishes(graph.run_n(pool, 3)));
    EXPECT_EQ(n, 1000);
    EXPECT_EQ(ran.count("done"), 3u);
}

TEST(graph_condition, a_condition_may_be_its_own_successor) {
    thread_pool pool(2);
    int n = 0;
    task_graph graph;
    auto [init, again] = graph.emplace([] {}, [&n] { return ++n % 100'000 == 0 ? 1 : 0; });
    init.precede(again);
    again.precede(again);
    ASSERT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(n, 100'000);
}

TEST(graph_condition, joins_count_again_in_each_turn_of_a_loop) {
    thread_pool pool(2);
    int turns = 0;
    record ran;
    task_graph graph;
    auto [init, fork, a, b, c, join, again, done] =
        graph.emplace([] {}, ran.say("f"), ran.say("a"), ran.say("b"), ran.say("c"), ran.say("j"),
                      [&turns] { return ++turns % 100 == 0 ? 1 : 0; }, ran.say("d"));
    init.precede(fork);
    fork.precede(a, b, c);
    join.succeed(a, b, c);
    join.precede(again);
    again.precede(fork, done);
    ASSERT_TRUE(finishes(graph.run_n(pool, 2)));
    for (const char* name : {"f", "a", "b", "c", "j"}) EXPECT_EQ(ran.count(name), 200u);
    EXPECT_EQ(ran.count("d"), 2u);
}

TEST(graph_condition, a_chosen_node_starts_whatever_else_precedes_it) {
    thread_pool pool(2);
    record ran;
    task_graph graph;
    auto [start, choose, never, other, target] =
        graph.emplace([] {}, [] { return 0; }, [] { return 7; }, ran.say("o"), ran.say("t"));
    start.precede(choose, never);
    never.precede(other);
    choose.precede(target);
    other.precede(target);
    ASSERT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(ran.text(), "t");
}

TEST(graph_condition, a_partly_reached_join_starts_over_in_the_next_run) {
    thread_pool pool(2);
    int run = 0;
    record ran;
    task_graph graph;
    auto [start, choose, a, b, join] = graph.emplace([] {}, [&run] { return run++ == 0 ? 9 : 0; },
                                                     ran.say("a"), ran.say("b"), ran.say("j"));
    start.precede(choose, b);
    choose.precede(a);
    join.succeed(a, b);
    ASSERT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(ran.text(), "b");
    ran.clear();
    ASSERT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(ran.count("j"), 1u);
    EXPECT_EQ(ran.names().size(), 3u);
}

TEST(graph_condition, a_node_never_runs_beside_itself) {
    thread_pool pool(2);
    for (int i = 0; i != 200; ++i) {
        int inside = 0;  // a data race here would be seen
        int runs = 0;
        task_graph graph;
        auto [start, x, y, target] = graph.emplace([] {}, [] { return 0; }, [] { return 0; },
                                                   [&inside, &runs] {
                                                       ASSERT_EQ(++inside, 1);
                                                       ++runs;
                                                       --inside;
                                                   });
        start.precede(x, y);
        x.precede(target);
        y.precede(target);
        ASSERT_TRUE(finishes(graph.run(pool)));
        ASSERT_EQ(runs, 2);
    }
}

// The thread sanitizer reports any access to a node after the end of the run.
TEST(graph_condition, a_node_whose_start_a_running_node_takes_over_touches_nothing_afterwards) {
    thread_pool pool(2);
    for (int i = 0; i != 200; ++i) {
        shared_number runs;
        shared_number chosen_again;
        shared_number spins;
        auto graph = std::make_unique<task_graph>();
        auto [start, x, y, target] = graph->emplace(
            [] {}, [] { return 0; },
            [&] {
                while (runs.get() == 0) std::this_thread::yield();
                chosen_again.set(1);
                return 0;
            },
            [&] {
                runs.add(1);
                while (chosen_again.get() == 0) std::this_thread::yield();
                while (spins.add(1) < 2000) {  // the other worker starts this node meanwhile
                }
            });
        start.precede(x, y);
        x.precede(target);
        y.precede(target);
        graph->run(pool, block);
        graph.reset();
        ASSERT_EQ(runs.get(), 2);
    }
}

TEST(graph_condition, an_exception_in_a_loop_ends_it) {
    thread_pool pool(2);
    int n = 0;
    task_graph graph;
    auto [init, again] = graph.emplace([] {},
                                       [&n]() -> int {
                                           if (++n == 10) throw std::runtime_error("ten");
                                           return 0;
                                       });
    init.precede(again);
    again.precede(again);
    EXPECT_THROW((void)finishes(graph.run(pool)), std::runtime_error);
    EXPECT_EQ(n, 10);
}

TEST(graph_condition, an_endless_loop_ends_by_a_stop) {
    thread_pool pool(2);
    inplace_stop_source source;
    int n = 0;
    task_graph graph;
    auto [init, again] = graph.emplace([] {},
                                       [&n, &source] {
                                           if (++n == 1000) source.request_stop();
                                           return 0;
                                       });
    init.precede(again);
    again.precede(again);
    EXPECT_FALSE(
        finishes(ex::write_env(graph.run(pool), ex::prop(get_stop_token, source.get_token()))));
    EXPECT_EQ(n, 1000);
}

}  // namespace
}  // namespace coppice::graph_test
