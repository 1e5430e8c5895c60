// Unbalanced tree search: how evenly the processes share a tree that is known only by walking it.
// Source: Olivier et al. 2006, "UTS: an unbalanced tree search benchmark", its binomial trees.
#include "parts.hpp"

#include <coppice/mpi/work_sharing.hpp>

#include <mpi.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench_mpi {

namespace {

namespace mpi = coppice::mpi;

// A number, from which those of the children follow.
struct node {
    std::uint64_t number;
    std::uint64_t depth;
};

// Mixes the bits. The rounds take about as long as the SHA-1 of the source.
std::uint64_t mix(std::uint64_t n) {
    for (int round = 0; round != 32; ++round) {  // Stafford's mixer, as in splitmix64
        n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9U;
        n = (n ^ (n >> 27)) * 0x94d049bb133111ebU;
        n ^= n >> 31;
    }
    return n;
}

// The root has many children. Another node has 8 with a probability of 0.12375, and otherwise none.
template <class F>
void for_each_child(const node& parent, std::uint64_t of_root, F f) {
    const std::uint64_t count = parent.depth == 0                      ? of_root
                                : parent.number < 2282754023647477760U ? 8
                                                                       : 0;
    for (std::uint64_t i = 0; i != count; ++i)
        f(node{mix(parent.number + (i + 1) * 0x9e3779b97f4a7c15U), parent.depth + 1});
}

}  // namespace

int run_search(const mpi::communicator& world, const bench::options& o) {
    const std::uint64_t of_root = o.tiny ? 200 : 50'000;
    const node root{42, 0};
    std::vector<double> imbalance, together, alone;
    std::uint64_t nodes = 0;
    bool agree = true;
    for (int n = 0; n != o.repetitions; ++n) {
        double begin = bench::now(false);
        if (world.rank() == 0) {
            nodes = 0;
            std::vector<node> open{root};
            while (!open.empty()) {
                const node each = open.back();
                open.pop_back();
                ++nodes;
                for_each_child(each, of_root, [&open](const node& c) { open.push_back(c); });
            }
            alone.push_back((bench::now(false) - begin) / static_cast<double>(nodes));
        }
        mpi::work_sharing<node> tree(world);
        if (world.rank() == 0) tree.add(root);
        ::MPI_Barrier(world.native_handle());
        begin = bench::now(false);
        coppice::this_thread::sync_wait(
            tree.run([of_root](const node& each, mpi::work_found<node>& found) {
                for_each_child(each, of_root, [&found](const node& c) { found.add(c); });
            }));
        const double time = bench::now(false) - begin;
        std::uint64_t most = tree.counts().worked, sum = most;
        ::MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_UINT64_T, MPI_MAX, world.native_handle());
        ::MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, world.native_handle());
        agree = agree && (world.rank() != 0 || sum == nodes);
        imbalance.push_back(static_cast<double>(most) * world.size() / static_cast<double>(sum));
        together.push_back(time / static_cast<double>(sum));
    }
    if (!agree) {
        std::printf("tree search: the processes did not find the tree of one\n");
        return 1;
    }
    if (o.tiny) return 0;
    const std::string name = "tree search, " + std::to_string(world.size()) + " processes";
    std::printf("%s\n", name.c_str());
    print(o, bench::of_samples(name, "one process alone", "ns per node", alone));
    print(o, bench::of_samples(name, "coppice", "ns per node", together));
    print(o, bench::of_samples(name, "coppice, most nodes of a process / mean", "x", imbalance));
    bench::judge(o, "mpi: " + name + ", most nodes of a process / mean", bench::median(imbalance),
                 1.1, "median");
    return 0;
}

}  // namespace bench_mpi
