// Communicators, and the end of a job.
#include <coppice/mpi/communicator.hpp>

#include <coppice/base/lifetime.hpp>
#include <coppice/mpi/environment.hpp>
#include <coppice/mpi/error.hpp>

#include "recovery.hpp"
#include "starting.hpp"

#include <chrono>
#include <cstdlib>
#include <string>
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
    if (is_ours_) owner.count_communicators(1);
}

communicator::~communicator() {
    if (engine_ == nullptr || !is_ours_) return;
    // MPI gives the number of a communicator that it frees to the next one, which receives messages
    // that were on their way when a process failed. So the number stays taken then.
    engine_->run([this]() noexcept {
        if (!engine_->recovers() || !internal::has_failed_processes(handle_))
            ::MPI_Comm_free(&handle_);
    });
    engine_->count_communicators(-1);
}

// The call is made by the owner: what was started before has then started in MPI's order too.
template <class Make>
communicator communicator::made_by(Make make, const char* what) const {
    internal::engine& owner = internal::communicator_access::owner(*this);
    COPPICE_CHECK(!owner.is_current(),
                  "mpi: duplicate(), split(), and shrink() block; call them on another thread");
    MPI_Comm made = MPI_COMM_NULL;
    std::error_code error = errc::process_failed;
    owner.run([&owner, &made, &error, &make, from = handle_]() noexcept {
        MPI_Comm to = MPI_COMM_NULL;
        error =
            internal::error_of(owner.call_waiting([make, &to]() noexcept { return make(&to); }));
        if (error == errc::process_failed) owner.revoke(from);
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

void communicator::check_can_recover(const char* what) const {
    if (internal::communicator_access::owner(*this).recovers()) return;
    throw std::system_error(std::make_error_code(std::errc::operation_not_supported), what);
}

void communicator::revoke() const {
    check_can_recover("mpi::communicator::revoke");
    internal::engine& owner = internal::communicator_access::owner(*this);
    owner.run([this, &owner]() noexcept { owner.revoke(handle_); });
}

// What is pending must end first: it may be of a process that waits for a failed one.
communicator communicator::shrink() const {
    check_can_recover("mpi::communicator::shrink");
    const MPI_Comm from = handle_;
    return made_by(
        [from](MPI_Comm* to) noexcept {
            internal::revoke(from);
            return internal::shrink(from, to);
        },
        "mpi::communicator::shrink");
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
