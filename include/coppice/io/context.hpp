// context: one event loop, run by one thread; everything that waits for the outside waits here.
#pragma once
// A turn of the loop runs what was deferred and posted, expires timers, then waits in the ring for
// completions. run() returns when stop() was called, or when nothing is pending and no work_guard
// is held. Operations complete on the thread that runs the loop.
//
// The end: the destructor ends whatever is still pending with operation_canceled, on the destroying
// thread, before it returns; what those completions start ends the same way. Sockets end before
// their context, or in those completions.

#include <coppice/base/atomic.hpp>
#include <coppice/base/clock.hpp>
#include <coppice/base/in_flight.hpp>
#include <coppice/exec/scheduled_sender.hpp>
#include <coppice/io/buffer.hpp>
#include <coppice/io/mailbox.hpp>
#include <coppice/io/operation.hpp>
#include <coppice/io/ring.hpp>
#include <coppice/io/timer_wheel.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace coppice::io {

// Threads: post(), stop(), schedule() and work_guard by any; everything else by the thread that
// runs the loop, or by one thread while none does. A context on io_uring must always run on the
// thread that ran it first.
class context : immovable {
public:
    // Errors: std::system_error if the asked backend is missing or forbidden here; `automatic`
    // takes io_uring where it works as we need it (kernel 6.1), and epoll elsewhere.
    explicit context(backend kind = backend::automatic);
    ~context();

    // Blocks: as said above. Errors: none; exceptions must not leave completions.
    void run();
    // Makes run() return after the completion that is under way. Sticky until restart().
    void stop() noexcept;
    void restart() noexcept { stopping_.store(false, relaxed); }
    backend kind() const noexcept { return ring_->kind(); }

    // Keeps run() from returning for want of work.
    class work_guard;

    // Awaiting schedule() moves a coroutine to the loop.
    class scheduler;
    scheduler get_scheduler() noexcept;

    // The context that this thread runs, or nullptr.
    static context* current() noexcept { return thread_slot<context, context*>(); }
    bool is_current() const noexcept { return current() == this; }

    // Runs op.complete() on the loop. Threads: any. Cost: one compare-exchange, and a system call
    // if the loop sleeps. No allocation.
    void post(operation& op) noexcept {
        const in_flight::entry call(calls_);  // op may run, and end the loop, before this returns
        if (mailbox_.push(op) == mailbox<operation>::pushed::wake_the_loop) ring_->wake();
    }
    // Runs op.complete() in the next turn.
    void defer(operation& op) noexcept { deferred_.push_back(&op); }

    // The time at which the present turn began; cheap, up to a turn old.
    time_point turn_time() const noexcept { return turn_time_; }
    // Calls entry.expire() on the loop at the first tick (of about 0.26 ms) that is not before
    // `when`.
    void arm(timer_entry& entry, time_point when) noexcept;
    void disarm(timer_entry& entry) noexcept { wheel_.cancel(entry); }
    // True in completions that the destructor forces: they report operation_canceled.
    bool ending() const noexcept { return ending_; }

    // For sockets and files: takes an open, non-blocking file in, and owns it on success.
    result<descriptor*> adopt(int fd);
    // Starts an operation. True: it has ended, and complete() will not be called.
    [[nodiscard]] bool start(ring_operation& op) noexcept;
    // Closes the file. Its pending operations complete with operation_canceled in a coming turn.
    void close(descriptor& d) noexcept;
    // Ends a pending operation early, with operation_canceled, unless it ends by itself before.
    void cancel(ring_operation& op) noexcept {
        if (op.on->pending(op.code) == &op) ring_->cancel(op);
    }
    buffer_pool& buffers() noexcept { return buffers_; }

    // For rings: a pending operation has its result.
    void finish(ring_operation& op) noexcept;

private:
    bool turn() noexcept;
    void run_deferred() noexcept;
    void take_posted() noexcept;
    bool has_work() const noexcept;
    std::uint64_t tick_at(time_point when) const noexcept;
    std::optional<time_point> wait_until() noexcept;
    void recycle(descriptor& d) noexcept;
    void cancel_pending(descriptor& d) noexcept;
    void end_pending() noexcept;
    template <class Visit>
    void for_each_descriptor(Visit visit);

    // Operations that ended at once are completed inline so often in a row, then through a turn of
    // the loop, so that a busy socket cannot starve the others.
    static constexpr unsigned inline_completions_max = 32;
    static constexpr std::size_t slab_descriptors = 64;
    static constexpr unsigned tick_bits = 18;  // 2^18 ns

    monotonic_clock clock_;
    const time_point origin_;  // tick 0
    time_point turn_time_;
    buffer_pool buffers_;  // outlives the ring, which lends its buffers to the kernel
    std::unique_ptr<ring> ring_;
    timer_wheel wheel_;
    operation_queue deferred_;
    std::size_t pending_ = 0;  // operations that the ring has
    unsigned inline_left_ = inline_completions_max;
    bool ending_ = false;
    std::vector<std::unique_ptr<descriptor[]>> slabs_;
    descriptor* free_ = nullptr;

    atomic<bool> stopping_{false};  // set by stop(); nothing rides on it
    atomic<int> guards_{0};         // work_guards held; the loop only compares with 0
    mailbox<operation> mailbox_;    // filled by any thread
    in_flight calls_;               // posts, stops and guards that may still wake the ring
};

// Lifetime: released before the context ends.
class context::work_guard : immovable {
public:
    explicit work_guard(context& owner) noexcept : owner_(owner) {
        owner_.guards_.fetch_add(1, relaxed);
    }
    ~work_guard() {
        const in_flight::entry call(owner_.calls_);
        // edge context.guard (release): the returning run() sees what the holder did before
        if (owner_.guards_.fetch_sub(1, release) == 1) owner_.ring_->wake();
    }

private:
    context& owner_;
};

// A handle to the loop; models execution::scheduler. Lifetime: the context outlives its use.
class context::scheduler {
public:
    using scheduler_concept = execution::scheduler_tag;
    using item_type = operation;

    explicit scheduler(context& owner) noexcept : owner_(&owner) {}
    execution::scheduled_sender<scheduler> schedule() const noexcept {
        return execution::scheduled_sender<scheduler>(*this);
    }
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

}  // namespace coppice::io
