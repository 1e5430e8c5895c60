// What the owner does if another process fails, and how the engine ends then.
#include <coppice/base/clock.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/internal/engine.hpp>
#include <coppice/mpi/internal/request.hpp>

#include "recovery.hpp"
#include "starting.hpp"

#include <chrono>
#include <utility>

namespace coppice::mpi::internal {

namespace {

// Memory that MPI may still access, which is never freed. A process has one engine at a time.
[[maybe_unused]] lent_memory* lent_for_ever = nullptr;
[[maybe_unused]] failure_watch* watch_for_ever = nullptr;

// MPI is one for the process, so this is too. Set once.
atomic<bool> is_given_up{false};

}  // namespace

bool has_given_up_mpi() noexcept {
    return is_given_up.load(relaxed);  // nothing else to see
}

void engine::fail(int rank) noexcept {
    is_given_up.store(true, relaxed);
    failed_rank_.store(rank, relaxed);  // the post publishes it
    post(news_);
    takeover& place = watch_->owner_place();
    while (!watch_->is_ending()) {
        const takeover::look found = place.watch_looks();
        if (found == takeover::look::taken) serve_in_place();
        if (found != takeover::look::again) return;
        const auto soon = monotonic_clock().now() + std::chrono::milliseconds(1);
        place.wait_for_known(soon.time_since_epoch().count());
    }
}

void engine::revoke(MPI_Comm over) noexcept {
    if (recovers_ && over != MPI_COMM_NULL) internal::revoke(over);
}

bool engine::report_failure(MPI_Comm over) noexcept {
    if (recovers_ && over != MPI_COMM_NULL) {
        run([this, over]() noexcept { revoke(over); });
        return true;
    }
    if (watch_ == nullptr || !watch_->has_others()) return false;
    watch_->report_failure();
    return true;
}

// What the owner was running makes a call that does not return. It runs again, and fails.
void engine::serve_in_place() noexcept {
    make_current();
    failed_ = true;
    operation* const op = std::exchange(running_, nullptr);
    op->complete(op);
    work();
    watch_->owner_place().set_ending(takeover::ending::done_by_watch);
}

void engine::fail_requests() noexcept {
    failed_ = true;
    watch_->owner_place().set_known();
    ended_requests ended;
    for (const slot& s : slots_) {
        if (s.which == 0 || s.owner->waiting_ == 1) ended.add(*s.owner);
    }
    for (request* const r : polled_) ended.add(*r);
    handles_.clear();
    slots_.clear();
    polled_.clear();
    for (request* r = ended.first; r != nullptr; r = r->next_ended) r->give_up();
    (void)ended.complete();
}

// The owner has ended, or is about to. If MPI may still access what is here, it stays.
void engine::end_watch() noexcept {
    const takeover::ending how = watch_->wait_for_end();
    using enum takeover::ending;
    if (how == done) {
        thread_.join();
    } else {
        thread_.detach();  // it sleeps in a call of MPI, or when that returns
    }
    watch_->join();
    if (how == done && !failed_) return;
    is_given_up.store(true, relaxed);  // it may have failed at its end, without fail()
    lent_for_ever = lent_.release();
    watch_for_ever = watch_.release();
}

}  // namespace coppice::mpi::internal
