// Subgraphs, whose nodes are made while they run, and modules, which are graphs as nodes.
#include "graphs.hpp"

#include <coppice/sync.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

namespace coppice::graph_test {
namespace {

TEST(graph_subgraph, its_nodes_end_before_its_successors_start) {
    thread_pool pool(2);
    for (int i = 0; i != 50; ++i) {
        record ran;
        task_graph graph;
        node outer = graph.emplace([&ran](subgraph& inner) {
            ran.add("(");
            EXPECT_TRUE(inner.empty());
            auto [a, b, c] = inner.emplace(ran.say("a"), ran.say("b"), ran.say("c"));
            c.succeed(a, b);
            EXPECT_EQ(inner.size(), 3u);
        });
        outer.precede(graph.emplace(ran.say(")")));
        ASSERT_TRUE(finishes(graph.run_n(pool, 2)));
        ASSERT_EQ(ran.names().size(), 10u);
        EXPECT_EQ(ran.text().substr(4, 2), ")(");
        EXPECT_EQ(ran.text().back(), ')');
        EXPECT_EQ(graph.size(), 2u);
    }
}

void split_in_two(subgraph& graph, int depth, record& ran) {
    if (depth == 0) {
        graph.emplace(ran.say("."));
        return;
    }
    for (int i = 0; i != 2; ++i) {
        graph.emplace([depth, &ran](subgraph& inner) { split_in_two(inner, depth - 1, ran); });
    }
}

TEST(graph_subgraph, may_nest) {
    thread_pool pool(2);
    record ran;
    task_graph graph;
    node outer = graph.emplace([&ran](subgraph& inner) { split_in_two(inner, 8, ran); });
    outer.precede(graph.emplace(ran.say("!")));
    ASSERT_TRUE(finishes(graph.run_n(pool, 3)));
    EXPECT_EQ(ran.count("."), 3u * 256);
    EXPECT_EQ(ran.text().back(), '!');
}

TEST(graph_subgraph, an_empty_one_ends_at_once) {
    thread_pool pool(1);
    record ran;
    task_graph graph;
    graph.emplace([](subgraph&) {}).precede(graph.emplace(ran.say("x")));
    ASSERT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(ran.text(), "x");
}

TEST(graph_subgraph, its_functions_are_destroyed_before_its_successors_start) {
    thread_pool pool(2);
    const auto counted = std::make_shared<int>(0);
    long seen = 0;
    task_graph graph;
    node outer = graph.emplace(
        [&counted](subgraph& inner) { inner.emplace([held = counted] { ++*held; }); });
    outer.precede(graph.emplace([&] { seen = counted.use_count(); }));
    ASSERT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(seen, 1);
    EXPECT_EQ(*counted, 1);
}

TEST(graph_subgraph, may_have_conditions_tasks_and_loops) {
    thread_pool pool(2);
    int n = 0;
    record ran;
    task_graph graph;
    node outer = graph.emplace([&](subgraph& inner) {
        auto [init, body, again, done] =
            inner.emplace([&n] { n = 0; },
                          [&]() -> task<void> {
                              ++n;
                              co_await ex::schedule(pool.get_scheduler());
                          },
                          [&n] { return n < 20 ? 0 : 1; }, ran.say("d"));
        init.precede(body);
        body.precede(again);
        again.precede(body, done);
    });
    outer.precede(graph.emplace(ran.say("e")));
    ASSERT_TRUE(finishes(graph.run_n(pool, 5)));
    EXPECT_EQ(n, 20);
    EXPECT_EQ(ran.text(), "dedededede");
}

TEST(graph_subgraph, an_exception_of_its_function_or_of_a_node_ends_the_run) {
    thread_pool pool(2);
    const auto counted = std::make_shared<int>(0);
    for (int where = 0; where != 3; ++where) {
        record ran;
        task_graph graph;
        node outer = graph.emplace([&counted, where](subgraph& inner) {
            auto [a, b] = inner.emplace(
                [held = counted, where] {
                    if (where == 0) throw std::runtime_error("in a node");
                },
                [held = counted] {});
            a.precede(b);
            if (where == 1) throw std::runtime_error("in the function");
            if (where == 2) b.precede(a);  // a cycle
        });
        outer.precede(graph.emplace(ran.say("x")));
        EXPECT_ANY_THROW((void)finishes(graph.run(pool)));
        EXPECT_EQ(ran.text(), "");
        EXPECT_EQ(counted.use_count(), 1);
    }
}

TEST(graph_module, runs_as_a_node) {
    thread_pool pool(2);
    record ran;
    task_graph inner;
    auto [a, b] = inner.emplace(ran.say("a"), ran.say("b"));
    a.precede(b);
    task_graph graph;
    auto [first, last] = graph.emplace(ran.say("f"), ran.say("l"));
    node module = graph.compose(inner);
    first.precede(module);
    module.precede(last);
    ASSERT_TRUE(finishes(graph.run_n(pool, 2)));
    EXPECT_EQ(ran.text(), "fablfabl");
    EXPECT_EQ(graph.size(), 3u);
    ASSERT_TRUE(finishes(inner.run(pool)));
}

TEST(graph_module, used_twice_runs_in_turn) {
    thread_pool pool(2);
    int inside = 0;  // a data race here would be seen
    int runs = 0;
    task_graph inner;
    inner.emplace([&] {
        ASSERT_EQ(++inside, 1);
        ++runs;
        --inside;
    });
    task_graph one;
    task_graph two;
    for (int i = 0; i != 5; ++i) {
        one.compose(inner);
        two.compose(inner);
    }
    for (int i = 0; i != 50; ++i) {
        ASSERT_TRUE(finishes(ex::when_all(one.run(pool), two.run(pool), inner.run(pool))));
    }
    EXPECT_EQ(runs, 50 * 11);
}

TEST(graph_module, a_node_that_waits_for_a_module_holds_no_worker) {
    thread_pool pool(1);
    async_event open;
    record ran;
    task_graph slow;
    slow.emplace([&open]() -> task<void> { co_await open.wait(); });
    task_graph graph;
    graph.compose(slow).priority(2);
    graph.compose(slow).priority(1);
    graph.emplace([&] {
        ran.add("x");
        open.set();
    });
    ASSERT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(ran.text(), "x");
}

TEST(graph_module, its_exception_and_a_stop_pass_through) {
    thread_pool pool(2);
    inplace_stop_source source;
    async_event never;
    record ran;
    task_graph fails;
    fails.emplace([] { throw std::runtime_error("inside"); });
    task_graph graph;
    graph.compose(fails).precede(graph.emplace(ran.say("x")));
    EXPECT_THROW((void)finishes(graph.run(pool)), std::runtime_error);

    task_graph waits;
    waits.emplace([&never]() -> task<void> { co_await never.wait(); });
    task_graph outer;
    outer.compose(waits);
    outer.compose(waits);
    outer.emplace([&source] { source.request_stop(); });
    EXPECT_FALSE(
        finishes(ex::write_env(outer.run(pool), ex::prop(get_stop_token, source.get_token()))));
    EXPECT_EQ(ran.text(), "");
}

TEST(graph_module, a_module_that_cannot_run_or_contains_its_graph_is_refused) {
    thread_pool pool(2);
    record ran;
    task_graph inner;
    node a = inner.emplace(ran.say("a"));
    task_graph middle;
    middle.compose(inner);
    task_graph graph;
    node first = graph.emplace(ran.say("f"));
    first.precede(graph.compose(middle));
    ASSERT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(ran.text(), "fa");
    inner.compose(graph);
    EXPECT_EQ(refusal(inner.run(pool)), std::errc::invalid_argument);
    inner.clear();
    a = inner.emplace(ran.say("a"));
    a.precede(a);
    task_graph fresh;
    fresh.emplace(ran.say("f"));
    fresh.compose(middle);
    EXPECT_EQ(refusal(fresh.run(pool)), std::errc::invalid_argument);
    EXPECT_EQ(ran.text(), "fa");
}

TEST(graph_module, a_subgraph_that_composes_a_graph_in_which_it_runs_is_refused) {
    thread_pool pool(2);
    task_graph graph;
    task_graph between;
    between.compose(graph);
    for (task_graph* const module : {&graph, &between}) {
        for (const int depth : {1, 2}) {
            graph.clear();
            graph.emplace([module, depth](subgraph& outer) {
                if (depth == 1) {
                    outer.compose(*module);
                } else {
                    outer.emplace([module](subgraph& inner) { inner.compose(*module); });
                }
            });
            EXPECT_EQ(refusal(graph.run(pool)), std::errc::invalid_argument);
        }
    }
}

}  // namespace
}  // namespace coppice::graph_test
