// The error of bytes that are not the objects that they should be.
#include <coppice/mpi/serializer.hpp>

#include <system_error>

namespace coppice::mpi::internal {

void throw_bad_message(const char* what) {
    throw std::system_error(std::make_error_code(std::errc::bad_message), what);
}

}  // namespace coppice::mpi::internal
