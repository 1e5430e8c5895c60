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

// A process may have made the communicator, and another one not, if a third has died meanwhile.
// Then the second revokes the old one, and the first fails in a barrier of that. If a process fails
// in the first barrier, none gets through the second, so all fail. A process that fails in the
// second knows that all have made the new one, and revokes it, because others may keep it. It must
// not before: Open MPI 5.0 crashes in a process that has not made it yet.
std::error_code communicator::check_made(int returned, MPI_Comm made) const noexcept {
    std::error_code error = internal::error_of(returned);
    if (!engine_->recovers()) return error;
    bool have_all_made = false;
    if (!internal::may_tell_of_failure(error)) {
        std::error_code later = internal::error_of(::MPI_Barrier(handle_));
        have_all_made = !later;
        if (!later) later = internal::error_of(::MPI_Barrier(handle_));
        if (!later) return error;
        error = later;
    }
    if (internal::has_failed_processes(handle_)) error = errc::process_failed;
    engine_->revoke(handle_);
    if (have_all_made) engine_->revoke(made);
    return error;
}

// The call is made by the owner: what was started before has then started in MPI's order too.
template <class Make>
communicator communicator::made_by(Make make, const char* what, bool ends_alike) const {
    internal::engine& owner = internal::communicator_access::owner(*this);
    COPPICE_CHECK(!owner.is_current(),
                  "mpi: duplicate(), split(), and shrink() block; call them on another thread");
    MPI_Comm made = MPI_COMM_NULL;
    std::error_code error = errc::process_failed;
    owner.run([this, &owner, &made, &error, &make, ends_alike]() noexcept {
        MPI_Comm to = MPI_COMM_NULL;
        const int returned = owner.call_waiting([make, &to]() noexcept { return make(&to); });
        error = ends_alike ? internal::error_of(returned) : check_made(returned, to);
        made = to;
    });
    if (error) throw std::system_error(error, what);
    if (made == MPI_COMM_NULL) return communicator();
    return communicator(owner, made, true);
}

communicator communicator::duplicate() const {
    const MPI_Comm from = handle_;
    return made_by([from](MPI_Comm* to) noexcept { return ::MPI_Comm_dup(from, to); },
                   "mpi::communicator::duplicate", false);
}

communicator communicator::split(int color, int key) const {
    if (color < 0 && color != no_color)
        throw std::system_error(errc::invalid_argument, "mpi::communicator::split: the color " +
                                                            std::to_string(color) +
                                                            " is below 0, and is not no_color");
    const MPI_Comm from = handle_;
    return made_by([from, color,
                    key](MPI_Comm* to) noexcept { return ::MPI_Comm_split(from, color, key, to); },
                   "mpi::communicator::split", false);
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
        "mpi::communicator::shrink", true);
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
