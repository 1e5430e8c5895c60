// A request on the owner: its start, and its end.
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/internal/request.hpp>

#include "recovery.hpp"
#include "starting.hpp"

#include <cstring>
#include <new>
#include <utility>

namespace coppice::mpi::internal {

request::~request() {
    while (lent_ != nullptr) engine_->lent().give_back(std::exchange(lent_, lent_->next));
}

bool request::begin(inplace_stop_token token, time_point deadline) noexcept {
    token_ = token;
    deadline_ = deadline;
    if (engine_->may_start_here() && !(waits_ && engine_->is_watched())) return launch();
    engine_->post(*this);
    return false;
}

void request::launch_posted(operation* op) noexcept {
    request& self = *static_cast<request*>(op);
    if (self.launch()) self.completed();
}

bool request::launch() noexcept {
    if (engine_->has_failed()) {
        fail(errc::process_failed);
        return true;
    }
    const bool late =
        can_cancel_ && (token_.stop_requested() ||
                        (deadline_ != time_point::max() && deadline_ <= monotonic_clock().now()));
    // MPI cannot cancel the others, so other processes may wait for them.
    if (late || (can_cancel_ && engine_->is_ending())) {
        stopped_ = late;
        end_canceled();
        return true;
    }
    if (!engine_->reserve()) {
        end_without_memory();
        return true;
    }
    if (try_start()) return true;
    if (has_steps_) engine_->keep_room();
    if (is_polled_) engine_->add_polled(*this);
    if (!can_cancel_) return false;
    if (deadline_ != time_point::max()) engine_->expect(deadline_);
    if (token_.stop_possible()) engine_->listen_soon();
    return false;
}

void request::listen() noexcept {
    if (!can_cancel_ || is_listening_) return;
    is_listening_ = true;
    relay::listen(*engine_, token_, &interrupt_relayed, &complete_relayed);
}

// Starts steps until one does not complete at once. Returns true if the request has ended.
bool request::try_start() noexcept {
    while (start_step()) {
        if (error_ || !continues()) return true;
    }
    return false;
}

// Returns true if the step has completed, or failed.
bool request::start_step() noexcept {
    handles made;
    is_polled_ = false;
    switch (start(made)) {
        case outcome::again:
            is_polled_ = true;
            return false;
        case outcome::failed:
            if (!error_) fail_by(made.returned);
            return true;
        case outcome::started:
            break;
    }
    track(made);
    return is_over();
}

// Small messages have often completed when they start: one call finds out, and saves a turn. A call
// that finds nothing makes MPI look for messages everywhere, as the test of the turn does soon, so
// a turn makes at most one such call.
void request::track(handles& made) noexcept {
    for (int which = 0; which != 2; ++which) {
        MPI_Request& handle = made.each[which];
        if (handle == MPI_REQUEST_NULL) continue;
        ++waiting_;
        int done = 0;
        MPI_Status status{};
        int returned = MPI_SUCCESS;
        if (engine_->tests_starts()) returned = ::MPI_Test(&handle, &done, &status);
        if ((returned != MPI_SUCCESS || done != 0) && !stays(returned, done, handle)) {
            note(which, status, returned);
        } else {
            engine_->add(*this, which, handle);
        }
    }
}

void request::note(int which, const MPI_Status& status, int returned) noexcept {
    --waiting_;
    if (returned != MPI_SUCCESS) {
        if (!error_) fail_by(returned);
        return;
    }
    if (which != 0) return;
    int canceled = 0;
    if (interrupted_) ::MPI_Test_cancelled(&status, &canceled);
    if (canceled != 0) {
        end_canceled();
    } else {
        keep(status);
    }
}

// The other processes may wait for this one, which has learned of the failure and does not go on.
void request::fail_by(int returned) noexcept {
    fail(error_of(returned));
    if (!engine_->recovers() || over_ == MPI_COMM_NULL || !may_tell_of_failure(error_)) return;
    if (has_failed_processes(over_)) fail(errc::process_failed);
    if (error_ == errc::process_failed || is_collective()) engine_->revoke(over_);
}

// Returns true if MPI's test has failed, but the call has not ended, so that MPI may still access
// its memory: the request ends when the environment has failed, or the communicator is revoked.
// Without either it ends at once, since it may never end otherwise. If a process has failed, MPI
// says so at each test of a receive from any source that no message has matched.
bool request::stays(int returned, int done, MPI_Request& handle) noexcept {
    if (returned == MPI_SUCCESS || done != 0 || handle == MPI_REQUEST_NULL) return false;
    if (engine_->report_failure(over_)) return true;
    if (is_still_pending(returned)) {
        ::MPI_Cancel(&handle);
        ::MPI_Request_free(&handle);
    }
    return false;
}

void request::end_canceled() noexcept {
    is_canceled_ = true;
    fail(std::make_error_code(std::errc::operation_canceled));
}

void request::end_without_memory() noexcept {
    if (holds_others_) static_cast<void>(engine_->report_failure(over_));
    fail(std::make_error_code(std::errc::not_enough_memory));
}

// A process of the job has failed, and this request may wait for it.
void request::give_up() noexcept {
    waiting_ = 0;
    is_polled_ = false;
    fail(errc::process_failed);
}

void* request::lend(std::size_t size) noexcept {
    void* const taken = engine_->lent().take(offsetof(lent_block, memory) + size, holds_others_);
    if (taken == nullptr) {
        end_without_memory();
        return nullptr;
    }
    lent_ = ::new (taken) lent_block{lent_, {}};
    return lent_->memory;
}

bool request::lend_copy(memory& m) noexcept {
    const memory original = m;
    if (!lend_space(m)) return false;
    if (m.data != original.data) std::memcpy(m.data, original.data, size_in_bytes(m));
    return true;
}

bool request::lend_space(memory& m) noexcept {
    if (!uses_copies() || m.count == 0) return true;
    void* const lent = lend(size_in_bytes(m));
    if (lent != nullptr) m.data = lent;
    return lent != nullptr;
}

void request::ended() noexcept {
    if (!error_ && continues() && !try_start()) {
        if (is_polled_) engine_->add_polled(*this);
        return;
    }
    if (has_steps_) engine_->give_room_back();
    if (relay::settle()) completed();
}

void request::interrupt_relayed(relay& r) noexcept {
    request& self = static_cast<request&>(r);
    self.stopped_ = true;
    self.interrupt();
}

// A probe ends in the next turn, and a receive when MPI has decided.
void request::interrupt() noexcept {
    if (interrupted_ || !can_cancel_) return;
    interrupted_ = true;
    if (!is_polled_ && waiting_ != 0) engine_->cancel(*this, 0);
}

}  // namespace coppice::mpi::internal
