// A graph of functions: its order, its edges, its runs, and the graphs that cannot run.
#include "graphs.hpp"

#include <coppice/graph/internal/graph_body.hpp>
#include <coppice/graph/internal/graph_node.hpp>
#include <coppice/graph/internal/graph_profile.hpp>
#include <coppice/graph/internal/graph_run.hpp>
#include <coppice/graph/internal/graph_sender.hpp>
#include <coppice/graph/internal/join_counter.hpp>
#include <coppice/graph/internal/node_arena.hpp>
#include <coppice/graph/internal/node_kinds.hpp>
#include <coppice/graph/internal/permit_wait.hpp>
#include <coppice/graph/node.hpp>
#include <coppice/graph/task_graph.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <future>
#include <stdexcept>

namespace coppice::graph_test {
namespace {

TEST(graph, a_node_runs_after_all_that_precede_it) {
    thread_pool pool(2);
    for (int i = 0; i != 50; ++i) {
        record ran;
        task_graph graph;
        auto [a, b, c, d] = graph.emplace(ran.say("a"), ran.say("b"), ran.say("c"), ran.say("d"));
        a.precede(b, c);
        d.succeed(b, c);
        ASSERT_TRUE(finishes(graph.run(pool)));
        ASSERT_EQ(ran.names().size(), 4u);
        EXPECT_TRUE(ran.in_order("a", "b") && ran.in_order("a", "c"));
        EXPECT_TRUE(ran.in_order("b", "d") && ran.in_order("c", "d"));
    }
}

TEST(graph, an_empty_graph_completes_at_once) {
    thread_pool pool(1);
    task_graph graph;
    EXPECT_TRUE(graph.empty());
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_TRUE(finishes(graph.run_n(pool, 3)));
}

TEST(graph, a_graph_runs_again_and_may_grow_between_two_runs) {
    thread_pool pool(2);
    record ran;
    task_graph graph;
    node a = graph.emplace(ran.say("a"));
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(ran.text(), "aa");
    node b = graph.emplace(ran.say("b"));
    a.precede(b);
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(ran.text(), "aaab");
    EXPECT_EQ(graph.size(), 2u);
    graph.clear();
    EXPECT_TRUE(graph.empty());
    graph.emplace(ran.say("c"));
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(ran.text(), "aaabc");
}

TEST(graph, run_n_runs_the_graph_n_times) {
    thread_pool pool(2);
    record ran;
    task_graph graph;
    auto [a, b] = graph.emplace(ran.say("a"), ran.say("b"));
    a.precede(b);
    EXPECT_TRUE(finishes(graph.run_n(pool, 0)));
    EXPECT_EQ(ran.text(), "");
    EXPECT_TRUE(finishes(graph.run_n(pool, 3)));
    EXPECT_EQ(ran.text(), "ababab");
}

TEST(graph, run_until_calls_the_predicate_after_each_round) {
    thread_pool pool(2);
    int runs = 0;
    int asked = 0;
    task_graph graph;
    graph.emplace([&runs] { ++runs; });
    EXPECT_TRUE(finishes(graph.run_until(pool, [&asked] { return ++asked == 4; })));
    EXPECT_EQ(runs, 4);
    EXPECT_TRUE(finishes(graph.run_until(pool, [] { return true; })));
    EXPECT_EQ(runs, 5);
}

TEST(graph, an_exception_of_the_predicate_ends_the_run) {
    thread_pool pool(1);
    task_graph graph;
    graph.emplace([] {});
    const auto fails = []() -> bool { throw std::runtime_error("no"); };
    EXPECT_THROW((void)finishes(graph.run_until(pool, fails)), std::runtime_error);
    EXPECT_TRUE(finishes(graph.run(pool)));
}

TEST(graph, every_completion_token_runs_a_graph) {
    thread_pool pool(2);
    std::promise<std::error_code> called;
    int runs = 0;
    task_graph graph;
    graph.emplace([&runs] { ++runs; });
    graph.run(pool, block);
    graph.run_n(pool, 2, use_future).get();
    graph.run(pool, [&called](std::error_code error) { called.set_value(error); });
    EXPECT_FALSE(called.get_future().get());
    const auto awaits = [](task_graph& g, thread_pool& p) -> task<void> { co_await g.run(p); };
    EXPECT_TRUE(finishes(awaits(graph, pool)));
    EXPECT_EQ(runs, 5);
}

TEST(graph, blocking_tokens_throw_the_exception_itself_and_callbacks_get_a_code) {
    thread_pool pool(2);
    std::promise<std::error_code> called;
    task_graph graph;
    graph.emplace([] { throw std::runtime_error("its own"); });
    EXPECT_THROW(graph.run(pool, block), std::runtime_error);
    EXPECT_THROW(graph.run(pool, use_future).get(), std::runtime_error);
    graph.run(pool, [&called](std::error_code error) { called.set_value(error); });
    EXPECT_EQ(called.get_future().get(), std::errc::state_not_recoverable);
}

TEST(graph, a_sender_of_a_run_may_be_connected_several_times) {
    thread_pool pool(2);
    record ran;
    task_graph graph;
    graph.emplace(ran.say("a"));
    const auto once = graph.run(pool);
    EXPECT_TRUE(finishes(once));
    EXPECT_TRUE(finishes(once));
    EXPECT_TRUE(finishes(ex::when_all(once, once, once)));
    EXPECT_EQ(ran.text(), "aaaaa");
}

TEST(graph, runs_on_a_pool_of_another_kind) {
    queue_pool<mutex_queue> pool(2);
    record ran;
    task_graph graph;
    auto [a, b] = graph.emplace(ran.say("a"), ran.say("b"));
    b.succeed(a);
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(ran.text(), "ab");
}

TEST(graph, runs_on_the_caller_when_the_pool_was_told_to_end) {
    thread_pool pool(2);
    pool.request_stop();
    record ran;
    task_graph graph;
    auto [a, b, c] = graph.emplace(ran.say("a"), ran.say("b"), ran.say("c"));
    a.precede(b, c);
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(ran.names().size(), 3u);
}

TEST(graph, a_worker_runs_the_highest_priority_first) {
    thread_pool pool(1);
    record ran;
    task_graph graph;
    node start = graph.emplace(ran.say("s"));
    start.precede(graph.emplace(ran.say("a")), graph.emplace(ran.say("b")).priority(2),
                  graph.emplace(ran.say("c")), graph.emplace(ran.say("d")).priority(-1),
                  graph.emplace(ran.say("e")).priority(2));
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(ran.text(), "sbeacd");
}

TEST(graph, a_worker_runs_nodes_without_predecessors_by_priority) {
    thread_pool pool(1);
    record ran;
    task_graph graph;
    graph.emplace(ran.say("a"));
    graph.emplace(ran.say("b")).priority(1);
    graph.emplace(ran.say("c"));
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(ran.text(), "bac");
}

TEST(graph, two_edges_between_the_same_nodes_act_as_one) {
    thread_pool pool(2);
    record ran;
    task_graph graph;
    auto [a, b] = graph.emplace(ran.say("a"), ran.say("b"));
    a.precede(b, b).precede(b);
    EXPECT_TRUE(finishes(graph.run_n(pool, 2)));
    EXPECT_EQ(ran.text(), "abab");
}

TEST(graph, a_cycle_is_refused_before_anything_runs) {
    thread_pool pool(2);
    record ran;
    task_graph graph;
    auto [a, b, c] = graph.emplace(ran.say("a"), ran.say("b"), ran.say("c"));
    a.precede(b);
    b.precede(c);
    c.precede(b);
    EXPECT_EQ(refusal(graph.run(pool)), std::errc::invalid_argument);
    EXPECT_EQ(refusal(graph.run_n(pool, 2)), std::errc::invalid_argument);
    EXPECT_EQ(ran.text(), "");
    std::promise<std::error_code> called;
    graph.run(pool, [&called](std::error_code error) { called.set_value(error); });
    EXPECT_EQ(called.get_future().get(), std::errc::invalid_argument);
}

TEST(graph, a_node_that_precedes_itself_and_a_graph_without_a_start_are_refused) {
    thread_pool pool(2);
    task_graph alone;
    node a = alone.emplace([] {});
    a.precede(a);
    EXPECT_EQ(refusal(alone.run(pool)), std::errc::invalid_argument);

    task_graph chosen;
    node condition = chosen.emplace([] { return 1; });
    condition.precede(condition);
    EXPECT_EQ(refusal(chosen.run(pool)), std::errc::invalid_argument);
}

TEST(graph, a_refused_graph_runs_once_it_is_repaired) {
    thread_pool pool(2);
    record ran;
    task_graph graph;
    node a = graph.emplace(ran.say("a"));
    a.precede(a);
    EXPECT_EQ(refusal(graph.run(pool)), std::errc::invalid_argument);
    graph.clear();
    graph.emplace(ran.say("b"));
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(ran.text(), "b");
}

TEST(graph, nodes_are_handles_with_names) {
    task_graph graph;
    EXPECT_FALSE(node());
    node a = graph.emplace([] {});
    EXPECT_TRUE(a);
    EXPECT_EQ(a.name(), "");
    node b = graph.emplace([] {}).name("b");
    EXPECT_EQ(b.name(), "b");
    EXPECT_TRUE(a != b);
    const node same = a;
    EXPECT_TRUE(a == same);
}

template <std::size_t Alignment>
struct alignas(Alignment) aligned_bytes {
    std::byte bytes[Alignment];
};

// Returns the number of functions that run at a misaligned address.
template <std::size_t Alignment>
int misplaced() {
    thread_pool pool(1);
    int count = 0;
    task_graph graph;
    for (int i = 0; i != 20; ++i) {
        graph.emplace([&count, held = aligned_bytes<Alignment>()] {
            const void* volatile place = &held;  // the compiler believes in the alignment
            if (reinterpret_cast<std::uintptr_t>(place) % Alignment != 0) ++count;
        });
        graph.emplace([] {});
    }
    EXPECT_TRUE(finishes(graph.run(pool)));
    return count;
}

TEST(graph, a_function_with_any_alignment_is_stored_aligned) {
    EXPECT_EQ(misplaced<16>(), 0);
    EXPECT_EQ(misplaced<32>(), 0);
    EXPECT_EQ(misplaced<64>(), 0);
    EXPECT_EQ(misplaced<128>(), 0);
}

// Throws at the move that brings *left to zero.
struct throws_when_moved {
    explicit throws_when_moved(int& moves) noexcept : left(&moves) {}
    throws_when_moved(throws_when_moved&& other) : left(other.left) {
        if (--*left == 0) throw std::runtime_error("moved");
    }
    bool operator()() const { return true; }

    int* left;
};

TEST(graph, an_exception_of_a_move_reaches_the_caller_and_changes_nothing) {
    thread_pool pool(1);
    int runs = 0;
    task_graph graph;
    graph.emplace([&runs] { ++runs; });
    for (int moves = 1; moves != 4; ++moves) {
        int left = moves;
        EXPECT_THROW(graph.run_until(pool, throws_when_moved(left), block), std::runtime_error);
        left = moves;
        EXPECT_THROW((void)graph.run_until(pool, throws_when_moved(left)), std::runtime_error);
        if (moves == 3) continue;
        left = moves;
        EXPECT_THROW(graph.emplace([held = throws_when_moved(left)] {}), std::runtime_error);
        EXPECT_EQ(graph.size(), 1u);
    }
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(runs, 1);
}

TEST(graph_misuse, edges_between_graphs_and_changes_during_a_run_stop_the_process) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            task_graph one;
            task_graph other;
            one.emplace([] {}).precede(other.emplace([] {}));
        },
        "nodes of different graphs");
    EXPECT_DEATH(
        {
            thread_pool pool(1);
            task_graph graph;
            graph.emplace([&graph] { graph.emplace([] {}); });
            (void)finishes(graph.run(pool));
        },
        "changed or destroyed while it runs");
}

}  // namespace
}  // namespace coppice::graph_test
