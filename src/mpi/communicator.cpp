// Communicators, and the end of a job.
#include <coppice/mpi/communicator.hpp>

#include <coppice/base/lifetime.hpp>
#include <coppice/mpi/environment.hpp>
#include <coppice/mpi/error.hpp>

#include "starting.hpp"

#include <chrono>
#include <cstdlib>
#include <system_error>
#include <thread>

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
    return communicator(owner, made, true);
}

communicator communicator::duplicate() const {
    const MPI_Comm from = handle_;
    return made_by([from](MPI_Comm* to) noexcept { return ::MPI_Comm_dup(from, to); },
                   "mpi::communicator::duplicate");
}

communicator communicator::split(int color, int key) const {
    COPPICE_CHECK(color >= 0, "mpi::communicator::split: the color must be 0 or more");
    const MPI_Comm from = handle_;
    return made_by([from, color,
                    key](MPI_Comm* to) noexcept { return ::MPI_Comm_split(from, color, key, to); },
                   "mpi::communicator::split");
}

namespace {

// Ends the job on the owner. Never freed, since the owner may come to it at any time.
struct abort_call : internal::operation {
    explicit abort_call(int s) noexcept
        : operation([](operation* op) noexcept {
              ::MPI_Abort(MPI_COMM_WORLD, static_cast<abort_call*>(op)->status);
          }),
          status(s) {}
    int status;
};

}  // namespace

// MPI_Abort does not return. The owner may wait for another process, and not come to the call.
void environment::abort(int status) noexcept {
    if (allows_calls_of_any_thread() || engine_.is_current()) ::MPI_Abort(MPI_COMM_WORLD, status);
    abort_call* const call = try_new<abort_call>(status);
    if (call == nullptr) std::abort();
    engine_.post(*call);
    std::this_thread::sleep_for(std::chrono::seconds(1));
    std::abort();
}

}  // namespace coppice::mpi
