// What a process does with a failure of its own, or of another process.
#include <coppice/mpi/internal/share.hpp>

#include <coppice/mpi/error.hpp>
#include <coppice/mpi/internal/service.hpp>

namespace coppice::mpi::internal {

void throw_if_failed(const std::exception_ptr& own, bool is_bad) {
    if (own) std::rethrow_exception(own);
    if (is_bad) throw std::system_error(make_error_code(errc::failed_elsewhere), "mpi");
}

void end_service::operator()(const std::exception_ptr& failure) const noexcept {
    if (!owner_->report_failure(over_)) std::rethrow_exception(failure);  // ends the process
}

}  // namespace coppice::mpi::internal
