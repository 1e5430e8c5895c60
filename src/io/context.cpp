// The turns of io/context.hpp.
#include <coppice/io/context.hpp>

#include <coppice/base/check.hpp>

#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <system_error>

namespace coppice::io {

namespace {

std::unique_ptr<ring> make_ring(backend kind, buffer_pool& buffers) {
    if (kind == backend::epoll) return make_epoll_ring(buffers);
    if (kind == backend::uring) return make_uring_ring(buffers);
    try {
        return make_uring_ring(buffers);
    } catch (const std::system_error&) {  // too old a kernel, or forbidden here
        return make_epoll_ring(buffers);
    }
}

}  // namespace

context::context(backend kind)
    : origin_(clock_.now()), turn_time_(origin_), ring_(make_ring(kind, buffers_)) {}

context::~context() {
    COPPICE_CHECK(!is_current(), "an io::context was destroyed inside its own run()");
    COPPICE_CHECK(guards_.load(relaxed) == 0, "an io::context was destroyed under a work_guard");
    calls_.wait();
    ending_ = true;
    context* const outer = std::exchange(thread_slot<context, context*>(), this);
    const bool entered = ring_->enter();
    for_each_descriptor([&](descriptor& d) {
        // Where the ring cannot be entered, its requests would hold the file, and its port, longer.
        if (!entered && !d.idle()) ::shutdown(d.fd, SHUT_RDWR);
        if (entered) cancel_pending(d);
    });
    do {
        wheel_.for_each([this](timer_entry& entry) {
            wheel_.cancel(entry);
            entry.expire(&entry);
        });
        run_deferred();
        take_posted();
        if (pending_ != 0) {
            if (entered) {
                ring_->poll(ring::forever);
            } else {
                ring_ = nullptr;
                end_pending();
            }
        }
    } while (pending_ != 0 || !deferred_.empty() || wheel_.size() != 0);
    calls_.wait();  // posts that the last completions caused elsewhere
    ring_ = nullptr;
    for_each_descriptor([](descriptor& d) { ::close(d.fd); });  // their owners are still there
    thread_slot<context, context*>() = outer;
}

void context::cancel_pending(descriptor& d) noexcept {
    if (d.reading != nullptr) ring_->cancel(*d.reading);
    if (d.writing != nullptr) ring_->cancel(*d.writing);
}

template <class Visit>
void context::for_each_descriptor(Visit visit) {
    for (std::size_t s = 0; s != slabs_.size(); ++s) {
        for (std::size_t i = 0; i != slab_descriptors; ++i) {
            if (slabs_[s][i].fd >= 0) visit(slabs_[s][i]);
        }
    }
}

// The ring is gone: what was pending will never complete by itself.
void context::end_pending() noexcept {
    for_each_descriptor([this](descriptor& d) {
        while (ring_operation* const op = d.reading != nullptr ? d.reading : d.writing) {
            op->result = -ECANCELED;
            finish(*op);
        }
    });
}

void context::run() {
    COPPICE_CHECK(current() == nullptr, "io::context::run() was called inside a running loop");
    COPPICE_CHECK(ring_->enter(),
                  "a context on io_uring must always run on the thread that ran it first");
    thread_slot<context, context*>() = this;
    while (turn()) {
    }
    thread_slot<context, context*>() = nullptr;
}

void context::stop() noexcept {
    const in_flight::entry call(calls_);
    stopping_.store(true, relaxed);  // relaxed: the wake below makes the loop look
    ring_->wake();
}

bool context::turn() noexcept {
    if (stopping_.load(relaxed)) return false;
    turn_time_ = clock_.now();
    take_posted();
    run_deferred();
    if (wheel_.size() != 0) wheel_.advance(tick_at(turn_time_ + duration(1)) - 1);
    if (!has_work()) return false;
    ring_->poll(wait_until());
    return true;
}

bool context::has_work() const noexcept {
    return pending_ != 0 || wheel_.size() != 0 || !deferred_.empty() || mailbox_.has_mail() ||
           // edge context.guard (acquire): sees what the last holder did
           guards_.load(acquire) != 0;
}

// How long the ring may wait: not at all while something is left to run.
std::optional<time_point> context::wait_until() noexcept {
    if (!deferred_.empty() || stopping_.load(relaxed) || !mailbox_.sleep()) return std::nullopt;
    const std::optional<std::uint64_t> tick = wheel_.next_tick();
    if (!tick) return ring::forever;
    return origin_ + duration(static_cast<duration::rep>(*tick << tick_bits));
}

// Runs what was deferred before; what that defers comes in the next turn.
void context::run_deferred() noexcept {
    operation_queue now(std::move(deferred_));
    while (operation* const op = now.pop_front()) {
        inline_left_ = inline_completions_max;
        op->complete(op);
    }
}

void context::take_posted() noexcept {
    for (operation* op = mailbox_.take(); op != nullptr;) {
        operation* const next = op->next;
        inline_left_ = inline_completions_max;
        op->complete(op);
        op = next;
    }
}

// The first tick that is not before `when`.
std::uint64_t context::tick_at(time_point when) const noexcept {
    if (when <= origin_) return 0;
    const auto since = static_cast<std::uint64_t>((when - origin_).count());
    return (since + (std::uint64_t{1} << tick_bits) - 1) >> tick_bits;
}

void context::arm(timer_entry& entry, time_point when) noexcept {
    wheel_.arm(entry, tick_at(when));
}

result<descriptor*> context::adopt(int fd) {
    if (free_ == nullptr) {
        slabs_.push_back(std::make_unique<descriptor[]>(slab_descriptors));
        for (std::size_t i = slab_descriptors; i-- != 0;) {
            descriptor& d = slabs_.back()[i];
            d.owner = this;
            d.next = free_;
            free_ = &d;
        }
    }
    descriptor& d = *free_;
    d.fd = fd;
    d.readable = d.hung_up = d.closing = false;
    d.writable = true;
    if (const std::error_code error = ring_->attach(d)) {
        d.fd = -1;
        return error;
    }
    free_ = d.next;
    return &d;
}

bool context::start(ring_operation& op) noexcept {
    descriptor& d = *op.on;
    COPPICE_CHECK(d.pending(op.code) == nullptr,
                  "two operations in one direction on one descriptor");
    COPPICE_CHECK(current() == nullptr || is_current(), "an operation was started on another loop");
    if (ending_ || d.closing) {
        op.result = -ECANCELED;
        return true;
    }
    op.cancelled = false;
    if (!ring_->start(op)) {
        d.pending(op.code) = &op;
        ++pending_;
        return false;
    }
    if (inline_left_ != 0) {
        --inline_left_;
        return true;
    }
    inline_left_ = inline_completions_max;
    defer(op);
    return false;
}

void context::finish(ring_operation& op) noexcept {
    descriptor& d = *op.on;
    d.pending(op.code) = nullptr;
    --pending_;
    if (d.closing || ending_) {
        // What came too late is dropped.
        if (op.result > 0 && op.code == opcode::receive_pooled) buffers_.give(op.data);
        if (op.result >= 0 && op.code == opcode::accept) ::close(op.result);
        op.result = -ECANCELED;
        if (d.closing && d.idle()) recycle(d);
    }
    inline_left_ = inline_completions_max;
    op.complete(&op);
}

void context::close(descriptor& d) noexcept {
    COPPICE_CHECK(!d.closing, "a descriptor was closed twice");
    d.closing = true;
    if (d.idle()) {
        recycle(d);
        return;
    }
    if (ring_ != nullptr) cancel_pending(d);
}

void context::recycle(descriptor& d) noexcept {
    if (ring_ != nullptr) {
        ring_->detach(d);
    } else {
        ::close(d.fd);
    }
    d.fd = -1;
    d.next = free_;
    free_ = &d;
}

}  // namespace coppice::io
