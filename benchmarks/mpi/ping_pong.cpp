// Ping-pong: rank 0 sends a message, and rank 1 sends it back. Raw MPI in a loop is the rival.
#include "parts.hpp"

#include <coppice/mpi/message.hpp>

#include <mpi.h>
#include <algorithm>
#include <cstddef>
#include <iterator>
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
// A way to play, which writes how long a round trip took. The first ones bring the threads to
// speed, and are not counted.
constexpr std::size_t warm_up = 3;
struct round_trips {
    std::size_t count;
    double ns = 0;
};

void play_raw(const mpi::communicator& world, message& m, round_trips& r) {
    const int rank = world.rank();
    double begin = 0;
    for (std::size_t n = 0; n != warm_up + r.count; ++n) {
        if (n == warm_up) begin = bench::now(false);
        if (rank == 0) send_raw(world, m, 1);
        receive_raw(world, m, 1 - rank);
        if (rank == 1) send_raw(world, m, 0);
    }
    r.ns = (bench::now(false) - begin) / static_cast<double>(r.count);
}

task<> play(const mpi::communicator& world, message& m, round_trips& r) {
    const mpi::address other{1 - world.rank()};
    const bool begins = world.rank() == 0;
    double begin = 0;
    for (std::size_t n = 0; n != warm_up + r.count; ++n) {
        if (n == warm_up) begin = bench::now(false);
        if (begins) co_await mpi::send(world, m, other);
        co_await mpi::receive(world, m, other);
        if (!begins) co_await mpi::send(world, m, other);
    }
    r.ns = (bench::now(false) - begin) / static_cast<double>(r.count);
}

struct player {
    const char* name;
    void (*play)(const mpi::communicator& world, message& m, round_trips& r);
};
constexpr player players[] = {
    {"raw MPI", &play_raw},
    {"coppice, on its thread", [](const mpi::communicator& world, message& m,
                                  round_trips& r) { run_on_environment(play(world, m, r)); }},
    {"coppice, in sync_wait",
     [](const mpi::communicator& world, message& m, round_trips& r) {
         coppice::this_thread::sync_wait(play(world, m, r));
     }},
};

std::string text_of(std::size_t size) {
    if (size < 1024) return std::to_string(size) + " bytes";
    if (size < 1024 * 1024) return std::to_string(size / 1024) + " KiB";
    return std::to_string(size / 1024 / 1024) + " MiB";
}

}  // namespace

int run_ping_pong(const mpi::communicator& world, const bench::options& o) {
    for (std::size_t size = 8; size <= 4 * 1024 * 1024; size *= size == 2 * 1024 * 1024 ? 2 : 8) {
        message m(size, std::byte{7});
        // About 0.2 ms: a preemption spoils one of the repetitions, but not the median.
        const std::size_t rounds = o.tiny ? 3 : std::max<std::size_t>(4, 200'000 / (1000 + size));
        const int repetitions = o.tiny ? 1 : o.repetitions * (size > 100'000 ? 7 : 33);
        std::vector<double> times[std::size(players)];
        for (int n = 0; n != repetitions; ++n) {
            for (std::size_t p = 0; p != std::size(players); ++p) {
                round_trips r{rounds};
                players[p].play(world, m, r);
                times[p].push_back(r.ns);
            }
        }
        if (o.tiny) continue;
        const std::string name = "ping-pong of " + text_of(size);
        std::printf("%s, ns per round trip\n", name.c_str());
        for (std::size_t p = 0; p != std::size(players); ++p)
            print(o, bench::of_samples(name, players[p].name, "ns per round trip", times[p]));
        bench::judge(o, "mpi: " + name + ", coppice / raw MPI", bench::ratios(times[1], times[0]),
                     1.1);
    }
    return 0;
}

}  // namespace bench_mpi
