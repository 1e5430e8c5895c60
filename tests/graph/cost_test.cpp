// The allocations and the stack depth of a run.
#include "allocations.hpp"
#include "graphs.hpp"
#include "sanitizers.hpp"

#include <coppice/sync.hpp>

#include <gtest/gtest.h>

namespace coppice::graph_test {
namespace {

constexpr int long_chain = 1'000'000;

TEST(graph_cost, a_chain_of_a_million_nodes_needs_no_stack) {
    thread_pool pool(2);
    int n = 0;
    task_graph graph;
    node last = graph.emplace([&n] { ++n; });
    for (int i = 1; i != long_chain; ++i) {
        node next = graph.emplace([&n] { ++n; });
        last.precede(next);
        last = next;
    }
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(n, long_chain);
}

TEST(graph_cost, many_subgraphs_inside_a_loop_need_no_stack) {
    thread_pool pool(1);
    int n = 0;
    task_graph graph;
    auto [init, inner, again] =
        graph.emplace([&n] { n = 0; }, [&n](subgraph& nodes) { nodes.emplace([&n] { ++n; }); },
                      [&n] { return n != 100'000 ? 0 : 1; });
    init.precede(inner);
    inner.precede(again);
    again.precede(inner);
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(n, 100'000);
}

TEST(graph_cost, a_run_after_the_first_allocates_nothing) {
    if (test::sanitized) GTEST_SKIP() << "the sanitizer owns operator new";
    thread_pool pool(1);
    async_semaphore one(1);
    record ran;
    int n = 0;
    task_graph module;
    module.emplace([&n] { ++n; });
    task_graph graph;
    node start = graph.emplace([&n] { n = 0; });
    for (int i = 0; i != 20; ++i) {
        node wait = graph.emplace([&n, &pool]() -> task<void> {
            co_await ex::schedule(pool.get_scheduler());
            ++n;
        });
        node inner = graph.emplace([&n](subgraph& nodes) {
            auto [a, b] = nodes.emplace([&n] { ++n; }, [&n] { ++n; });
            a.precede(b);
        });
        node send = graph.emplace_sender(ex::just() | ex::then([&n] { ++n; }));
        node holds = graph.emplace([&n] { ++n; }).acquire(one);
        start.precede(wait, inner, send, holds);
        graph.compose(module).succeed(wait, inner, send, holds);
    }
    graph.run(pool, block);
    graph.run(pool, block);
    const test::allocation_count made;
    graph.run_n(pool, 10, block);
    graph.run(pool, block);
    EXPECT_EQ(made.so_far(), 0u);
    EXPECT_EQ(n, 20 * 6);
}

TEST(graph_cost, a_run_with_conditions_allocates_nothing) {
    if (test::sanitized) GTEST_SKIP() << "the sanitizer owns operator new";
    thread_pool pool(1);
    int n = 0;
    task_graph graph;
    auto [init, body, again] =
        graph.emplace([&n] { n = 0; }, [&n] { ++n; }, [&n] { return n < 100 ? 0 : 1; });
    init.precede(body);
    body.precede(again);
    again.precede(body);
    graph.run(pool, block);
    const test::allocation_count made;
    graph.run_n(pool, 10, block);
    EXPECT_EQ(made.so_far(), 0u);
}

}  // namespace
}  // namespace coppice::graph_test
