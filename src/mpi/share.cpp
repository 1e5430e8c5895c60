// What a process does with a failure of its own, or of another process.
#include <coppice/mpi/internal/share.hpp>

#include <coppice/mpi/error.hpp>
#include <coppice/mpi/internal/service.hpp>

namespace coppice::mpi::internal {

std::exception_ptr pool_has_ended() noexcept {
    try {
        throw std::system_error(
            std::make_error_code(std::errc::operation_canceled),
            "mpi: the default pool has ended, so this process cannot do its share");
    } catch (...) {
        return std::current_exception();
    }
}

void throw_if_failed(const std::exception_ptr& own, bool is_bad) {
    if (own) std::rethrow_exception(own);
    if (is_bad) throw std::system_error(make_error_code(errc::failed_elsewhere), "mpi");
}

void end_service::operator()(const std::exception_ptr& failure) const noexcept {
    if (!owner_->report_failure(over_)) std::rethrow_exception(failure);  // ends the process
}

}  // namespace coppice::mpi::internal
