// The agreement of the processes between two steps of an algorithm.
#include <coppice/mpi/internal/share.hpp>

#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/error.hpp>

#include <array>

namespace coppice::mpi::internal {

void throw_if_failed(const std::exception_ptr& own, bool is_bad) {
    if (own) std::rethrow_exception(own);
    if (is_bad) throw std::system_error(make_error_code(errc::failed_elsewhere), "mpi");
}

void end_service::operator()(const std::exception_ptr& failure) const noexcept {
    if (!owner_->report_failure()) std::rethrow_exception(failure);  // ends the process
}

task<> agree(const communicator& over, std::exception_ptr own) {
    std::array<int, 1> failed{own ? 1 : 0};
    co_await all_reduce(over, failed, failed, reduction::maximum);
    throw_if_failed(own, failed[0] != 0);
}

}  // namespace coppice::mpi::internal
