// dump() and write_profile(): the picture of a graph, and the times of its nodes.
#include "graphs.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace coppice::graph_test {
namespace {

TEST(graph_picture, a_dump_names_nodes_and_marks_conditions_and_modules) {
    task_graph inner;
    inner.emplace([] {}).name("deep");
    task_graph graph;
    auto [a, choose] = graph.emplace([] {}, [] { return 0; });
    a.name("say \"a\"").precede(choose);
    node module = graph.compose(inner).name("module");
    choose.name("choose").precede(a, module);
    std::ostringstream out;
    graph.dump(out);
    const std::string text = out.str();
    for (const char* expected :
         {"digraph task_graph {", "g0n0 [label=\"say \\\"a\\\"\" shape=box];",
          "g0n1 [label=\"choose\" shape=diamond];", "g0n1 -> g0n0 [style=dashed label=\"0\"];",
          "g0n1 -> g0n2 [style=dashed label=\"1\"];", "g0n2 [label=\"module\" shape=folder];",
          "subgraph cluster_1 {", "g1n0 [label=\"deep\" shape=box];"}) {
        EXPECT_NE(text.find(expected), std::string::npos) << expected << "\n" << text;
    }
}

std::string profile_of(const task_graph& graph) {
    const std::string path = testing::TempDir() + "graph_profile.json";
    graph.write_profile(path);
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::size_t occurrences(const std::string& text, const std::string& what) {
    std::size_t n = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
        ++n;
    }
    return n;
}

TEST(graph_picture, a_profile_has_each_node_once_for_each_run) {
    thread_pool pool(2);
    task_graph graph;
    node a = graph.emplace([] {}).name("load");
    node b = graph.emplace([&pool]() -> task<void> {
        co_await ex::schedule_after(pool.get_scheduler(), milliseconds(1));
    });
    a.precede(b.name("wait \"b\""));
    node c = graph.emplace([](subgraph& inner) { inner.emplace([] {}).name("inside"); });
    b.precede(c.name("outside"));
    graph.profile(100);
    EXPECT_TRUE(finishes(graph.run_n(pool, 3)));
    const std::string text = profile_of(graph);
    EXPECT_EQ(occurrences(text, "\"name\":\"load\""), 3u) << text;
    EXPECT_EQ(occurrences(text, "\"name\":\"wait \\\"b\\\"\""), 6u) << "a begin and an end each";
    EXPECT_EQ(occurrences(text, "\"name\":\"inside\""), 3u);
    EXPECT_EQ(occurrences(text, "\"dropped\":\"0\""), 1u);
    graph.profile(2);
    EXPECT_TRUE(finishes(graph.run_n(pool, 3)));
    EXPECT_EQ(occurrences(profile_of(graph), "\"cat\":\"node\",\"pid\":1,\"ph\":\"X\"") +
                  occurrences(profile_of(graph), "\"ph\":\"b\""),
              2u);
    graph.profile(0);
    EXPECT_TRUE(finishes(graph.run(pool)));
    EXPECT_EQ(occurrences(profile_of(graph), "load"), 0u);
}

TEST(graph_picture, a_trace_of_the_pool_has_the_names_of_nodes_that_are_gone) {
    thread_pool pool({.threads = 2, .trace_events = 1000});
    {
        task_graph graph;
        node a = graph.emplace([] {}).name("load, and more than a small string keeps");
        a.precede(
            graph.emplace([] {}),
            graph.emplace([&pool]() -> task<void> { co_await ex::schedule(pool.get_scheduler()); })
                .name("wait"));
        EXPECT_TRUE(finishes(graph.run_n(pool, 2)));
    }
    const std::string path = testing::TempDir() + "graph_trace.json";
    pool.write_trace(path);
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    EXPECT_EQ(occurrences(text.str(), "load, and more than a small string keeps"), 2u);
    EXPECT_EQ(occurrences(text.str(), "\"wait\""), 2u);
    EXPECT_EQ(occurrences(text.str(), "\"node\""), 2u);
}

}  // namespace
}  // namespace coppice::graph_test
