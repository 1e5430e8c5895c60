// The calls of MPI's fault tolerance, under the names that the implementation has.
#include "recovery.hpp"

#include <coppice/mpi/error.hpp>

#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

namespace coppice::mpi::internal {

bool tells_of_failure([[maybe_unused]] int error_class) noexcept {
#if defined(MPIX_ERR_PROC_FAILED)
    if (error_class == MPIX_ERR_PROC_FAILED) return true;
#endif
#if defined(MPIX_ERR_PROC_FAILED_PENDING)
    if (error_class == MPIX_ERR_PROC_FAILED_PENDING) return true;
#endif
#if defined(MPIX_ERR_REVOKED)
    if (error_class == MPIX_ERR_REVOKED) return true;
#endif
    return false;
}

bool may_tell_of_failure(std::error_code error) noexcept {
    return error == errc::process_failed || error == errc::other || error == errc::internal;
}

#if defined(OMPI_HAVE_MPI_EXT_FTMPI)

bool has_fault_tolerance() noexcept {
    int* is_on = nullptr;
    int found = 0;
    ::MPI_Comm_get_attr(MPI_COMM_WORLD, MPIX_FT, &is_on, &found);
    return found != 0 && is_on != nullptr && *is_on != 0;
}

bool is_still_pending(int returned) noexcept {
    int error_class = MPI_SUCCESS;
    if (returned != MPI_SUCCESS) ::MPI_Error_class(returned, &error_class);
    return error_class == MPIX_ERR_PROC_FAILED_PENDING;
}

bool has_failed_processes(MPI_Comm over) noexcept {
    int is_revoked = 0, count = 0;
    ::MPIX_Comm_is_revoked(over, &is_revoked);
    if (is_revoked != 0) return true;
    MPI_Group failed = MPI_GROUP_NULL;
    if (::MPIX_Comm_get_failed(over, &failed) != MPI_SUCCESS) return false;
    ::MPI_Group_size(failed, &count);
    ::MPI_Group_free(&failed);
    return count != 0;
}

int revoke(MPI_Comm over) noexcept {
    return ::MPIX_Comm_revoke(over);
}

// Open MPI 5.0 crashes in a process that is still in its shrink, if another one has left it and
// revokes what it has made. So no process leaves before all that live have made it.
int shrink(MPI_Comm over, MPI_Comm* made) noexcept {
    const int returned = ::MPIX_Comm_shrink(over, made);
    int all_have_made = returned == MPI_SUCCESS ? 1 : 0;
    ::MPIX_Comm_agree(over, &all_have_made);  // an error tells of another death
    return returned != MPI_SUCCESS || all_have_made != 0 ? returned : MPIX_ERR_PROC_FAILED;
}

int agree(MPI_Comm over, int* bits, MPI_Request* made) noexcept {
    return ::MPIX_Comm_iagree(over, bits, made);
}

#else

bool has_fault_tolerance() noexcept {
    return false;
}

bool is_still_pending(int) noexcept {
    return false;
}

bool has_failed_processes(MPI_Comm) noexcept {
    return false;
}

int revoke(MPI_Comm) noexcept {
    return MPI_ERR_OTHER;
}

int shrink(MPI_Comm, MPI_Comm*) noexcept {
    return MPI_ERR_OTHER;
}

int agree(MPI_Comm, int*, MPI_Request*) noexcept {
    return MPI_ERR_OTHER;
}

#endif

}  // namespace coppice::mpi::internal
