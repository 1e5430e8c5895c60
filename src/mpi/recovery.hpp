// What MPI can do after a process has failed (ULFM), if it can.
#pragma once
// Open MPI has it from 5.0 on, if mpiexec gets --with-ft ulfm. MPICH 4.0 declares the functions
// too, but a collective over ch4 does not end when a process dies. Source: MPI Forum, User-Level
// Failure Mitigation.

#include <mpi.h>
#include <system_error>

namespace coppice::mpi::internal {

// Returns true if the other processes can go on when one fails. Called once MPI is initialized.
bool has_fault_tolerance() noexcept;
// Returns true if this class of errors says that a process has failed, or that another process has
// revoked the communicator.
bool tells_of_failure(int error_class) noexcept;
// Returns true if it is that error, or one that Open MPI may give in place of it: a collective that
// sends to a process that has died may fail with an error of no class.
bool may_tell_of_failure(std::error_code error) noexcept;
// Returns true if the call has failed for such a reason, but its receive goes on.
bool is_still_pending(int returned) noexcept;
// Returns true if the communicator was revoked, or MPI knows of a process of it that has failed.
bool has_failed_processes(MPI_Comm over) noexcept;

// These return an error, and do nothing else, if MPI cannot recover.
int revoke(MPI_Comm over) noexcept;
int shrink(MPI_Comm over, MPI_Comm* made) noexcept;
int agree(MPI_Comm over, int* bits, MPI_Request* made) noexcept;

}  // namespace coppice::mpi::internal
