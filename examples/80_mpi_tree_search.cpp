// Unbalanced tree search: counts a tree whose shape is known only by walking it, on all processes.
// Source: Olivier et al. 2006, "UTS: an unbalanced tree search benchmark", its binomial trees.
// mpiexec -n 4 example_80_mpi_tree_search
#include <coppice/execution.hpp>
#include <coppice/mpi.hpp>
#include <coppice/task.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

namespace ex = coppice::execution;
namespace mpi = coppice::mpi;
using coppice::task;

namespace {

// A node is a number, from which those of its children follow. So the whole tree is in its root,
// and every walk finds the same.
struct node {
    std::uint64_t number;
    std::uint64_t depth;
};

std::uint64_t mix(std::uint64_t n) {  // Stafford's mixer, as in splitmix64
    n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9U;
    n = (n ^ (n >> 27)) * 0x94d049bb133111ebU;
    return n ^ (n >> 31);
}

// The root has 2000 children. Another node has 8 with a probability of 0.12375, and otherwise none:
// 0.99 on average, so that some subtrees are a thousand times as large as others.
std::uint64_t number_of_children(const node& n) {
    if (n.depth == 0) return 2000;
    return n.number < 2282754023647477760U ? 8 : 0;
}
node nth_child(const node& parent, std::uint64_t i) {
    return {mix(parent.number + (i + 1) * 0x9e3779b97f4a7c15U), parent.depth + 1};
}

struct totals {
    std::uint64_t nodes = 0;
    std::uint64_t leaves = 0;
    std::uint64_t deepest = 0;
};
void visit(const node& n, totals& t) {
    ++t.nodes;
    t.leaves += number_of_children(n) == 0 ? 1 : 0;
    t.deepest = std::max(t.deepest, n.depth);
}

totals walk_alone(node root) {
    totals t;
    std::vector<node> open{root};
    while (!open.empty()) {
        const node n = open.back();
        open.pop_back();
        visit(n, t);
        for (std::uint64_t i = 0; i != number_of_children(n); ++i) open.push_back(nth_child(n, i));
    }
    return t;
}

// [share]
// The totals of this process are its own; the reductions make those of all.
task<totals> walk_together(const mpi::communicator& world, mpi::work_sharing<node>& tree) {
    totals mine;
    co_await tree.run([&mine](const node& n, mpi::work_found<node>& found) {
        visit(n, mine);
        for (std::uint64_t i = 0; i != number_of_children(n); ++i) found.add(nth_child(n, i));
    });
    std::array<std::uint64_t, 2> sums{mine.nodes, mine.leaves};
    std::array<std::uint64_t, 1> deepest{mine.deepest};
    co_await mpi::all_reduce(world, sums, sums, mpi::reduction::sum);
    co_await mpi::all_reduce(world, deepest, deepest, mpi::reduction::maximum);
    co_return totals{sums[0], sums[1], deepest[0]};
}
// [/share]

}  // namespace

int main() {
    mpi::environment environment;
    const mpi::communicator& world = environment.world();
    const node root{42, 0};
    mpi::work_sharing<node> tree(world);
    if (world.rank() == 0) tree.add(root);
    const totals all =
        std::get<0>(coppice::this_thread::sync_wait(walk_together(world, tree)).value());
    if (world.rank() != 0) return 0;
    const totals alone = walk_alone(root);
    std::printf("%llu nodes, %llu leaves, depth %llu\n", static_cast<unsigned long long>(all.nodes),
                static_cast<unsigned long long>(all.leaves),
                static_cast<unsigned long long>(all.deepest));
    const bool is_same =
        all.nodes == alone.nodes && all.leaves == alone.leaves && all.deepest == alone.deepest;
    std::printf("a walk by one process finds %s\n", is_same ? "the same" : "something else");
}
