// bench_graph: the cost of a node of a graph, compared with oneTBB's flow graph, on 1 and 2
// threads.
#include "../harness.hpp"
#include "rivals.hpp"

#include <memory>

namespace {

using namespace bench_graph;

using builder = std::unique_ptr<built_graph>(const shape&, std::size_t);

// Both rivals keep their graph; a repetition runs it a number of times.
bench::rival rival_of(const char* name, builder* build, const shape& s, std::size_t threads) {
    std::shared_ptr<built_graph> graph = build(s, threads);
    return {name, [graph, nodes = s.nodes](std::size_t size) {
                std::fill(graph->counts.begin(), graph->counts.end(), 0u);
                const std::size_t rounds = size / nodes + 1;
                graph->run(rounds);
                bench::hash result;
                for (const std::uint32_t count : graph->counts) result.add(count == rounds);
                return result.value();
            }};
}

bench::workload workload_of(const std::string& name, const shape& s, std::size_t threads) {
    bench::workload w{name + (threads == 1 ? ", 1 thread" : ", 2 threads"),
                      "node",
                      40 * s.nodes,
                      3 * s.nodes,
                      {}};
    w.rivals.push_back(rival_of("coppice task_graph", &build_coppice, s, threads));
#if defined(BENCH_WITH_TBB)
    w.rivals.push_back(rival_of("oneTBB flow graph", &build_tbb, s, threads));
#endif
    return w;
}

void judge_waiting(const bench::options& o) {
    std::vector<double> times;
    for (int i = 0; i != o.repetitions; ++i) times.push_back(wait_side_by_side(1000));
    bench::write(
        o, bench::of_samples("1,000 nodes that wait 20 ms", "coppice task_graph", "ms", times));
    bench::judge(o, "1,000 nodes wait 20 ms on 2 workers, ms", bench::median(times), 25, "");
}

}  // namespace

int main(int argc, char** argv) {
    const bench::options o = bench::parse(argc, argv);
    const std::uint32_t side = o.tiny ? 10 : 100;
    const std::uint32_t nodes = side * side;
    int status = 0;
    for (const std::size_t threads : {1, 2}) {
        for (const auto& [name, s] : {std::pair<std::string, shape>{"wavefront", wavefront(side)},
                                      {"binary tree", binary_tree(nodes)},
                                      {"linear chain", linear_chain(nodes)},
                                      {"random DAG", random_dag(nodes)}}) {
            std::vector<bench::figure> figures;
            status |= bench::run({workload_of(name, s, threads)}, o, figures);
            if (o.tiny || figures.size() < 2) continue;
            bench::judge(o, "graph: " + figures[0].workload + ", node / oneTBB's",
                         bench::ratios(figures[0].samples, figures[1].samples), 0.5);
        }
    }
    if (o.tiny) {
        (void)wait_side_by_side(10);
    } else {
        judge_waiting(o);
    }
    return status;
}
