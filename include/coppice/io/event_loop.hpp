// The class context without its timed scheduler; for context.hpp and the headers that it needs.
#pragma once

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/in_flight.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/exec/internal/scheduled_sender.hpp>
#include <coppice/exec/timed_scheduler.hpp>
#include <coppice/io/buffer.hpp>
#include <coppice/io/internal/mailbox.hpp>
#include <coppice/io/internal/operation.hpp>
#include <coppice/io/internal/ownership.hpp>
#include <coppice/io/internal/ring.hpp>
#include <coppice/io/internal/timer_wheel.hpp>

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

// An event loop; context.hpp describes it.
// Threads: any, for post(), stop(), drive(), adopt(), close(), work_guard, the scheduler, and the
// start of operations. run() by any thread, one at a time. Everything else by the thread that runs
// the loop, or by one thread while none runs it.
class [[gnu::visibility("default")]] context : immovable {
public:
    // Makes a loop on the given backend. `automatic` takes io_uring where it works as needed
    // (kernel 6.1), otherwise epoll. `sim` makes its own simulation with seed 1.
    // Errors: std::system_error if the requested backend is missing or forbidden here.
    explicit context(backend kind = backend::automatic);
    // For tests: makes a loop that uses `calls` if it runs on io_uring. Lifetime: `calls` must
    // outlive the context.
    explicit context(internal::uring_calls& calls, backend kind = backend::uring);
    // Runs in a simulated world. Lifetime: the world must outlive the context, and has one context
    // at a time.
    explicit context(simulation& world);
    ~context();

    // Runs turns until stop() was called, or until nothing is pending and no work_guard is held.
    // Blocks: until then. Errors: none; completions must not throw.
    void run();
    // Runs for at most `time`. Returns true if the time ended it and there is more to do.
    bool run_for(internal::duration time);
    // Runs until nothing is pending, for at most `limit`. Then ends what is left, and what that
    // starts, with operation_canceled. Returns true if everything ended by itself. Ignores stop()
    // and guards.
    bool drain(internal::duration limit);
    // Returns when a completion of this context has set `done`. Runs the loop meanwhile if the
    // calling thread already runs it (the call is inside a completion) or if no thread does.
    // Otherwise sleeps, and takes the loop over when the thread that runs it leaves. Ignores
    // stop(). Used by block.
    void drive(block_latch& done) noexcept;
    // Makes run() return after the completion that is under way. Stays in effect until restart().
    void stop() noexcept;
    // Takes back stop(), also one that run() has not seen: for between two runs.
    void restart() noexcept { stopping_.store(false, internal::relaxed); }
    bool stopped() const noexcept { return stopping_.load(internal::relaxed); }
    backend kind() const noexcept { return ring_->kind(); }

    // Keeps run() from returning when nothing is pending.
    class work_guard;

    // Completes its schedule() on the loop: awaiting that moves a coroutine there.
    class scheduler;
    scheduler get_scheduler() noexcept;

    // Returns the context that this thread runs, or nullptr.
    static context* current() noexcept { return internal::thread_slot<context, context*>(); }
    bool is_current() const noexcept { return current() == this; }

    // Runs op.complete() on the loop. Threads: any. Cost: one compare-exchange, and a system call
    // if the loop sleeps. No allocation.
    void post(operation& op) noexcept {
        // op may run and end the loop before this returns
        const internal::in_flight::entry call(calls_);
        if (mailbox_.push(op) == mailbox<operation>::pushed::wake_the_loop) ring_->wake();
    }
    // Runs op.complete() in the next turn.
    void defer(operation& op) noexcept { deferred_.push_back(&op); }

    // Returns the time of the context's clock: CLOCK_MONOTONIC, or the simulation's. Threads: any.
    internal::time_point now() const noexcept { return ring_clock_->now(); }
    // Returns a time at or after the loop's last wait. It stays the same until the loop waits
    // again, so it may be one turn old. Cost: reads the clock on the first call after a wait.
    internal::time_point turn_time() noexcept {
        if (!std::exchange(turn_time_known_, true)) turn_time_ = now();
        return turn_time_;
    }
    // Calls entry.expire() on the loop at the first tick (of about 0.26 ms) that is not before
    // `when`.
    void arm(timer_entry& entry, internal::time_point when) noexcept;
    void disarm(timer_entry& entry) noexcept { wheel_.cancel(entry); }
    // Returns true inside completions that the destructor or drain() forces; they report
    // operation_canceled.
    bool ending() const noexcept { return ending_; }

    // For sockets and files: takes over an open, non-blocking file, and owns it on success.
    // `waits`: reads and writes may have to wait until the file is ready; false for regular files.
    internal::result<internal::descriptor*> adopt(int fd, bool waits = true) noexcept;
    // Starts an operation. Returns true if it has ended already; complete() will then not be
    // called.
    [[nodiscard]] bool start(ring_operation& op) noexcept;
    // Does the same for a caller that is known to be on the loop.
    [[nodiscard]] bool start_here(ring_operation& op) noexcept;
    // Closes the file: at once, or in the next turn of the thread that runs the loop. Pending
    // operations on it complete with operation_canceled in a later turn.
    void close(internal::descriptor& d) noexcept;
    // Ends a pending operation early with operation_canceled, unless it ends by itself first.
    void cancel(ring_operation& op) noexcept {
        if (op.on->is_pending(op)) ring_->cancel(op);
    }
    // Returns the operating system of this context's ring.
    internal::system_calls& system() noexcept { return *system_; }
    // See stream::is_quiet().
    bool is_quiet(int fd) noexcept { return !ring_->has_received(fd) && system_->is_quiet(fd); }
    buffer_pool& buffers() noexcept { return buffers_; }

    // Called by a ring when a pending operation has its result.
    void finish(ring_operation& op) noexcept;
    // Called by a ring: passes each pending operation to `begin`.
    void restart_pending(void (*begin)(ring_operation&, void*), void* ring) noexcept;

private:
    enum class until_idle { with_guards, alone };
    // Runs turns. Returns true if `limit` ended it.
    bool run_until(internal::time_point limit, until_idle guards);
    void cancel_everything() noexcept;
    // Runs one turn. Returns false if nothing is left to do, if the loop was told to stop, or,
    // given `done`, if that is set.
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
    // Holds the lock meanwhile, so `visit` must not adopt or recycle a descriptor.
    template <class Visit>
    void for_each_descriptor(Visit visit);

    // How many operations in a row may complete inline. The next one completes through a turn of
    // the loop, so that a busy socket cannot starve the others.
    static constexpr unsigned inline_completions_max = 32;
    static constexpr std::size_t slab_descriptors = 64;
    static constexpr unsigned tick_bits = 18;  // one tick is 2^18 ns

    context(std::unique_ptr<simulation> own, simulation* world, internal::uring_calls& calls,
            backend kind);

    std::unique_ptr<simulation> world_;  // the world of backend::sim, unless the caller gave one
    buffer_pool buffers_;                // outlives the ring, which lends its buffers to the kernel
    std::unique_ptr<internal::ring> ring_;
    internal::system_calls* system_;
    const internal::clock* ring_clock_;
    const internal::time_point origin_;  // tick 0
    internal::time_point turn_time_;
    bool turn_time_known_ = false;
    internal::timer_wheel wheel_;
    operation_queue deferred_;
    operation_queue running_;  // operations of the turn under way
    std::size_t pending_ = 0;  // operations that the ring has
    std::size_t files_ = 0;    // those of them on files
    unsigned inline_left_ = inline_completions_max;
    bool ending_ = false;
    std::mutex descriptors_;  // guards slabs_ and free_
    std::vector<std::unique_ptr<internal::descriptor[]>> slabs_;
    operation* free_ = nullptr;  // free descriptors

    internal::atomic<bool> stopping_{false};  // set by stop(); publishes nothing
    internal::atomic<int> guards_{0};         // work_guards held; the loop only compares with 0
    mailbox<operation> mailbox_;              // filled by any thread
    // calls that may still wake the ring: posts, stops, and releases of guards
    internal::in_flight calls_;
    internal::ownership ownership_;
    internal::in_flight drivers_;  // threads in drive()
};

// Keeps run() from returning. Lifetime: released before the context is destroyed.
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

// A handle of the loop; models execution::timed_scheduler. Lifetime: the context must outlive its
// use.
class context::scheduler {
public:
    using scheduler_concept = execution::scheduler_tag;
    using item_type = operation;

    explicit scheduler(context& owner) noexcept : owner_(&owner) {}
    execution::internal::scheduled_sender<scheduler> schedule() const noexcept {
        return execution::internal::scheduled_sender<scheduler>(*this);
    }
    // Complete on the loop, not before their time and at most about 0.3 ms after it; complete with
    // set_stopped when the context is destroyed.
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
