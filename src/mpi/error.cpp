// The category of mpi/error.hpp.
#include <coppice/mpi/error.hpp>

#include "starting.hpp"

#include <mpi.h>
#include <cstddef>
#include <new>
#include <string>

namespace coppice::mpi {

namespace {

const char* text_of_class(errc code) noexcept {
    switch (code) {
        case errc::truncated:
            return "the message is longer than the memory that it is received into";
        case errc::invalid_rank:
            return "no such rank in the communicator";
        case errc::invalid_tag:
            return "the tag is negative or too large";
        case errc::invalid_count:
            return "the count is invalid";
        case errc::invalid_type:
            return "the datatype is invalid";
        case errc::invalid_operator:
            return "the datatype does not have this reduction";
        case errc::invalid_root:
            return "no such root in the communicator";
        case errc::invalid_communicator:
            return "the communicator is invalid: it was freed, or moved from";
        case errc::invalid_buffer:
            return "the buffer is invalid";
        case errc::invalid_request:
            return "the function did not start a request";
        case errc::invalid_argument:
            return "an argument is invalid";
        case errc::no_resources:
            return "MPI is out of memory or of another resource";
        case errc::internal:
            return "MPI failed internally, for example because a connection broke";
        case errc::out_of_range:
            return "the process does not have these objects in its window";
        case errc::failed_elsewhere:
            return "another process has failed at its share; its exception is known there only";
        case errc::process_failed:
            return "a process of the job has died or stands still; end this one too";
        case errc::partial_object:
            return "the message is no whole number of objects of the type that it is received as";
        case errc::other:
            break;
    }
    return "unknown error of MPI";
}

class mpi_errors final : public std::error_category {
public:
    const char* name() const noexcept override { return "mpi"; }
    std::string message(int code) const override { return text_of_class(static_cast<errc>(code)); }
};

errc class_of(int error_class) noexcept {
    // Not a switch: an implementation may give two classes one number.
    const struct {
        int theirs;
        errc ours;
    } table[] = {
        {MPI_ERR_TRUNCATE, errc::truncated},    {MPI_ERR_RANK, errc::invalid_rank},
        {MPI_ERR_TAG, errc::invalid_tag},       {MPI_ERR_COUNT, errc::invalid_count},
        {MPI_ERR_TYPE, errc::invalid_type},     {MPI_ERR_OP, errc::invalid_operator},
        {MPI_ERR_ROOT, errc::invalid_root},     {MPI_ERR_COMM, errc::invalid_communicator},
        {MPI_ERR_BUFFER, errc::invalid_buffer}, {MPI_ERR_REQUEST, errc::invalid_request},
        {MPI_ERR_ARG, errc::invalid_argument},  {MPI_ERR_NO_MEM, errc::no_resources},
        {MPI_ERR_INTERN, errc::internal},       {MPI_ERR_DISP, errc::out_of_range},
    };
#if defined(MPIX_ERR_PROC_FAILED)
    if (error_class == MPIX_ERR_PROC_FAILED) return errc::process_failed;
#endif
    for (const auto& row : table) {
        if (row.theirs == error_class) return row.ours;
    }
    return errc::other;
}

}  // namespace

const std::error_category& mpi_category() noexcept {
    // Never destroyed: an error may outlive main(), and no destructor is registered.
    alignas(mpi_errors) static std::byte place[sizeof(mpi_errors)];
    static const std::error_category& category = *::new (static_cast<void*>(place)) mpi_errors;
    return category;
}

namespace internal {

std::error_code error_of(int returned) noexcept {
    if (returned == MPI_SUCCESS) return {};
    int error_class = MPI_ERR_OTHER;
    ::MPI_Error_class(returned, &error_class);
    return class_of(error_class);
}

}  // namespace internal

}  // namespace coppice::mpi
