// Sorting the keys of all processes. What no sort of them can leave out is the bound: each process
// sorts its own keys, and all exchange as many keys by one call of MPI, into new memory: a sort
// does not know before how many keys it gets.
#include "parts.hpp"

#include <coppice/mpi/sort.hpp>
#include <coppice/parallel/sort.hpp>

#include <mpi.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace bench_mpi {

namespace {

namespace mpi = coppice::mpi;
using keys = std::vector<std::uint64_t>;

keys random_keys(int rank, std::size_t count) {
    std::mt19937_64 random(static_cast<std::uint64_t>(rank) + 1);
    keys k(count);
    std::generate(k.begin(), k.end(), std::ref(random));
    return k;
}

// Returns the sum of the keys of all processes, which sorting does not change.
std::uint64_t sum_of(const mpi::communicator& world, const keys& k) {
    std::uint64_t sum = 0;
    for (const std::uint64_t key : k) sum += key;
    ::MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, world.native_handle());
    return sum;
}

}  // namespace

int run_sort(const mpi::communicator& world, const bench::options& o) {
    const auto size = static_cast<std::size_t>(world.size());
    const std::size_t all = o.tiny ? 10'000 : o.quick ? 5'000'000 : 50'000'000;
    const std::size_t each = all / size / size * size;
    const keys mine = random_keys(world.rank(), each);
    const std::uint64_t sum = sum_of(world, mine);
    std::vector<double> bound, exchange, ours;
    bool is_sorted = true;
    for (int n = 0; n != std::max(1, o.repetitions / 3); ++n) {
        keys own = mine, got;
        const auto time_of = [&](auto f) {
            ::MPI_Barrier(world.native_handle());
            const double begin = bench::now(false);
            f();
            ::MPI_Barrier(world.native_handle());
            return (bench::now(false) - begin) / 1e6;
        };
        const double sorting = time_of([&] { coppice::parallel::sort(own.begin(), own.end()); });
        exchange.push_back(time_of([&] {
            const int part = static_cast<int>(each / size);
            got.resize(each);
            ::MPI_Alltoall(own.data(), part, MPI_UINT64_T, got.data(), part, MPI_UINT64_T,
                           world.native_handle());
        }));
        bound.push_back(sorting + exchange.back());
        own = mine;
        ours.push_back(time_of([&] { coppice::this_thread::sync_wait(mpi::sort(world, own)); }));
        is_sorted =
            is_sorted && std::is_sorted(own.begin(), own.end()) && sum_of(world, own) == sum;
    }
    if (!is_sorted) {
        std::printf("sort: the keys are not sorted, or not the same\n");
        return 1;
    }
    if (o.tiny) return 0;
    const std::string name = "sort of " + std::to_string(all / 1'000'000) + " million keys, " +
                             std::to_string(size) + " processes";
    std::printf("%s, ms\n", name.c_str());
    print(o, bench::of_samples(name, "exchange alone, raw MPI", "ms", exchange));
    print(o, bench::of_samples(name, "own sort, and exchange", "ms", bound));
    print(o, bench::of_samples(name, "coppice", "ms", ours));
    bench::judge(o, "mpi: " + name + ", coppice / own sort and exchange",
                 bench::ratios(ours, bound), 1.2);
    return 0;
}

}  // namespace bench_mpi
