// What the sources of the room share: codes of errors, MPI's names, whether MPI is still used.
#pragma once

#include <coppice/mpi/internal/named_request.hpp>

#include <mpi.h>
#include <system_error>

namespace coppice::mpi::internal {

// Returns the code of what a call of MPI has returned. Threads: the owner.
std::error_code error_of(int returned) noexcept;
// Returns true if an environment of this process has ended, or has failed, without an end of MPI:
// the next call of MPI could wait forever. Threads: any.
bool has_given_up_mpi() noexcept;
MPI_Datatype type_of(element type) noexcept;
MPI_Op operator_of(integer_reduction op) noexcept;

}  // namespace coppice::mpi::internal
