// The model of bench_thousand beside this job: its parameters are measured, and then its
// predictions are compared with what the job does.
#include "parts.hpp"
#include "simulated_algorithms.hpp"

#include <coppice/mpi/bulk.hpp>
#include <coppice/mpi/message.hpp>

#include <mpi.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace bench_mpi {

namespace {

namespace mpi = coppice::mpi;
using coppice::task;

// What one repetition took, in ns for each of `count`. The least of many repetitions is used: other
// programs only add to it.
using action = std::function<task<>(const mpi::communicator& world, double& ns)>;

double least_of(const mpi::communicator& world, int repetitions, const action& a) {
    double least = 1e18;
    for (int n = 0; n != repetitions; ++n) {
        double ns = 0;
        ::MPI_Barrier(world.native_handle());
        run_on_environment(a(world, ns));
        least = std::min(least, ns);
    }
    ::MPI_Bcast(&least, 1, MPI_DOUBLE, 0, world.native_handle());
    return least;
}

// Half of a round trip between ranks 0 and 1.
task<> play(const mpi::communicator& world, double& ns, std::size_t size) {
    std::vector<std::byte> m(size);
    const int rounds = 50;
    const int rank = world.rank();
    double begin = 0;
    for (int n = -3; n != rounds && rank < 2; ++n) {
        if (n == 0) begin = bench::now(false);
        if (rank == 0) co_await mpi::send(world, m, {1});
        co_await mpi::receive(world, m, {1 - rank});
        if (rank == 1) co_await mpi::send(world, m, {0});
    }
    ns = (bench::now(false) - begin) / rounds / 2;
}

// A row of small messages from rank 0 to rank 1. Rank 0 tells what a send took, or, if `all`, how
// long a message takes until rank 1 has all.
task<> pour(const mpi::communicator& world, double& ns, bool all) {
    std::array<std::uint64_t, 1> m{};
    const int count = all ? 200 : 20;
    if (world.rank() == 0) {
        co_await mpi::receive(world, m, {1});
        const double begin = bench::now(false);
        for (int n = 0; n != count; ++n) co_await mpi::send(world, m, {1});
        ns = (bench::now(false) - begin) / count;
        co_await mpi::receive(world, m, {1});
        if (all) ns = (bench::now(false) - begin) / count;
    } else if (world.rank() == 1) {
        co_await mpi::send(world, m, {0});
        for (int n = 0; n != count; ++n) co_await mpi::receive(world, m, {0});
        co_await mpi::send(world, m, {0});
    }
}

enum class call { barrier, all_reduce, map_reduce };
task<> repeat(const mpi::communicator& world, double& ns, call what) {
    const int count = 30;
    std::array<int, 1> sum{};
    const double begin = bench::now(false);
    for (int n = 0; n != count; ++n) {
        if (what == call::barrier) co_await mpi::barrier(world);
        if (what == call::all_reduce)
            co_await mpi::all_reduce(world, sum, sum, mpi::reduction::sum);
        if (what == call::map_reduce) {
            co_await mpi::map_reduce(
                world, 0, std::uint64_t{0}, [](std::size_t i) { return std::uint64_t{i}; },
                std::plus<std::uint64_t>());
        }
    }
    ns = (bench::now(false) - begin) / count;
}

bench_loggp::parameters measure(const mpi::communicator& world, int repetitions) {
    const auto ping_pong = [&](std::size_t size) {
        return least_of(world, repetitions, [size](const mpi::communicator& w, double& ns) {
            return play(w, ns, size);
        });
    };
    const auto row = [&](bool all) {
        return least_of(world, repetitions,
                        [all](const mpi::communicator& w, double& ns) { return pour(w, ns, all); });
    };
    const double small = ping_pong(8), overhead = row(false);
    constexpr std::size_t large = 1024 * 1024;
    const double per_byte = (ping_pong(large) - small) / large;
    return {std::max(0.0, small - 2 * overhead), overhead, row(true), per_byte};
}

}  // namespace

int run_model(const mpi::communicator& world, const bench::options& o) {
    const int repetitions = o.tiny ? 1 : 11 * o.repetitions;
    const bench_loggp::parameters p = measure(world, repetitions);
    std::printf("--loggp %.0f,%.0f,%.0f,%.3f\n", p.latency, p.overhead, p.gap, p.per_byte);
    struct compared {
        const char* name;
        call real;
        bench_loggp::collective simulated;
    };
    constexpr compared calls[] = {{"barrier", call::barrier, &bench_loggp::barrier},
                                  {"all_reduce", call::all_reduce, &bench_loggp::agree},
                                  {"map_reduce", call::map_reduce, &bench_loggp::map_reduce}};
    for (const compared& c : calls) {
        const double real = least_of(
            world, repetitions,
            [&c](const mpi::communicator& w, double& ns) { return repeat(w, ns, c.real); });
        const double predicted = bench_loggp::time_of(p, world.size(), c.simulated);
        if (o.tiny) continue;
        std::printf("%s: predicted %.0f ns, measured %.0f ns\n", c.name, predicted, real);
        const std::string name = std::string("model: ") + c.name;
        bench::write(o, {name, "predicted", "ns", predicted, predicted, predicted});
        bench::write(o, {name, "measured", "ns", real, real, real});
    }
    return 0;
}

}  // namespace bench_mpi
