// The category `mpi`: errors of MPI as std::error_code, the same under every implementation.
#pragma once

#include <system_error>

namespace coppice::mpi {

// The classes of errors that programs meet. The standard fixes their names but not their numbers,
// so these numbers are ours. Source: MPI 3.1, 8.4.
enum class errc {
    truncated = 1,     // a message was longer than the memory that it was received into
    invalid_rank,      // no such rank in the communicator
    invalid_tag,       // a tag below 0 or above the largest of the implementation
    invalid_count,     // a negative count
    invalid_type,      // a datatype that the call does not take
    invalid_operator,  // a reduction that the datatype does not have
    invalid_root,      // no such rank to collect at or to distribute from
    invalid_communicator,
    invalid_buffer,
    invalid_request,  // a function given to call() has started no request
    invalid_argument,
    no_resources,  // the implementation is out of memory, or of another resource
    internal,      // an error inside the implementation, for example a connection that has broken
    other,         // any other class
    out_of_range,  // a process has no such objects in its window
    failed_elsewhere,  // another process has failed at its share of the work
    // A process has died or stands still. MPI is not used again, or, if the environment can
    // recover, the communicator is not: another process may have revoked it too.
    process_failed,
    partial_object,  // a message is no whole number of objects of the receiver's type
};

// The category "mpi". Its messages are readable. Threads: any; calls nothing of MPI.
const std::error_category& mpi_category() noexcept;

// Returns the code of mpi_category().
inline std::error_code make_error_code(errc e) noexcept {
    return {static_cast<int>(e), mpi_category()};
}

}  // namespace coppice::mpi

template <>
struct std::is_error_code_enum<coppice::mpi::errc> : std::true_type {};
