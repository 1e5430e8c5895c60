// The owner of MPI: how it starts, what it does in a turn, and how it rests.
#include <coppice/mpi/internal/engine.hpp>

#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/futex.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/internal/request.hpp>

#include "recovery.hpp"
#include "starting.hpp"

#include <sched.h>
#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include <sys/prctl.h>

namespace coppice::mpi::internal {

namespace {

thread_local const engine* engine_here = nullptr;

std::int64_t count_of(time_point t) noexcept {
    return t.time_since_epoch().count();
}

const char* name_of_level(int level) noexcept {
    if (level == MPI_THREAD_SINGLE) return "MPI_THREAD_SINGLE";
    if (level == MPI_THREAD_FUNNELED) return "MPI_THREAD_FUNNELED";
    return level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED" : "MPI_THREAD_MULTIPLE";
}

}  // namespace

engine::engine(duration failure_timeout)
    : lent_(std::make_unique<lent_memory>()),
      watch_(failure_timeout <= duration::zero()
                 ? nullptr
                 : std::make_unique<failure_watch>(*this, failure_timeout)) {
    if (!grow(0)) throw std::bad_alloc();
    thread_ = std::thread([this] { serve(); });
    ready_.wait();
    if (failed_step_ == start_step::none) return;
    thread_.join();
    throw_start_failure();
}

void engine::throw_start_failure() const {
    switch (failed_step_) {
        case start_step::find_mpi:
            throw std::system_error(
                failure_,
                "mpi::environment: MPI has ended in this process, and cannot start again. Make one "
                "environment, and keep it to the end of main()");
        case start_step::use_mpi:
            throw std::system_error(failure_,
                                    "mpi::environment: an earlier environment of this process "
                                    "has given MPI up");
        case start_step::check_level:
            throw std::system_error(
                failure_,
                "mpi::environment: a program that initializes MPI itself, or that watches for "
                "failures, needs MPI_THREAD_MULTIPLE; MPI has provided " +
                    std::string(name_of_level(level_)));
        case start_step::begin_watch:
            throw std::system_error(failure_,
                                    "mpi::environment: the watch for failures cannot begin here "
                                    "or in another process, or they give different timeouts");
        default:
            throw std::system_error(failure_, "mpi::environment: MPI cannot be initialized");
    }
}

void engine::end() noexcept {
    if (std::exchange(has_ended_, true)) return;
    COPPICE_CHECK(!is_current(), "mpi::environment ends on its own thread: end it in main()");
    // relaxed: the program orders their ends before this one
    COPPICE_CHECK(failed_rank() >= 0 || communicators_.load(relaxed) == 0,
                  "mpi::environment ends before a communicator, or a window, stop_source, "
                  "remote_functions, or work_sharing, which have one: end those first");
    check_process();
    struct last_call : operation {
        explicit last_call(engine& e) noexcept
            : operation([](operation* op) noexcept {
                  static_cast<last_call*>(op)->to.ending_ = true;
                  static_cast<last_call*>(op)->done.set();
              }),
              to(e) {}
        engine& to;
        block_latch done;
    } call(*this);
    post(call);
    call.done.wait();
    if (watch_ == nullptr) {
        thread_.join();
    } else {
        end_watch();
    }
    calls_.wait();  // the environment's own work has ended, so no further post begins
}

void engine::check_process() const noexcept {
    COPPICE_CHECK(::getpid() == process_,
                  "mpi: a child of fork() uses the environment of its parent: leave the child by "
                  "exec or _exit");
}

bool engine::is_current() const noexcept {
    return engine_here == this;
}

void engine::make_current() noexcept {
    engine_here = this;
}

void engine::post(operation& op) noexcept {
    // op may run, and let the program end the environment, before this returns
    const in_flight::entry call(calls_);
    if (mail_.push(op) == decltype(mail_)::pushed::quietly) return;
    // edge engine.ring (release): the push that found the owner asleep
    bell_.fetch_add(1, release);
    futex_wake_one(bell_);
}

void engine::drive(block_latch& done) noexcept {
    COPPICE_CHECK(done.is_set() || !is_current(),
                  "mpi: blocked on the thread that completes the operation; await it instead");
    done.wait();
}

bool engine::may_start_here() noexcept {
    if (!is_current() || taken_ != nullptr || mail_.has_mail() || starts_left_ == 0) return false;
    --starts_left_;
    return true;
}

bool engine::initialize() noexcept {
    if (!start_mpi()) return false;
    failed_step_ = start_step::none;
    handlers_.replace();
    recovers_ = watch_ == nullptr && has_fault_tolerance();
    if (watch_ == nullptr) return true;
    failure_ = error_of(watch_->begin());
    if (!failure_) return true;
    failed_step_ = start_step::begin_watch;
    handlers_.restore();
    if (is_ours_) ::MPI_Finalize();
    return false;
}

// A level that is too low is the same in all processes, so all end MPI.
bool engine::start_mpi() noexcept {
    int is_initialized = 0, has_ended = 0;
    ::MPI_Initialized(&is_initialized);
    ::MPI_Finalized(&has_ended);
    failed_step_ = start_step::find_mpi;
    failure_ = std::make_error_code(std::errc::operation_not_permitted);
    if (has_ended != 0) return false;
    failed_step_ = start_step::use_mpi;
    failure_ = errc::process_failed;
    if (has_given_up_mpi()) return false;
    failed_step_ = start_step::start_mpi;
    failure_ = errc::other;
    const int returned = is_initialized != 0
                             ? ::MPI_Query_thread(&level_)
                             : ::MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level_);
    if (returned != MPI_SUCCESS) return false;
    is_ours_ = is_initialized == 0;
    failed_step_ = start_step::check_level;
    if (level_ == MPI_THREAD_MULTIPLE || (is_ours_ && watch_ == nullptr)) return true;
    if (is_ours_) ::MPI_Finalize();
    return false;
}

void engine::error_handlers::replace() noexcept {
    ::MPI_Comm_get_errhandler(MPI_COMM_WORLD, &of_world);
    ::MPI_Comm_get_errhandler(MPI_COMM_SELF, &of_self);
    ::MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    ::MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
}

void engine::error_handlers::restore() noexcept {
    ::MPI_Comm_set_errhandler(MPI_COMM_WORLD, of_world);
    ::MPI_Comm_set_errhandler(MPI_COMM_SELF, of_self);
    ::MPI_Errhandler_free(&of_world);
    ::MPI_Errhandler_free(&of_self);
}

void engine::serve() noexcept {
    engine_here = this;
    // A pause is often shorter than the 50 us by which the kernel may otherwise lengthen it.
    ::prctl(PR_SET_TIMERSLACK, 1'000UL, 0UL, 0UL, 0UL);
    const bool works = initialize();
    const bool is_ours = is_ours_;
    error_handlers handlers = handlers_;
    failure_watch* const watch = watch_.get();
    ready_.set();  // after a failure the engine may be gone
    if (!works) return;
    work();
    const bool is_whole = watch == nullptr || (!failed_ && watch->end());
    if (!is_whole) failed_ = true;
    if (watch != nullptr && is_whole) watch->owner_place().set_ending(takeover::ending::finalizes);
    if (is_whole && is_ours) ::MPI_Finalize();
    if (is_whole && !is_ours) handlers.restore();
    if (watch != nullptr) watch->owner_place().set_ending(takeover::ending::done);
}

void engine::work() noexcept {
    while (true) {
        if (turn()) {
            idle_since_ = 0;
            idle_turns_ = 0;
            doze_ = 0;
            continue;
        }
        if (!is_idle()) {
            rest();
        } else if (!ending_) {
            sleep_until(count_of(time_point::max()));
        } else if (!mail_.has_mail()) {
            if (watch_ == nullptr || failed_ || watch_->have_all_come()) return;
            rest();
        }
    }
}

// Something is outstanding, and nothing has ended in this turn. Most answers come within a
// microsecond, and the clock and the yield take longer than a turn. So they are left out of most,
// unless many requests look for messages: then a turn takes longer than the clock.
void engine::rest() noexcept {
    const bool has_slept = doze_ != 0;
    idle_turns_ += 1 + static_cast<int>(polled_.size() / 8);
    if (idle_turns_ < (has_slept ? 1 : turns_of_span)) {
        // The answer to a small message comes within a few turns. A message of more cache lines is
        // written faster if the owner looks less often.
        if (idle_turns_ > turns_without_pause) spin_hint();
        return;
    }
    idle_turns_ = 0;
    const std::int64_t now = count_of(monotonic_clock().now());
    if (idle_since_ == 0 || moves_data(now - span_began_, has_slept)) {
        idle_since_ = now;
        doze_ = 0;
        is_crowded_ = false;
    }
    const bool spins = now - idle_since_ < (is_crowded_ ? spin_time_crowded : spin_time);
    if (spins) {
        ::sched_yield();  // another process of the job may share the core
    } else {
        doze_ = std::min((now - idle_since_) / doze_part, doze_max);
        sleep_until(std::min(now + doze_, count_of(earliest_)));
    }
    span_began_ = count_of(monotonic_clock().now());
    if (spins && span_began_ - now > yield_alone) is_crowded_ = true;
}

// MPI moves a large message piece by piece, and only while it is called. It does not tell of that,
// but turns that move data take longer than the shortest. Returns true if this span did. A wrong
// answer costs a sleep or a spin. The shortest grows at each, so that it is not wrong for long if
// all turns have become longer, for example because more requests wait.
bool engine::moves_data(std::int64_t took, bool has_slept) noexcept {
    // The first turn after a sleep finds cold caches.
    const std::int64_t more = has_slept ? 20'000 : 1'000 + shortest_ / 2;
    const bool is_long = took > shortest_ + more;
    if (is_long) {
        shortest_ += shortest_ / 16 + 1;
    } else if (!has_slept) {
        shortest_ = std::min(shortest_, took);
    }
    return is_long;
}

void engine::sleep_until(std::int64_t nanoseconds) noexcept {
    // A ring that is counted here was for a push that came before, so the mailbox refuses to sleep.
    // A later ring changes the word, so the futex does not sleep.
    // edge engine.ring (acquire): the push that was rung for
    const std::uint32_t rung = bell_.load(acquire);
    if (!mail_.sleep()) return;
    if (nanoseconds == count_of(time_point::max())) {
        futex_wait(bell_, rung);
    } else {
        futex_wait_until(bell_, rung, nanoseconds);
    }
}

// Returns true if anything was posted or has ended.
bool engine::turn() noexcept {
    starts_left_ = starts_max;
    tests_starts_ = true;
    if (taken_ == nullptr) taken_ = mail_.take();  // otherwise the rest of a turn that was cut off
    bool did = taken_ != nullptr;
    while (taken_ != nullptr) {
        operation* const op = taken_;
        taken_ = op->next;
        running_ = op;
        op->complete(op);
    }
    running_ = nullptr;
    if (failed_) return did;
    if (ending_) {
        for_each_request([](request& r) noexcept { r.interrupt(); });
    } else if (earliest_ != time_point::max() && earliest_ <= monotonic_clock().now()) {
        expire();
    }
    // The owner does not sleep before: it sleeps after a whole span in which nothing has started.
    if (turns_to_listen_ != 0 && --turns_to_listen_ == 0)
        for_each_request([](request& r) noexcept { r.listen(); });
    did = test() || did;
    return (!polled_.empty() && look()) || did;
}

template <class F>
void engine::for_each_request(F f) noexcept {
    for (const slot& s : slots_) f(*s.owner);
    for (request* const r : polled_) f(*r);
}

void engine::expect(time_point deadline) noexcept {
    earliest_ = std::min(earliest_, deadline);
}

void engine::expire() noexcept {
    const time_point now = monotonic_clock().now();
    earliest_ = time_point::max();
    for_each_request([this, now](request& r) noexcept {
        if (!r.can_cancel_ || r.interrupted_) return;
        if (r.deadline_ > now) {
            expect(r.deadline_);
        } else {
            r.stopped_ = true;
            r.interrupt();
        }
    });
}

// Grows by doubling, so that a program of a steady number of requests does not allocate.
bool engine::grow(std::size_t wanted) noexcept {
    const std::size_t capacity = std::max<std::size_t>(64, 2 * wanted);
    try {
        handles_.reserve(capacity);
        slots_.reserve(capacity);
        indices_.resize(capacity);
        statuses_.resize(capacity);
        polled_.reserve(capacity);  // the last, because it tells that all are large enough
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

void engine::add(request& owner, int which, MPI_Request handle) noexcept {
    tests_starts_ = false;
    owner.index_[which] = handles_.size();
    handles_.push_back(handle);
    slots_.push_back({&owner, which});
}

void engine::add_polled(request& r) noexcept {
    polled_.push_back(&r);
}

void engine::cancel(const request& owner, int which) noexcept {
    if (failed_) return;
    const std::size_t at = owner.index_[which];
    if (at < slots_.size() && slots_[at].owner == &owner && slots_[at].which == which)
        ::MPI_Cancel(&handles_[at]);
}

void engine::note(std::size_t at, const MPI_Status& status, int error,
                  ended_requests& ended) noexcept {
    request& owner = *slots_[at].owner;
    handles_[at] = MPI_REQUEST_NULL;
    owner.note(slots_[at].which, status, error);
    if (!owner.is_over()) return;
    ended.add(owner);
}

void engine::ended_requests::add(request& r) noexcept {
    r.next_ended = nullptr;
    *last = &r;
    last = &r.next_ended;
}

// Their completions start further requests, so the arrays must be whole again.
bool engine::ended_requests::complete() noexcept {
    const bool some = first != nullptr;
    for (request* r = first; r != nullptr;) {
        request& each = *r;
        r = each.next_ended;
        each.ended();
    }
    return some;
}

// Returns true if a request has ended.
bool engine::test() noexcept {
    if (handles_.empty()) {
        int found = 0;  // the call is for the progress that MPI makes in it
        if (windows_ != 0)
            ::MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
        return false;
    }
    ended_requests ended;
    // If requests have failed, Open MPI 5.0 frees others in a call for many, and does not tell so:
    // sends on a revoked communicator that go on.
    const bool each = handles_.size() == 1 || recovers_;
    const std::size_t noted = each ? test_each(ended) : test_some(ended);
    if (noted == 0) return false;
    if (noted == handles_.size()) {
        handles_.clear();
        slots_.clear();
    } else {
        compact();
    }
    return ended.complete();
}

// Both return how many handles have ended.
std::size_t engine::test_some(ended_requests& ended) noexcept {
    int done = 0;
    const int returned = ::MPI_Testsome(static_cast<int>(handles_.size()), handles_.data(), &done,
                                        indices_.data(), statuses_.data());
    // otherwise the implementation does not say which request has failed
    if (returned != MPI_SUCCESS && returned != MPI_ERR_IN_STATUS) return test_each(ended);
    if (done <= 0) return 0;  // none, or MPI_UNDEFINED
    const auto noted = static_cast<std::size_t>(done);
    for (std::size_t i = 0; i != noted; ++i) {
        const int error = returned == MPI_SUCCESS ? MPI_SUCCESS : statuses_[i].MPI_ERROR;
        note(static_cast<std::size_t>(indices_[i]), statuses_[i], error, ended);
    }
    return noted;
}

// For one handle it takes less time than the call for many.
std::size_t engine::test_each(ended_requests& ended) noexcept {
    std::size_t noted = 0;
    for (std::size_t at = 0; at != handles_.size(); ++at) {
        int over = 0;
        const int error = ::MPI_Test(&handles_[at], &over, statuses_.data());
        if (error == MPI_SUCCESS && over == 0) continue;
        if (slots_[at].owner->stays(error, over, handles_[at])) continue;
        note(at, statuses_.front(), error, ended);
        ++noted;
    }
    return noted;
}

void engine::compact() noexcept {
    std::size_t kept = 0;
    for (std::size_t at = 0; at != handles_.size(); ++at) {
        if (handles_[at] == MPI_REQUEST_NULL) continue;
        handles_[kept] = handles_[at];
        slots_[kept] = slots_[at];
        slots_[kept].owner->index_[slots_[kept].which] = kept;
        ++kept;
    }
    handles_.resize(kept);
    slots_.resize(kept);
}

// Tries what waits for a message to come. Returns true if a request has ended.
bool engine::look() noexcept {
    ended_requests ended;
    std::size_t kept = 0;
    for (request* const r : polled_) {
        if (r->interrupted_) {
            r->is_polled_ = false;
            r->end_canceled();
        } else if (!r->try_start()) {
            if (r->is_polled_) polled_[kept++] = r;
            continue;
        }
        ended.add(*r);
    }
    polled_.resize(kept);
    return ended.complete();
}

}  // namespace coppice::mpi::internal
