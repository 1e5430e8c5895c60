// environment: MPI in this process, from its start to its end.
#pragma once

#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/engine.hpp>

namespace coppice::mpi {

// Initializes MPI, runs the thread that makes its calls, and ends MPI. A process makes one, in
// main(), because MPI starts once. mpiexec starts the processes; without it there is one.
//
// Operations complete on the environment's thread. Code that continues there should be short, since
// no other operation completes meanwhile: a task of a pool or a loop goes back to that by itself.
// The thread spins for 0.1 ms while operations wait, then sleeps for up to 1 ms between looks, and
// sleeps without a limit if none waits.
//
// If MPI is already initialized, with MPI_THREAD_MULTIPLE, it is used and not ended.
//
// Cost: one thread. Source: MPI 3.1, 12.4.
class environment : immovable {
public:
    // Blocks: until MPI is initialized. Errors: std::system_error.
    environment() : world_(engine_, MPI_COMM_WORLD, false) {}
    // Ends receives and probes with operation_canceled, waits for all other operations, which is
    // for other processes too, and ends MPI. Communicators must be gone. Blocks: until every
    // process has come as far. A process that cannot go on calls abort() instead.
    ~environment() = default;

    // Returns the communicator of all processes of the job.
    const communicator& world() const noexcept { return world_; }
    // Returns true if MPI lets the program's other threads call it too (MPI_THREAD_MULTIPLE).
    bool allows_calls_of_any_thread() const noexcept {
        return engine_.thread_level() == MPI_THREAD_MULTIPLE;
    }
    // Ends all processes of the job at once, this one with `status`. Never returns. Threads: any.
    [[noreturn]] void abort(int status) noexcept;

private:
    internal::engine engine_;
    communicator world_;
};

}  // namespace coppice::mpi
