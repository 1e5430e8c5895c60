// The graphs that bench_graph runs, and the rivals that run them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace bench_graph {

// Nodes and edges, without cycles. Each node counts its runs.
struct shape {
    std::size_t nodes = 0;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
};

// A square of nodes; each precedes those on its right and below it.
inline shape wavefront(std::uint32_t side) {
    shape s{std::size_t(side) * side, {}};
    for (std::uint32_t i = 0; i != side; ++i) {
        for (std::uint32_t j = 0; j != side; ++j) {
            if (j + 1 != side) s.edges.emplace_back(i * side + j, i * side + j + 1);
            if (i + 1 != side) s.edges.emplace_back(i * side + j, (i + 1) * side + j);
        }
    }
    return s;
}
inline shape binary_tree(std::uint32_t nodes) {
    shape s{nodes, {}};
    for (std::uint32_t i = 1; i < nodes; ++i) s.edges.emplace_back((i - 1) / 2, i);
    return s;
}
inline shape linear_chain(std::uint32_t nodes) {
    shape s{nodes, {}};
    for (std::uint32_t i = 1; i < nodes; ++i) s.edges.emplace_back(i - 1, i);
    return s;
}
// Each node has up to three predecessors among the 64 before it.
inline shape random_dag(std::uint32_t nodes) {
    shape s{nodes, {}};
    std::uint32_t random = 12345;
    for (std::uint32_t i = 1; i < nodes; ++i) {
        for (int edge = 0; edge != 3; ++edge) {
            random = random * 1664525u + 1013904223u;
            s.edges.emplace_back(i - 1 - (random >> 8) % std::min(i, 64u), i);
        }
    }
    return s;
}

// A graph that is built once. run(n) runs it n times, one run after the other.
class built_graph {
public:
    built_graph() = default;
    built_graph(const built_graph&) = delete;
    built_graph& operator=(const built_graph&) = delete;
    virtual ~built_graph() = default;
    virtual void run(std::size_t rounds) = 0;
    std::vector<std::uint32_t> counts;
};

std::unique_ptr<built_graph> build_coppice(const shape& s, std::size_t threads);
std::unique_ptr<built_graph> build_tbb(const shape& s, std::size_t threads);

// Runs a graph of `nodes` nodes that each wait for 20 ms, on two workers. Returns the time that it
// took. Units: milliseconds.
double wait_side_by_side(std::size_t nodes);

}  // namespace bench_graph
