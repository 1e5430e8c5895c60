// Small random graphs, compared with a sequential program.
#include "graphs.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

namespace coppice::graph_test {
namespace {

// COPPICE_GRAPHS sets the number of graphs; a full run has 100,000.
unsigned graph_count() {
    const char* const asked = std::getenv("COPPICE_GRAPHS");
    return asked != nullptr ? static_cast<unsigned>(std::strtoul(asked, nullptr, 10)) : 2000;
}

// A graph of up to 12 nodes. Each node combines the results of its predecessors; it may be a
// function, a task that waits, or a subgraph.
class random_graph {
public:
    random_graph(thread_pool& pool, unsigned seed) : pool_(pool), random_(seed) {
        size_ = 1 + below(12);
        value_.resize(size_);
        before_.resize(size_);
        std::vector<node> nodes;
        for (unsigned i = 0; i != size_; ++i) {
            nodes.push_back(make(i, below(8)).priority(static_cast<int>(below(3))));
        }
        // Edges go up in a random order of the nodes.
        std::vector<unsigned> order(size_);
        for (unsigned i = 0; i != size_; ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), random_);
        for (unsigned b = 1; b < size_; ++b) {
            for (unsigned a = 0; a != b; ++a) {
                if (below(3) != 0) continue;
                before_[order[b]].push_back(order[a]);
                nodes[order[a]].precede(nodes[order[b]]);
            }
        }
        order_ = order;
        fatal_ = below(8) == 0 ? static_cast<int>(below(size_)) : -1;
    }
    void check() {
        std::vector<unsigned> expected(size_);
        for (const unsigned i : order_) expected[i] = combined(i, expected);
        for (int run = 0; run != 2; ++run) {
            std::fill(value_.begin(), value_.end(), 0u);
            runs_.set(0);
            if (fatal_ >= 0) {
                EXPECT_THROW((void)finishes(graph_.run(pool_)), int);
                continue;
            }
            ASSERT_TRUE(finishes(graph_.run(pool_)));
            EXPECT_EQ(runs_.get(), static_cast<int>(size_));
            EXPECT_EQ(value_, expected);
        }
    }

private:
    unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
    unsigned combined(unsigned i, const std::vector<unsigned>& values) const {
        unsigned sum = i + 1;
        for (const unsigned b : before_[i]) sum = sum * 31 + values[b];
        return sum;
    }
    void run(unsigned i) {
        if (static_cast<int>(i) == fatal_) throw static_cast<int>(i);
        value_[i] = combined(i, value_);
        runs_.add(1);
    }
    node make(unsigned i, unsigned kind) {
        if (kind == 0) {
            return graph_.emplace([this, i]() -> task<void> {
                co_await ex::schedule(pool_.get_scheduler());
                run(i);
            });
        }
        if (kind == 1) {
            return graph_.emplace([this, i](subgraph& inner) {
                node first = inner.emplace([] {});
                first.precede(inner.emplace([this, i] { run(i); }), inner.emplace([] {}));
            });
        }
        return graph_.emplace([this, i] { run(i); });
    }

    thread_pool& pool_;
    std::mt19937 random_;
    unsigned size_ = 0;
    std::vector<unsigned> value_;
    std::vector<std::vector<unsigned>> before_;
    std::vector<unsigned> order_;
    int fatal_ = -1;
    shared_number runs_;
    task_graph graph_;
};

TEST(graph_random, each_node_sees_the_results_of_its_predecessors) {
    thread_pool pool(2);
    for (unsigned seed = 0; seed != graph_count(); ++seed) {
        random_graph graph(pool, seed);
        graph.check();
        ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace coppice::graph_test
