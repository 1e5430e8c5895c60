// The turns of io/internal/event_loop.hpp, and its operations.
#include <coppice/io/internal/event_loop.hpp>

#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/no_fork_context.hpp>
#include <coppice/base/internal/put_off.hpp>
#include <coppice/base/saturating.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/simulation.hpp>

#include "broken_pipe.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace coppice::io::internal {

namespace {

std::unique_ptr<ring> make_ring(backend kind, buffer_pool& buffers, simulation* world,
                                uring_calls& calls) {
    switch (kind) {
        case backend::epoll:
            return make_epoll_ring(buffers);
        case backend::uring:
            return make_uring_ring(buffers, calls);
        case backend::sim:
            return make_sim_ring(buffers, *world);
        case backend::automatic:
            break;
    }
    try {
        return make_uring_ring(buffers, calls);
    } catch (const std::system_error&) {  // the kernel is too old, or forbids io_uring here
        return make_epoll_ring(buffers);
    }
}

}  // namespace

event_loop::event_loop(std::unique_ptr<simulation> own, simulation* world, uring_calls& calls,
                       backend kind)
    : world_(std::move(own)),
      ring_(make_ring(kind, buffers_, world_ != nullptr ? world_.get() : world, calls)),
      system_(&ring_->system()),
      ring_clock_(&ring_->time()),
      origin_(ring_clock_->now()),
      turn_time_(origin_) {}

event_loop::~event_loop() = default;

void event_loop::end() noexcept {
    COPPICE_CHECK(!is_current(),
                  "an io::context was destroyed inside its own run(): let run() return first");
    COPPICE_CHECK(guards_.load(relaxed) == 0,
                  "an io::context was destroyed under a work_guard: destroy the guard first");
    const broken_pipe_block signals;
    const no_fork_context none;
    calls_.wait();
    ownership_.take([this] { ring_->wake(); });
    event_loop* const outer = std::exchange(thread_slot<event_loop, event_loop*>(), this);
    const bool moved = ring_->enter(*this);
    for_each_descriptor([&](descriptor& d) {
        // A request in another thread's ring would keep the file, and its port, open for longer.
        if (moved && !d.idle()) (void)system_->shutdown(d.fd, shutdown_direction::both);
    });
    cancel_everything();
    ending_ = true;   // for callers that break the rule and start something from here on
    drivers_.wait();  // their operations have just ended
    take_posted();
    while (!deferred_.empty()) run_deferred();
    ring_ = nullptr;
    // their owners may outlive the context
    for_each_descriptor([this](descriptor& d) { system_->close(d.fd); });
    thread_slot<event_loop, event_loop*>() = outer;
}

void event_loop::cancel_everything() noexcept {
    ending_ = true;
    for_each_descriptor(
        [this](descriptor& d) { d.for_each_pending([this](auto& op) { ring_->cancel(op); }); });
    do {
        turn_time_known_ = false;
        wheel_.expire_all();
        run_deferred();
        take_posted();
        if (pending_ != 0)
            ring_->poll(mailbox_.sleep() ? ring::forever : std::optional<time_point>());
        calls_.wait();  // posts by other threads that the last completions caused
    } while (pending_ != 0 || has_work(until_idle::alone));
    ending_ = false;
}

template <class Visit>
void event_loop::for_each_descriptor(Visit visit) {
    const std::lock_guard lock(descriptors_);  // other threads may be in adopt()
    for (std::size_t s = 0; s != slabs_.size(); ++s) {
        for (std::size_t i = 0; i != slab_descriptors; ++i) {
            if (slabs_[s][i].fd >= 0) visit(slabs_[s][i]);
        }
    }
}

void event_loop::restart_pending(void (*begin)(ring_operation&, void*), void* ring) noexcept {
    for_each_descriptor(
        [&](descriptor& d) { d.for_each_pending([&](ring_operation& op) { begin(op, ring); }); });
}

void event_loop::end_pending() noexcept {
    const broken_pipe_block signals;
    const no_fork_context none;
    ownership_.take([this] { ring_->wake(); });
    thread_slot<event_loop, event_loop*>() = this;
    cancel_everything();
    thread_slot<event_loop, event_loop*>() = nullptr;
    ownership_.leave();
}

bool event_loop::run_until(time_point limit, until_idle guards) {
    COPPICE_CHECK(
        current() == nullptr,
        "io::context::run() was called inside a running loop: await the work there instead");
    const broken_pipe_block signals;
    const no_fork_context none;  // the loop's work does not belong to the caller
    ownership_.take([this] { ring_->wake(); });
    (void)ring_->enter(*this);
    thread_slot<event_loop, event_loop*>() = this;
    turn_time_known_ = false;
    bool more = true;
    bool late = false;
    while (more && !late) {
        more = turn(limit, guards);
        late = more && limit != time_point::max() && now() >= limit;
    }
    thread_slot<event_loop, event_loop*>() = nullptr;
    ownership_.leave();
    return late;
}

void event_loop::drive(block_latch& done) noexcept {
    const in_flight::entry driver(drivers_);
    const no_fork_context none;  // the waiting thread runs other callers' operations, too
    if (is_current()) {          // inside a completion
        while (!done.is_set()) (void)turn(time_point::max(), until_idle::alone, &done);
        return;
    }
    const broken_pipe_block signals;
    while (ownership_.await_turn(done)) {
        event_loop* const outer = std::exchange(thread_slot<event_loop, event_loop*>(), this);
        (void)ring_->enter(*this);
        turn_time_known_ = false;
        // A file operation cannot move to the next thread that runs the loop.
        while (files_ != 0 || (!done.is_set() && !ownership_.is_wanted())) {
            (void)turn(time_point::max(), until_idle::alone, files_ == 0 ? &done : nullptr);
        }
        thread_slot<event_loop, event_loop*>() = outer;
        ownership_.leave();
    }
}

void event_loop::stop() noexcept {
    const in_flight::entry call(calls_);
    stopping_.store(true, relaxed);  // relaxed: the wake below makes the loop look
    ring_->wake();
}

bool event_loop::turn(time_point limit, until_idle guards, const block_latch* done) noexcept {
    if (is_stopping(guards)) return false;
    take_posted();
    run_deferred();
    if (wheel_.size() != 0) wheel_.advance(tick_at(saturating_add(turn_time(), duration(1))) - 1);
    if (done != nullptr ? done->is_set() : !has_work(guards)) return false;
    const bool late = is_late();
    const std::optional<time_point> until = wait_until(limit, guards, late);
    turn_time_known_ = false;  // the ring may sleep
    ring_->poll(until);
    return true;
}

bool event_loop::has_work(until_idle guards) const noexcept {
    return pending_ > background_ || wheel_.size() != 0 || !deferred_.empty() ||
           mailbox_.has_mail() ||
           // edge context.guard (acquire): sees what the last holder did
           (guards == until_idle::with_guards && guards_.load(acquire) != 0);
}

// Returns how long the ring may wait: not at all while something is left to run, or after a late
// turn.
std::optional<time_point> event_loop::wait_until(time_point limit, until_idle guards,
                                                 bool late) noexcept {
    if (!deferred_.empty() || is_stopping(guards) || put_off_work::run_one() || late)
        return std::nullopt;
    if (!mailbox_.sleep()) return std::nullopt;
    const std::optional<std::uint64_t> tick = wheel_.next_tick();
    if (!tick) return limit;  // ring::forever if there is none
    return std::min(
        limit,
        saturating_add(origin_, duration(saturating_cast<duration::rep>(*tick << tick_bits))));
}

// Returns true if this turn has taken long. The loop then looks once without sleeping, so that what
// became ready during the turn can be told from what comes during a sleep. The turn counts from its
// first reading of the clock, and as short without one.
bool event_loop::is_late() noexcept {
    const duration taken = turn_time_known_ ? now() - turn_time_ : duration::zero();
    lateness_ = taken >= long_turn ? taken : duration::zero();
    return lateness_ != duration::zero();
}

// Runs what was deferred before this call. What that defers runs in the next turn.
void event_loop::run_deferred() noexcept {
    running_.append(std::move(deferred_));
    run_queued();
}

void event_loop::take_posted() noexcept {
    for (operation* op = mailbox_.take(); op != nullptr;) {
        operation* const next = op->next;
        running_.push_back(op);
        op = next;
    }
    run_queued();
}

// If a completion runs turns itself (block does), those turns run the rest of this one.
void event_loop::run_queued() noexcept {
    while (operation* const op = running_.pop_front()) {
        begin_row();
        op->complete(op);
    }
}

// Returns the first tick that is not before `when`.
std::uint64_t event_loop::tick_at(time_point when) const noexcept {
    if (when <= origin_) return 0;
    const auto since = static_cast<std::uint64_t>((when - origin_).count());
    return (since + (std::uint64_t{1} << tick_bits) - 1) >> tick_bits;
}

void event_loop::arm(timer_entry& entry, time_point when) noexcept {
    wheel_.arm(entry, tick_at(when));
}

result<descriptor*> event_loop::adopt(int fd, bool waits) noexcept {
    const std::lock_guard lock(descriptors_);
    if (free_ == nullptr && !grow()) return std::errc::not_enough_memory;
    descriptor& d = *static_cast<descriptor*>(free_);
    d.fd = fd;
    d.readable = d.hung_up = d.closing = d.attached = false;
    d.writable = true;
    d.waits = waits;
    // On another thread, the first operation attaches it: its events belong to the loop.
    if (is_current()) {
        if (const std::error_code error = attach(d)) {
            d.fd = -1;
            return error;
        }
    }
    free_ = d.next;
    return &d;
}

std::error_code event_loop::attach(descriptor& d) noexcept {
    const std::error_code error = ring_->attach(d, d.waits);
    d.attached = !error;
    return error;
}

bool event_loop::grow() noexcept {
    try {
        slabs_.push_back(std::make_unique<descriptor[]>(slab_descriptors));
    } catch (const std::bad_alloc&) {
        return false;
    }
    for (std::size_t i = slab_descriptors; i-- != 0;) {
        descriptor& d = slabs_.back()[i];
        d.owner = this;
        d.next = free_;
        free_ = &d;
    }
    return true;
}

bool event_loop::start(ring_operation& op) noexcept {
    COPPICE_CHECK(is_current(), "a ring's operation was started off its loop");
    return start_here(op);
}

void event_loop::finish(ring_operation& op) noexcept {
    descriptor& d = *op.on;
    if (is_file_operation(op.code)) [[unlikely]] {
        decltype(d.file_operations)::erase(op);
        --files_;
    } else {
        d.slot(op.code) = nullptr;
    }
    --pending_;
    if (d.closing || ending_) [[unlikely]] {
        // Drops what arrived too late.
        if (op.result > 0 && op.code == opcode::receive_pooled) buffers_.give(op.data);
        if (op.result >= 0 && op.code == opcode::accept) system_->close(op.result);
        op.result = -ECANCELED;
        if (d.closing && d.idle()) recycle(d);
    }
    begin_row();
    op.complete(&op);
}

void event_loop::close(descriptor& d) noexcept {
    if (is_current()) {
        close_here(d);
    } else if (ownership_.try_take()) {
        close_here(d);
        ownership_.leave();
    } else {
        post(d);
    }
}

void descriptor::close_late(operation* op) noexcept {
    descriptor& d = *static_cast<descriptor*>(op);
    d.owner->close_here(d);
}

void event_loop::close_here(descriptor& d) noexcept {
    COPPICE_CHECK(!d.closing, "a descriptor was closed twice: the first owner has closed it");
    ++d.generation;  // operations that were posted and not yet started will find it closed
    if (d.idle()) {
        recycle(d);
        return;
    }
    d.closing = true;
    d.for_each_pending([this](auto& op) { ring_->cancel(op); });
}

void event_loop::recycle(descriptor& d) noexcept {
    ring_->detach(d);
    d.name.reset();
    const std::lock_guard lock(descriptors_);
    d.fd = -1;
    d.next = free_;
    free_ = &d;
}

}  // namespace coppice::io::internal
