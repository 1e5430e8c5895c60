// Ping-pong: rank 0 sends a message, and rank 1 sends it back. Raw MPI in a loop is the rival.
#include "parts.hpp"

#include <coppice/mpi/message.hpp>

#include <mpi.h>
#include <cstddef>
#include <string>
#include <vector>

namespace bench_mpi {

namespace {

namespace mpi = coppice::mpi;
using coppice::task;
using message = std::vector<std::byte>;

void wait_by_tests(MPI_Request& request) {
    int done = 0;
    while (done == 0) ::MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}
void send_raw(const mpi::communicator& world, const message& m, int to) {
    MPI_Request request = MPI_REQUEST_NULL;
    ::MPI_Isend(m.data(), static_cast<int>(m.size()), MPI_BYTE, to, 0, world.native_handle(),
                &request);
    wait_by_tests(request);
}
void receive_raw(const mpi::communicator& world, message& m, int from) {
    MPI_Request request = MPI_REQUEST_NULL;
    ::MPI_Irecv(m.data(), static_cast<int>(m.size()), MPI_BYTE, from, 0, world.native_handle(),
                &request);
    wait_by_tests(request);
}
void play_raw(const mpi::communicator& world, message& m, std::size_t rounds) {
    const int rank = world.rank();
    for (; rounds != 0; --rounds) {
        if (rank == 0) send_raw(world, m, 1);
        receive_raw(world, m, 1 - rank);
        if (rank == 1) send_raw(world, m, 0);
    }
}

task<> play(const mpi::communicator& world, message& m, std::size_t rounds) {
    const mpi::address other{1 - world.rank()};
    const bool begins = world.rank() == 0;
    for (; rounds != 0; --rounds) {
        if (begins) co_await mpi::send(world, m, other);
        co_await mpi::receive(world, m, other);
        if (!begins) co_await mpi::send(world, m, other);
    }
}

std::uint64_t hash_of(const message& m) {
    bench::hash h;
    for (const std::byte b : m) h.add(static_cast<std::uint64_t>(b));
    return h.value();
}

std::string text_of(std::size_t size) {
    if (size < 1024) return std::to_string(size) + " bytes";
    if (size < 1024 * 1024) return std::to_string(size / 1024) + " KiB";
    return std::to_string(size / 1024 / 1024) + " MiB";
}

}  // namespace

int run_ping_pong(const mpi::communicator& world, const bench::options& o) {
    int status = 0;
    for (std::size_t size = 8; size <= 4 * 1024 * 1024; size *= 8) {
        const auto m = std::make_shared<message>(size, std::byte{7});
        const std::size_t rounds = std::max<std::size_t>(1, 200'000 / (1000 + size));
        std::vector<bench::figure> figures;
        status |= bench::run(
            {{"ping-pong of " + text_of(size),
              "round trip",
              rounds,
              3,
              {{"raw MPI",
                [&world, m](std::size_t n) {
                    play_raw(world, *m, n);
                    return hash_of(*m);
                }},
               {"coppice, on its thread",
                [&world, m](std::size_t n) {
                    run_on_environment(play(world, *m, n));
                    return hash_of(*m);
                }},
               {"coppice, sync_wait", [&world, m](std::size_t n) {
                    coppice::this_thread::sync_wait(play(world, *m, n));
                    return hash_of(*m);
                }}}}},
            o, figures);
        if (figures.size() > 2) for (double q : {0.1, 0.25, 0.5}) std::printf("   q%.2f raw %.0f own %.0f sync %.0f  ratio %.3f; of neighbors %.3f\n", q, bench::quantile(figures[0].samples, q), bench::quantile(figures[1].samples, q), bench::quantile(figures[2].samples, q),
           bench::quantile(figures[1].samples, q) / bench::quantile(figures[0].samples, q), bench::quantile(bench::ratios(figures[1].samples, figures[0].samples), q));
    }
    return status;
}

}  // namespace bench_mpi
