// The class context without the timed side of its scheduler; for context.hpp and what that needs.
#pragma once

#include <coppice/base/atomic.hpp>
#include <coppice/base/check.hpp>
#include <coppice/base/clock.hpp>
#include <coppice/base/in_flight.hpp>
#include <coppice/base/internal.hpp>
#include <coppice/exec/scheduled_sender.hpp>
#include <coppice/exec/timed_scheduler.hpp>
#include <coppice/io/buffer.hpp>
#include <coppice/io/mailbox.hpp>
#include <coppice/io/operation.hpp>
#include <coppice/io/ownership.hpp>
#include <coppice/io/ring.hpp>
#include <coppice/io/timer_wheel.hpp>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <mutex>
#include <system_error>
#include <vector>

namespace coppice::io {

class simulation;
class timed_sender;

namespace internal {

struct descriptor;

}  // namespace internal

// Threads: post(), stop(), drive(), adopt(), close(), work_guard, the scheduler, and the start of
// operations by any; run() by any, one after the other; everything else by the thread that runs the
// loop, or by one thread while none does.
class [[gnu::visibility("default")]] context : immovable {
public:
    // Errors: std::system_error if the asked backend is missing or forbidden here; `automatic`
    // takes io_uring where it works as we need it (kernel 6.1), and epoll elsewhere. `sim` has a
    // simulation of its own, with seed 1.
    explicit context(backend kind = backend::automatic);
    // For tests: where it takes io_uring, it does so by these calls, which outlive it.
    explicit context(internal::uring_calls& calls, backend kind = backend::uring);
    // Runs in a simulated world, which has one context at a time and outlives it.
    explicit context(simulation& world);
    ~context();

    // Blocks: as said above. Errors: none; exceptions must not leave completions.
    void run();
    // Runs for `time` at most. True: the time ended it, and there is more to do.
    bool run_for(internal::duration time);
    // Runs until nothing is pending, for `limit` at most, then ends what is left, and what that
    // starts, with operation_canceled. True: everything ended by itself. Ignores stop() and guards.
    bool drain(internal::duration limit);
    // Returns when `done` is set, by a completion of this context. Runs the loop meanwhile if the
    // calling thread does so already (inside a completion) or nobody does; otherwise it sleeps, and
    // takes over when whoever runs the loop leaves it. Ignores stop(). For block.
    void drive(block_latch& done) noexcept;
    // Makes run() return after the completion that is under way. Sticky until restart().
    void stop() noexcept;
    // Takes back stop(), also one that run() has not seen: for between two runs.
    void restart() noexcept { stopping_.store(false, internal::relaxed); }
    bool stopped() const noexcept { return stopping_.load(internal::relaxed); }
    backend kind() const noexcept { return ring_->kind(); }

    // Keeps run() from returning for want of work.
    class work_guard;

    // Awaiting schedule() moves a coroutine to the loop.
    class scheduler;
    scheduler get_scheduler() noexcept;

    // The context that this thread runs, or nullptr.
    static context* current() noexcept { return internal::thread_slot<context, context*>(); }
    bool is_current() const noexcept { return current() == this; }

    // Runs op.complete() on the loop. Threads: any. Cost: one compare-exchange, and a system call
    // if the loop sleeps. No allocation.
    void post(operation& op) noexcept {
        // op may run, and end the loop, before this returns
        const internal::in_flight::entry call(calls_);
        if (mailbox_.push(op) == mailbox<operation>::pushed::wake_the_loop) ring_->wake();
    }
    // Runs op.complete() in the next turn.
    void defer(operation& op) noexcept { deferred_.push_back(&op); }

    // The time of the context's clock: CLOCK_MONOTONIC, or the simulation's. Threads: any.
    internal::time_point now() const noexcept { return ring_clock_->now(); }
    // A time since the loop last waited, the same until it waits again; up to a turn old. Cost:
    // reads the clock when asked for the first time.
    internal::time_point turn_time() noexcept {
        if (!std::exchange(turn_time_known_, true)) turn_time_ = now();
        return turn_time_;
    }
    // Calls entry.expire() on the loop at the first tick (of about 0.26 ms) that is not before
    // `when`.
    void arm(timer_entry& entry, internal::time_point when) noexcept;
    void disarm(timer_entry& entry) noexcept { wheel_.cancel(entry); }
    // True in completions that the destructor forces: they report operation_canceled.
    bool ending() const noexcept { return ending_; }

    // For sockets and files: takes an open, non-blocking file in, and owns it on success.
    // `waits`: reading and writing it may have to wait, which regular files never do.
    internal::result<internal::descriptor*> adopt(int fd, bool waits = true) noexcept;
    // Starts an operation. True: it has ended, and complete() will not be called.
    [[nodiscard]] bool start(ring_operation& op) noexcept;
    // The same for who is known to be on the loop.
    [[nodiscard]] bool start_here(ring_operation& op) noexcept;
    // Closes the file: at once, or, while another thread runs the loop, in its next turn. Its
    // pending operations complete with operation_canceled in a coming turn.
    void close(internal::descriptor& d) noexcept;
    // Ends a pending operation early, with operation_canceled, unless it ends by itself before.
    void cancel(ring_operation& op) noexcept {
        if (op.on->is_pending(op)) ring_->cancel(op);
    }
    // The operating system of this context's ring.
    internal::system_calls& system() noexcept { return *system_; }
    // See stream::is_quiet().
    bool is_quiet(int fd) noexcept { return !ring_->has_received(fd) && system_->is_quiet(fd); }
    buffer_pool& buffers() noexcept { return buffers_; }

    // For rings: a pending operation has its result.
    void finish(ring_operation& op) noexcept;
    // For rings: visits what is pending.
    void restart_pending(void (*begin)(ring_operation&, void*), void* ring) noexcept;

private:
    enum class until_idle { with_guards, alone };
    // Runs turns; true: `limit` ended it.
    bool run_until(internal::time_point limit, until_idle guards);
    void cancel_everything() noexcept;
    // False: nothing is left to do; with `done`, which counts instead of work: it is set.
    bool turn(internal::time_point limit, until_idle guards,
              const block_latch* done = nullptr) noexcept;
    void run_queued() noexcept;
    void run_deferred() noexcept;
    void take_posted() noexcept;
    bool is_stopping(until_idle guards) const noexcept {
        return guards == until_idle::with_guards && stopping_.load(internal::relaxed);
    }
    bool has_work(until_idle guards) const noexcept;
    std::uint64_t tick_at(internal::time_point when) const noexcept;
    std::optional<internal::time_point> wait_until(internal::time_point limit,
                                                   until_idle guards) noexcept;
    bool grow() noexcept;
    std::error_code attach(internal::descriptor& d) noexcept;
    void close_here(internal::descriptor& d) noexcept;
    void recycle(internal::descriptor& d) noexcept;
    friend struct internal::descriptor;
    // Holds the lock meanwhile: `visit` takes no descriptor in and gives none back.
    template <class Visit>
    void for_each_descriptor(Visit visit);

    // Operations that ended at once are completed inline so often in a row, then through a turn of
    // the loop, so that a busy socket cannot starve the others.
    static constexpr unsigned inline_completions_max = 32;
    static constexpr std::size_t slab_descriptors = 64;
    static constexpr unsigned tick_bits = 18;  // 2^18 ns

    context(std::unique_ptr<simulation> own, simulation* world, internal::uring_calls& calls,
            backend kind);

    std::unique_ptr<simulation> world_;  // of backend::sim, when nobody else has it
    buffer_pool buffers_;                // outlives the ring, which lends its buffers to the kernel
    std::unique_ptr<internal::ring> ring_;
    internal::system_calls* system_;
    const internal::clock* ring_clock_;
    const internal::time_point origin_;  // tick 0
    internal::time_point turn_time_;
    bool turn_time_known_ = false;
    internal::timer_wheel wheel_;
    operation_queue deferred_;
    operation_queue running_;  // of the turn under way
    std::size_t pending_ = 0;  // operations that the ring has
    std::size_t files_ = 0;    // those of them on files
    unsigned inline_left_ = inline_completions_max;
    bool ending_ = false;
    std::mutex descriptors_;  // guards the two below
    std::vector<std::unique_ptr<internal::descriptor[]>> slabs_;
    operation* free_ = nullptr;  // descriptors

    internal::atomic<bool> stopping_{false};  // set by stop(); nothing rides on it
    internal::atomic<int> guards_{0};         // work_guards held; the loop only compares with 0
    mailbox<operation> mailbox_;    // filled by any thread
    // posts, stops and guards that may still wake the ring
    internal::in_flight calls_;
    internal::ownership ownership_;
    internal::in_flight drivers_;  // threads in drive()
};

// Lifetime: released before the context ends.
class context::work_guard : immovable {
public:
    explicit work_guard(context& owner) noexcept : owner_(owner) {
        owner_.guards_.fetch_add(1, internal::relaxed);
    }
    ~work_guard() {
        const internal::in_flight::entry call(owner_.calls_);
        // edge context.guard (release): the returning run() sees what the holder did before
        if (owner_.guards_.fetch_sub(1, internal::release) == 1) owner_.ring_->wake();
    }

private:
    context& owner_;
};

// A handle to the loop; models execution::timed_scheduler. Lifetime: the context outlives its use.
class context::scheduler {
public:
    using scheduler_concept = execution::scheduler_tag;
    using item_type = operation;

    explicit scheduler(context& owner) noexcept : owner_(&owner) {}
    execution::scheduled_sender<scheduler> schedule() const noexcept {
        return execution::scheduled_sender<scheduler>(*this);
    }
    // Complete on the loop, not before their time and at most about 0.3 ms after it; with
    // set_stopped when the context ends.
    timed_sender schedule_after(internal::duration time) const noexcept;
    timed_sender schedule_at(internal::time_point when) const noexcept;
    internal::time_point now() const noexcept { return owner_->now(); }
    void enqueue(operation& op) const noexcept { owner_->post(op); }

    execution::forward_progress_guarantee query(
        execution::get_forward_progress_guarantee_t) const noexcept {
        return execution::forward_progress_guarantee::parallel;
    }
    template <class Tag>
        requires(!std::is_same_v<Tag, execution::set_error_t>)
    scheduler query(execution::get_completion_scheduler_t<Tag>) const noexcept {
        return *this;
    }
    friend bool operator==(const scheduler&, const scheduler&) noexcept = default;

private:
    context* owner_;
};

inline context::scheduler context::get_scheduler() noexcept {
    return scheduler(*this);
}

inline bool context::start_here(ring_operation& op) noexcept {
    internal::descriptor& d = *op.on;
    COPPICE_CHECK(internal::is_file_operation(op.code) || d.slot(op.code) == nullptr,
                  "two operations in one direction on one descriptor");
    if (ending_ || d.closing) [[unlikely]] {
        op.result = -ECANCELED;
        return true;
    }
    if (!d.attached) [[unlikely]] {
        if (const std::error_code error = attach(d)) {
            op.result = -error.value();
            return true;
        }
    }
    op.cancelled = op.ended = false;
    if (!ring_->start(op)) {
        if (internal::is_file_operation(op.code)) [[unlikely]] {
            d.file_operations.push_back(op);
            ++files_;
        } else {
            d.slot(op.code) = &op;
        }
        ++pending_;
        return false;
    }
    if (inline_left_ != 0) [[likely]] {
        --inline_left_;
        return true;
    }
    inline_left_ = inline_completions_max;
    defer(op);
    return false;
}

}  // namespace coppice::io
