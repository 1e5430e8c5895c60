// Small random graphs with conditions and loops, compared with a sequential program.
#include "graphs.hpp"

#include <coppice/sync.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <memory>
#include <random>

namespace coppice::graph_test {
namespace {

// COPPICE_GRAPHS sets the number of graphs; a full run has 100,000.
unsigned graph_count() {
    const char* const asked = std::getenv("COPPICE_GRAPHS");
    return asked != nullptr ? static_cast<unsigned>(std::strtoul(asked, nullptr, 10)) : 1000;
}

// A graph of up to 19 nodes. Edges lead to nodes with higher numbers, except those of conditions,
// which lead anywhere. The choice of a condition depends on how often it has run. So the number of
// runs of each node does not depend on the order in which the nodes run.
class random_loops {
    enum kind : unsigned { condition, task_node, subgraph_node, with_permits, plain };

public:
    random_loops(thread_pool& pool, unsigned seed) : pool_(pool), random_(seed) {
        const unsigned size = 4 + below(16);
        for (unsigned i = 0; i != size; ++i) {
            items_.push_back(std::make_unique<item>());
            item& each = *items_.back();
            each.what = i == 0 ? plain : static_cast<kind>(below(6) % 5);
            each.choices_max = static_cast<int>(below(30));
            each.salt = below(1000);
            const unsigned above = size - i - 1;
            for (unsigned n = i == 0 ? 4 : below(4); n != 0; --n) {
                if (each.what == condition) {
                    each.to.push_back(1 + below(size - 1));
                } else if (above != 0) {
                    each.to.push_back(i + 1 + below(above));
                }
            }
        }
        make();
    }
    void check() {
        const std::vector<int> expected = simulated();
        for (int turn = 0; turn != 4; ++turn) {
            for (auto& each : items_) each->runs.set(0);
            left_.set(turn == 1 ? 1 + static_cast<int>(below(20)) : -1);
            bool has_thrown = false;
            try {
                ASSERT_TRUE(finishes(graph_->run(pool_)));
            } catch (int) {
                has_thrown = true;
            }
            EXPECT_EQ(permits_.available(), 2u);
            if (has_thrown) continue;
            for (unsigned i = 0; i != items_.size(); ++i) {
                EXPECT_EQ(items_[i]->runs.get(), expected[i]) << "node " << i;
            }
        }
    }

private:
    struct item {
        kind what = plain;
        std::vector<unsigned> to;
        int choices_max = 0;
        unsigned salt = 0;
        shared_number runs;
        int inside = 0;  // a data race here would be seen
    };

    unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
    static int choice(const item& each, int run) {
        if (run > each.choices_max || each.to.empty()) return -1;
        const unsigned mixed = (static_cast<unsigned>(run) + each.salt) * 2654435761u;
        return static_cast<int>((mixed >> 8) % each.to.size());
    }
    std::vector<int> simulated() const {
        std::vector<unsigned> strong(items_.size());
        std::vector<unsigned> weak(items_.size());
        for (const auto& each : items_) {
            for (const unsigned to : each->to) ++(each->what == condition ? weak : strong)[to];
        }
        std::vector<unsigned> left = strong;
        std::vector<int> runs(items_.size());
        std::deque<unsigned> ready;
        for (unsigned i = 0; i != items_.size(); ++i) {
            if (strong[i] + weak[i] == 0) ready.push_back(i);
        }
        for (; !ready.empty(); ready.pop_front()) {
            const unsigned i = ready.front();
            const item& each = *items_[i];
            ++runs[i];
            if (each.what == condition) {
                const int chosen = choice(each, runs[i]);
                if (chosen >= 0) ready.push_back(each.to[static_cast<unsigned>(chosen)]);
                continue;
            }
            for (const unsigned to : each.to) {
                if (--left[to] != 0) continue;
                left[to] = strong[to];
                ready.push_back(to);
            }
        }
        return runs;
    }
    // Returns how often the node has run.
    int run(item& each) {
        EXPECT_EQ(++each.inside, 1);
        const int runs = each.runs.add(1);
        --each.inside;
        if (left_.add(-1) == 0) throw 0;
        return runs;
    }
    node make(item& each, unsigned i) {
        switch (each.what) {
            case condition:
                return graph_->emplace([this, &each] { return choice(each, run(each)); });
            case task_node:
                return graph_->emplace([this, &each]() -> task<void> {
                    run(each);
                    co_await ex::schedule(pool_.get_scheduler());
                });
            case subgraph_node:
                return graph_->emplace([this, &each](subgraph& inner) {
                    run(each);
                    auto [a, b, c] = inner.emplace([] {}, [] { return 0; }, [] {});
                    a.precede(b);
                    b.precede(c);
                });
            case with_permits:
                return graph_->emplace([this, &each] { run(each); }).acquire(permits_, 1 + i % 2);
            case plain:
                break;
        }
        return graph_->emplace([this, &each] { run(each); });
    }
    void make() {
        std::vector<node> nodes;
        for (unsigned i = 0; i != items_.size(); ++i) {
            nodes.push_back(make(*items_[i], i).priority(static_cast<int>(below(3))));
        }
        for (unsigned i = 0; i != items_.size(); ++i) {
            for (const unsigned to : items_[i]->to) nodes[i].precede(nodes[to]);
        }
    }

    thread_pool& pool_;
    std::mt19937 random_;
    std::vector<std::unique_ptr<item>> items_;
    async_semaphore permits_{2};
    shared_number left_;  // runs until one throws
    std::unique_ptr<task_graph> graph_ = std::make_unique<task_graph>();
};

TEST(graph_random, each_node_of_a_graph_with_loops_runs_as_often_as_in_a_sequential_program) {
    thread_pool pool(3);
    for (unsigned seed = 0; seed != graph_count(); ++seed) {
        random_loops graph(pool, seed);
        graph.check();
        ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace coppice::graph_test
