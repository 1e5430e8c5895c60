// Each allocation of building and running a graph fails in turn.
#include "allocations.hpp"
#include "graphs.hpp"

#include <coppice/sync.hpp>

#include <gtest/gtest.h>

#include <new>
#include <thread>

namespace coppice::graph_test {
namespace {

constexpr int calls_per_round = 8;

// Makes a graph with a node of each kind and runs it twice. Returns how many functions it called.
int build_and_run(thread_pool& pool) {
    shared_number ran;
    const auto add = [&ran] { ran.add(1); };
    async_semaphore one(1);
    task_graph module;
    module.emplace(add);
    task_graph graph;
    node start = graph.emplace(add);
    node wait = graph.emplace([&pool, add]() -> task<void> {
        co_await ex::schedule(pool.get_scheduler());
        add();
    });
    node inner = graph.emplace([&module, add](subgraph& nodes) {
        nodes.emplace([&module, add](subgraph& inside) {
            inside.emplace(add).precede(inside.compose(module));
        });
        nodes.emplace(add);
    });
    node holds = graph.emplace(add).acquire(one);
    start.name("a name that does not fit into the string itself").precede(wait, inner, holds);
    auto [choose, chosen] = graph.emplace(
        [add] {
            add();
            return 0;
        },
        add);
    choose.succeed(wait, inner, holds).precede(chosen);
    graph.run_n(pool, 2, block);
    return ran.get();
}

TEST(graph_memory, an_allocation_that_fails_ends_the_run_and_loses_nothing) {
    if (!test::fail_allocation(0)) GTEST_SKIP() << "operator new is the sanitizer's";
    thread_pool pool(1);
    ASSERT_EQ(build_and_run(pool), 2 * calls_per_round);
    bool has_failed = true;
    for (std::size_t n = 1; has_failed; ++n) {
        ASSERT_LT(n, 1'000u);
        const std::size_t before = test::live_allocations();
        bool threw = false;
        int ran = 2 * calls_per_round;
        test::fail_allocation(n);  // on another thread than this one
        std::thread([&pool, &threw, &ran] {
            try {
                ran = build_and_run(pool);
            } catch (const std::bad_alloc&) {
                threw = true;
            }
        }).join();
        has_failed = test::allocation_has_failed();
        EXPECT_EQ(threw, has_failed) << n;
        EXPECT_EQ(ran, 2 * calls_per_round);
        EXPECT_EQ(test::live_allocations(), before) << n;
    }
}

}  // namespace
}  // namespace coppice::graph_test
