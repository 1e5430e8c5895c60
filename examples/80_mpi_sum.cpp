// Each process sums its part of a range, and all get the whole sum by a collective in a task.
// mpiexec -n 4 example_80_mpi_sum
#include <coppice/execution.hpp>
#include <coppice/mpi.hpp>
#include <coppice/task.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <system_error>

namespace mpi = coppice::mpi;

coppice::task<> sum(const mpi::communicator& world) {
    constexpr std::int64_t last = 1'000'000;
    std::array<std::int64_t, 1> mine{0};
    std::array<std::int64_t, 1> all{0};
    for (std::int64_t i = 1 + world.rank(); i <= last; i += world.size()) mine[0] += i;
    co_await mpi::all_reduce(world, mine, all, mpi::reduction::sum);

    // Rank 0 tells the last rank, which answers; a job of one process leaves that out.
    std::array<std::int64_t, 1> answer = all;
    const int other = world.size() - 1;
    if (world.rank() == 0 && other != 0) {
        co_await mpi::send(world, all, {other, 1});
        co_await mpi::receive(world, answer, {other, 2});
    } else if (world.rank() == other && other != 0) {
        co_await mpi::receive(world, answer, {0, 1});
        co_await mpi::send(world, answer, {0, 2});
    }
    if (world.rank() == 0) std::printf("the sum is %lld\n", static_cast<long long>(answer[0]));
}

// [watch]
// If a process is not heard for 10 s, the operations of the others end with an error.
mpi::environment_options watched() {
    mpi::environment_options options;
    options.failure_timeout = std::chrono::seconds(10);
    return options;
}
// [/watch]

int main() {
    mpi::environment environment(watched());
    try {
        coppice::this_thread::sync_wait(sum(environment.world()));
    } catch (const std::system_error& e) {
        std::fprintf(stderr, "%s (process %d)\n", e.what(), environment.failed_rank());
        return 1;
    }
}
