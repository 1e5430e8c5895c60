// task_graph on a thread_pool.
#include "rivals.hpp"

#include <coppice/execution.hpp>
#include <coppice/graph.hpp>
#include <coppice/task.hpp>

#include <chrono>

namespace bench_graph {

namespace {

using namespace coppice;

class coppice_graph final : public built_graph {
public:
    coppice_graph(const shape& s, std::size_t threads) : pool_(threads) {
        counts.resize(s.nodes);
        std::vector<node> nodes;
        for (std::size_t i = 0; i != s.nodes; ++i) {
            nodes.push_back(graph_.emplace([count = &counts[i]] { ++*count; }));
        }
        for (const auto& [from, to] : s.edges) nodes[from].precede(nodes[to]);
    }
    void run(std::size_t rounds) override { graph_.run_n(pool_, rounds, block); }

private:
    thread_pool pool_;
    task_graph graph_;
};

}  // namespace

std::unique_ptr<built_graph> build_coppice(const shape& s, std::size_t threads) {
    return std::make_unique<coppice_graph>(s, threads);
}

double wait_side_by_side(std::size_t nodes) {
    thread_pool pool(2);
    task_graph graph;
    for (std::size_t i = 0; i != nodes; ++i) {
        graph.emplace([&pool]() -> task<void> {
            co_await execution::schedule_after(pool.get_scheduler(), std::chrono::milliseconds(20));
        });
    }
    graph.run(pool, block);
    const auto begin = std::chrono::steady_clock::now();
    graph.run(pool, block);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
        .count();
}

}  // namespace bench_graph
