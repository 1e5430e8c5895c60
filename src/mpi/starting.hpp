// What the sources of the room share: codes of errors.
#pragma once

#include <system_error>

namespace coppice::mpi::internal {

// Returns the code of what a call of MPI has returned. Threads: the owner.
std::error_code error_of(int returned) noexcept;

}  // namespace coppice::mpi::internal
