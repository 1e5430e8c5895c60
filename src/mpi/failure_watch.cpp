// The watch for processes that have failed: beats around a ring, and news of a failure.
#include <coppice/mpi/internal/failure_watch.hpp>

#include <coppice/base/internal/futex.hpp>
#include <coppice/mpi/internal/engine.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <new>

namespace coppice::mpi::internal {

namespace {

constexpr int watch_tag = 0;
constexpr duration period_min = std::chrono::milliseconds(1);
constexpr duration period_max = std::chrono::hours(6);

std::int64_t nanoseconds_of(time_point t) noexcept {
    return t.time_since_epoch().count();
}

}  // namespace

failure_watch::failure_watch(engine& of, duration timeout)
    : engine_(&of),
      period_(std::clamp(timeout / silent_max, period_min, period_max)),
      thread_([this] { watch(); }) {}

failure_watch::~failure_watch() {
    state_.store(ends, release);  // edge failure_watch.state (release): nothing else to see
    futex_wake_all(state_);
    join();
}

int failure_watch::begin() noexcept {
    int returned = ::MPI_Comm_dup(MPI_COMM_WORLD, &over_);
    if (returned != MPI_SUCCESS) return returned;
    ::MPI_Comm_set_errhandler(over_, MPI_ERRORS_RETURN);
    ::MPI_Comm_rank(over_, &rank_);
    ::MPI_Comm_size(over_, &size_);
    // The others would declare a process failed that cannot watch, or that sends beats too rarely.
    std::array<std::int64_t, 3> most{MPI_SUCCESS, period_.count(), -period_.count()};
    try {
        telling_.assign(static_cast<std::size_t>(size_), MPI_REQUEST_NULL);
    } catch (const std::bad_alloc&) {
        most[0] = MPI_ERR_NO_MEM;
    }
    returned = ::MPI_Allreduce(MPI_IN_PLACE, most.data(), 3, MPI_INT64_T, MPI_MAX, over_);
    if (returned == MPI_SUCCESS) returned = static_cast<int>(most[0]);
    if (returned == MPI_SUCCESS && most[1] != -most[2]) returned = MPI_ERR_ARG;
    if (returned != MPI_SUCCESS) {
        ::MPI_Comm_free(&over_);
        return returned;
    }
    // edge failure_watch.state (release): the communicator is made
    state_.store(watching, release);
    futex_wake_all(state_);
    return MPI_SUCCESS;
}

bool failure_watch::have_all_come() noexcept {
    if (has_come_) return true;
    int done = 0;
    if (meeting_ == MPI_REQUEST_NULL) ::MPI_Ibarrier(over_, &meeting_);
    ::MPI_Test(&meeting_, &done, MPI_STATUS_IGNORE);
    has_come_ = done != 0;
    return has_come_;
}

bool failure_watch::end() noexcept {
    state_.store(ends, release);  // edge failure_watch.state (release): nothing else to see
    futex_wake_all(state_);
    join();
    if (failed_ < 0) ::MPI_Comm_free(&over_);
    return failed_ < 0;
}

takeover::ending failure_watch::wait_for_end() noexcept {
    using enum takeover::ending;
    time_point until = time_point::max();
    while (true) {
        const takeover::ending now = takeover_.how_ended();
        if (now != works && now != finalizes) return now;
        if (now == works) {
            takeover_.sleep_while(now);
            continue;
        }
        const time_point present = monotonic_clock().now();
        if (until == time_point::max()) until = present + silent_max * period_;
        if (present >= until) return timed_out;
        takeover_.sleep_while(now, nanoseconds_of(until));
    }
}

void failure_watch::watch() noexcept {
    while (true) {
        // edge failure_watch.state (acquire): sees the communicator
        const std::uint32_t state = state_.load(acquire);
        if (state == ends && over_ == MPI_COMM_NULL) return;
        // A thread that begins after the end says farewell too: the next process waits for it.
        if (state != waiting) break;
        futex_wait(state_, state);
    }
    if (size_ == 1) return;
    listen();
    while (true) {
        // edge failure_watch.state (acquire): nothing else to see
        const std::uint32_t state = state_.load(acquire);
        take_messages();
        if (state == ends && has_said_farewell() && has_farewell_) break;
        if (is_due()) {
            if (!has_farewell_ && ++silent_ > silent_max && failed_ < 0)
                failed_ = (rank_ + size_ - 1) % size_;
            if (out_.kind != what::farewell) send(what::beat);
        }
        // relaxed: nothing else to see
        if (failed_ < 0 && is_reported_.load(relaxed)) failed_ = rank_;
        if (failed_ >= 0) {
            tell_others();
            if (state != ends) engine_->fail(failed_);
            return;
        }
        sleep(state);
    }
    ::MPI_Cancel(&receiving_);
    ::MPI_Wait(&receiving_, MPI_STATUS_IGNORE);
}

// Returns true once in a period. A thread that comes late, because the process was suspended or the
// machine is busy, misses periods and does not make up for them.
bool failure_watch::is_due() noexcept {
    const time_point now = monotonic_clock().now();
    if (now < next_) return false;
    next_ = now + period_;
    return true;
}

bool failure_watch::has_said_farewell() noexcept {
    if (out_.kind != what::farewell) send(what::farewell);
    int done = 0;
    if (sending_ != MPI_REQUEST_NULL) ::MPI_Test(&sending_, &done, MPI_STATUS_IGNORE);
    return out_.kind == what::farewell && sending_ == MPI_REQUEST_NULL;
}

// Sends nothing if the message before has not left: the next process stands still then, which the
// one after it finds.
void failure_watch::send(what kind) noexcept {
    int done = 1;
    if (sending_ != MPI_REQUEST_NULL) ::MPI_Test(&sending_, &done, MPI_STATUS_IGNORE);
    if (done == 0) return;
    out_ = {kind, rank_};
    ::MPI_Isend(&out_, sizeof out_, MPI_BYTE, (rank_ + 1) % size_, watch_tag, over_, &sending_);
    ::MPI_Test(&sending_, &done, MPI_STATUS_IGNORE);
}

void failure_watch::listen() noexcept {
    ::MPI_Irecv(&in_, sizeof in_, MPI_BYTE, MPI_ANY_SOURCE, watch_tag, over_, &receiving_);
}

void failure_watch::take_messages() noexcept {
    while (receiving_ != MPI_REQUEST_NULL) {
        int done = 0;
        if (::MPI_Test(&receiving_, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
        if (done == 0) return;
        silent_ = 0;
        if (in_.kind == what::failed && failed_ < 0) failed_ = in_.rank;
        if (in_.kind == what::farewell) has_farewell_ = true;
        listen();
    }
    // MPI receives nothing any longer.
    if (failed_ < 0) failed_ = (rank_ + size_ - 1) % size_;
}

// Leaves after one period, since the failed process may not be the only one.
void failure_watch::tell_others() noexcept {
    news_ = {what::failed, failed_};
    for (int rank = 0; rank != size_; ++rank) {
        if (rank == rank_ || rank == failed_) continue;
        ::MPI_Isend(&news_, sizeof news_, MPI_BYTE, rank, watch_tag, over_,
                    &telling_[static_cast<std::size_t>(rank)]);
    }
    const time_point until = monotonic_clock().now() + period_;
    int done = 0;
    while (done == 0 && monotonic_clock().now() < until) {
        ::MPI_Testall(size_, telling_.data(), &done, MPI_STATUSES_IGNORE);
        if (done == 0) std::this_thread::sleep_for(period_min);
    }
}

// Until the next period, or shortly if the job ends.
void failure_watch::sleep(std::uint32_t state) noexcept {
    if (state == ends) {
        std::this_thread::sleep_for(period_min);
        return;
    }
    // edge failure_watch.state (acquire): nothing else to see
    while (state_.load(acquire) == state && monotonic_clock().now() < next_)
        futex_wait_until(state_, state, nanoseconds_of(next_));
}

}  // namespace coppice::mpi::internal
