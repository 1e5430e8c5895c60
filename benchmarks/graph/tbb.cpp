// oneTBB's flow graph, with continue_nodes, which wait for all their predecessors.
#include "rivals.hpp"

#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

namespace bench_graph {

namespace {

class tbb_graph final : public built_graph {
    using node_type = tbb::flow::continue_node<tbb::flow::continue_msg>;

public:
    tbb_graph(const shape& s, std::size_t threads)
        : limit_(tbb::global_control::max_allowed_parallelism, threads),
          arena_(static_cast<int>(threads)) {
        counts.resize(s.nodes);
        arena_.execute([this] { graph_ = std::make_unique<tbb::flow::graph>(); });
        for (std::size_t i = 0; i != s.nodes; ++i) {
            nodes_.push_back(std::make_unique<node_type>(
                *graph_, [count = &counts[i]](const tbb::flow::continue_msg&) { ++*count; }));
        }
        std::vector<bool> has_predecessor(s.nodes, false);
        for (const auto& [from, to] : s.edges) {
            tbb::flow::make_edge(*nodes_[from], *nodes_[to]);
            has_predecessor[to] = true;
        }
        for (std::size_t i = 0; i != s.nodes; ++i) {
            if (!has_predecessor[i]) starts_.push_back(nodes_[i].get());
        }
    }
    void run(std::size_t rounds) override {
        arena_.execute([this, rounds] {
            for (std::size_t i = 0; i != rounds; ++i) {
                for (node_type* const start : starts_) start->try_put({});
                graph_->wait_for_all();
            }
        });
    }

private:
    tbb::global_control limit_;
    tbb::task_arena arena_;
    std::unique_ptr<tbb::flow::graph> graph_;
    std::vector<std::unique_ptr<node_type>> nodes_;
    std::vector<node_type*> starts_;
};

}  // namespace

std::unique_ptr<built_graph> build_tbb(const shape& s, std::size_t threads) {
    return std::make_unique<tbb_graph>(s, threads);
}

}  // namespace bench_graph
