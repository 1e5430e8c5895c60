// environment: MPI in this process, from its start to its end.
#pragma once

#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/engine.hpp>

#include <chrono>

namespace coppice::mpi {

// How a process takes part in its job.
struct environment_options {
    // How long a process may be silent before the others treat it as failed, from 4 ms to a day;
    // less or more counts as that. 0 or less: they do not look for failures. All processes give the
    // same.
    std::chrono::nanoseconds failure_timeout{0};
};

// Initializes MPI, runs the thread that makes its calls, and ends MPI. A process makes one, in
// main(), because MPI starts once. mpiexec starts the processes; without it there is one.
//
// Operations complete on the environment's thread. Code that continues there should be short, since
// no other operation completes meanwhile: a task of a pool or a loop goes back to that by itself.
// The thread spins while operations wait, until MPI has moved nothing for 0.5 ms. Then it sleeps
// for up to 1 ms between looks, and without a limit if none waits.
//
// With a failure timeout, each process sends a small message to the next one four times in that
// time. A process that is not heard for so long has died, stands still, or is much too slow: MPI
// does not tell which. Then the environment has failed in all processes that still run, the silent
// one too if it goes on. By design after one timeout to one and a half, each operation that is
// pending ends with errc::process_failed, and later ones end with it at once. MPI is not called
// again, and not ended: catch the error, save what must be saved, and leave main(). It needs
// MPI_THREAD_MULTIPLE.
//
// MPI then gets copies of the memory of operations, since it may still access that after they have
// ended with the error. So a failure timeout costs two copies of each message, and memory for them.
// The memory of call() is not copied: after the error it must stay until the process ends.
//
// If MPI is already initialized, with MPI_THREAD_MULTIPLE, it is used and not ended. The program
// must not end it before the environment has ended. Until then errors of MPI_COMM_WORLD and
// MPI_COMM_SELF do not end the job; then the error handlers that they had before are restored, but
// not after a process has failed.
//
// Cost: one thread, and a second one with a failure timeout. Source: MPI 3.1, 12.4.
class environment : immovable {
public:
    environment() : environment(environment_options{}) {}
    // Blocks: until MPI is initialized; with a failure timeout, until it is in all processes.
    // Errors: std::system_error, with operation_not_permitted if MPI has ended in this process, and
    // with errc::process_failed if a process fails, also if it did during an earlier environment of
    // this process; MPI is not ended then. If the watch for failures cannot begin in a process, for
    // example without memory, all get that error, which is invalid_argument if they give different
    // timeouts. After other errors, MPI has ended if this
    // constructor has initialized it, and otherwise is as before. std::bad_alloc: nothing has
    // started, and the process may try again, for which the others wait.
    explicit environment(const environment_options& options)
        : engine_(options.failure_timeout), world_(engine_, MPI_COMM_WORLD, false) {}
    // Ends receives and probes with operation_canceled, waits for all other operations, which is
    // for other processes too, and ends MPI. Completions on its thread may start operations
    // meanwhile: those that cannot be canceled are waited for likewise. Communicators must be gone,
    // except world(), and what has one, such as a window; otherwise a message ends the process,
    // unless another process has failed. So it does in a child of fork(), which leaves by exec or
    // _exit instead. Blocks: until every process has come as far, or one has failed. A process that
    // cannot go on calls abort() instead.
    ~environment() { engine_.end(); }

    // Returns the communicator of all processes of the job.
    const communicator& world() const noexcept { return world_; }
    // Returns true if MPI lets the program's other threads call it too (MPI_THREAD_MULTIPLE).
    bool allows_calls_of_any_thread() const noexcept {
        return engine_.thread_level() == MPI_THREAD_MULTIPLE;
    }
    // Returns true if the processes can go on when one of them dies: MPI has fault tolerance, and
    // this environment has no failure timeout. Then an operation with a process that has died ends
    // with errc::process_failed, which revokes its communicator, and communicator::shrink() makes
    // one of the others. The world stays revoked then. Threads: any.
    bool can_recover() const noexcept { return engine_.recovers(); }
    // Returns the rank in the world of a process that has failed, or -1 if none has. Always -1
    // without a failure timeout. Threads: any.
    int failed_rank() const noexcept { return engine_.failed_rank(); }
    // Ends all processes of the job at once, this one with `status`. If mpiexec was told to let
    // others live, Open MPI ends only this one. If MPI lets only the environment's thread call it,
    // that thread ends the job; if it has not come to that after one second, because it waits for
    // another process or runs the program's code, this process ends by std::abort(), and mpiexec
    // ends the others. Never returns. Threads: any.
    [[noreturn]] void abort(int status) noexcept;

private:
    internal::engine engine_;
    communicator world_;
};

}  // namespace coppice::mpi
