// Communicators, and the end of a job.
#include <coppice/mpi/communicator.hpp>

#include <coppice/mpi/environment.hpp>
#include <coppice/mpi/error.hpp>

#include "starting.hpp"

#include <cstdlib>
#include <string>
#include <system_error>

namespace coppice::mpi {

communicator::communicator(internal::engine& owner, MPI_Comm handle, bool is_ours)
    : engine_(&owner), handle_(handle), is_ours_(is_ours) {
    const bool has_run = owner.run([this]() noexcept {
        ::MPI_Comm_rank(handle_, &rank_);
        ::MPI_Comm_size(handle_, &size_);
    });
    if (!has_run) throw std::system_error(errc::process_failed, "mpi::communicator");
}

communicator::~communicator() {
    if (engine_ == nullptr || !is_ours_) return;
    engine_->run([this]() noexcept { ::MPI_Comm_free(&handle_); });
}

// The call is made by the owner: what was started before has then started in MPI's order too.
template <class Make>
communicator communicator::made_by(Make make, const char* what) const {
    internal::engine& owner = internal::communicator_access::owner(*this);
    COPPICE_CHECK(!owner.is_current(),
                  "mpi: duplicate() and split() block; call them on another thread");
    MPI_Comm made = MPI_COMM_NULL;
    std::error_code error = errc::process_failed;
    owner.run([&owner, &made, &error, &make]() noexcept {
        MPI_Comm to = MPI_COMM_NULL;
        error =
            internal::error_of(owner.call_waiting([make, &to]() noexcept { return make(&to); }));
        made = to;
    });
    if (error) throw std::system_error(error, what);
    if (made == MPI_COMM_NULL) return communicator();
    return communicator(owner, made, true);
}

communicator communicator::duplicate() const {
    const MPI_Comm from = handle_;
    return made_by([from](MPI_Comm* to) noexcept { return ::MPI_Comm_dup(from, to); },
                   "mpi::communicator::duplicate");
}

communicator communicator::split(int color, int key) const {
    if (color < 0 && color != no_color)
        throw std::system_error(errc::invalid_argument, "mpi::communicator::split: the color " +
                                                            std::to_string(color) +
                                                            " is below 0, and is not no_color");
    const MPI_Comm from = handle_;
    return made_by([from, color,
                    key](MPI_Comm* to) noexcept { return ::MPI_Comm_split(from, color, key, to); },
                   "mpi::communicator::split");
}

// The owner may wait for another process, or have failed.
void environment::abort(int status) noexcept {
    if (allows_calls_of_any_thread()) ::MPI_Abort(MPI_COMM_WORLD, status);
    engine_.run([status]() noexcept { ::MPI_Abort(MPI_COMM_WORLD, status); });
    std::abort();  // MPI_Abort does not return
}

}  // namespace coppice::mpi
