// A job that goes on with the processes that are left when some die. It needs an MPI with fault
// tolerance, such as Open MPI 5; without one it runs too, and no process dies.
// mpiexec --with-ft ulfm --mca async_mpi_finalize 1 -n 4 example_80_mpi_recovery
#include <coppice/execution.hpp>
#include <coppice/mpi.hpp>
#include <coppice/token.hpp>

#include <signal.h>
#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <system_error>
#include <tuple>

namespace mpi = coppice::mpi;

std::uint64_t square(std::size_t i) {
    return std::uint64_t{i} * i;
}
std::uint64_t add(std::uint64_t a, std::uint64_t b) {
    return a + b;
}

// The last one of several processes, if the others can live without it.
void die_if_last(const mpi::environment& environment) {
    const mpi::communicator& world = environment.world();
    if (environment.can_recover() && world.rank() > 0 && world.rank() == world.size() - 1)
        ::kill(::getpid(), SIGKILL);
}

// [recover]
// Repeats the step with the processes that live, until it has ended well in all of them.
std::uint64_t sum_of_squares(const mpi::environment& environment) {
    mpi::communicator living = environment.world().duplicate();
    die_if_last(environment);
    while (true) {
        std::optional<std::tuple<std::uint64_t>> sum;
        try {
            sum = coppice::this_thread::sync_wait(
                mpi::map_reduce(living, 1000, std::uint64_t{0}, square, add));
        } catch (const std::system_error& e) {
            if (e.code() != mpi::errc::process_failed) throw;
        }
        // A process may have the sum, and another one not: all repeat the step, or none does.
        if (mpi::agree(living, sum.has_value(), coppice::block)) return std::get<0>(*sum);
        living = living.shrink();
    }
}
// [/recover]

int main() {
    mpi::environment environment;
    const std::uint64_t sum = sum_of_squares(environment);
    if (environment.world().rank() == 0)
        std::printf("the sum is %llu\n", static_cast<unsigned long long>(sum));
}
