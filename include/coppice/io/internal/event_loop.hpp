// event_loop: what operations ask of their loop; the base of io::context.
#pragma once
// A turn of the loop runs posted and deferred operations, expires timers, and then waits in the
// ring for completions. A ring operation goes through these functions, all on the loop's thread:
//
//   start_here -> ring::start -> ended at once
//                            \-> pending -> ring::poll -> finish -> operation::complete

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/in_flight.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/internal/result.hpp>
#include <coppice/base/internal/timer_wheel.hpp>
#include <coppice/io/buffer.hpp>
#include <coppice/io/internal/mailbox.hpp>
#include <coppice/io/internal/operation.hpp>
#include <coppice/io/internal/ownership.hpp>
#include <coppice/io/internal/ring.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

namespace coppice::io {

class context;
class simulation;

}  // namespace coppice::io

namespace coppice::io::internal {

class loop_scheduler;
using coppice::internal::timer_entry;
using coppice::internal::timer_wheel;

// Threads: any, for post(), drive(), adopt(), close(), now(), and the start of requests. Everything
// else is for the thread that runs the loop, or for one thread while none runs it.
class [[gnu::visibility("default")]] event_loop : immovable {
public:
    // Returns the context that this loop is in.
    inline context& owner() noexcept;
    // Returns the loop that this thread runs, or nullptr.
    static event_loop* current() noexcept { return thread_slot<event_loop, event_loop*>(); }
    bool is_current() const noexcept { return current() == this; }
    inline loop_scheduler get_scheduler() noexcept;

    // Runs op.complete() on the loop. Threads: any. Cost: one compare-exchange, and a system call
    // if the loop sleeps. No allocation.
    void post(operation& op) noexcept {
        // op may run and end the loop before this returns
        const in_flight::entry call(calls_);
        if (mailbox_.push(op) == mailbox<operation>::pushed::wake_the_loop) ring_->wake();
    }
    // Runs op.complete() in the next turn.
    void defer(operation& op) noexcept { deferred_.push_back(&op); }
    // Returns true if an operation that has ended may complete on its caller's stack. Its waiter
    // continues there, and may start or end the next operation. The answer is false after 255 in a
    // row without a return to the loop. The operation must then be deferred.
    bool may_complete_here() noexcept {
        if (completions_left_ == 0) [[unlikely]] {
            completions_left_ = completions_max;
            return false;
        }
        --completions_left_;
        return true;
    }
    // Called by the loop's own functions before they complete an operation: a row begins.
    void begin_row() noexcept {
        inline_left_ = inline_completions_max;
        completions_left_ = completions_max;
    }

    // Returns the time of the loop's clock: CLOCK_MONOTONIC, or the simulation's. Threads: any.
    time_point now() const noexcept { return ring_clock_->now(); }
    // Returns a time at or after the loop's last wait. It stays the same until the loop waits
    // again, so it may be one turn old. Cost: reads the clock on the first call after a wait.
    time_point turn_time() noexcept {
        if (!std::exchange(turn_time_known_, true)) turn_time_ = now();
        return turn_time_;
    }
    // Returns when what the loop has found in this turn became ready, as far as the loop can tell:
    // turn_time(), or earlier. If the turn before took at least a millisecond, it became ready at
    // some time of that turn, and counts as ready since its middle. If more was ready than one turn
    // finds, it counts as ready for as long as such things have lately been (ring::backlog()).
    // Cost: that of turn_time().
    time_point ready_time() noexcept {
        return turn_time() - std::max(lateness_ / 2, ring_->backlog());
    }
    // Calls entry.expire() on the loop at the first tick (of about 0.26 ms) that is not before
    // `when`.
    void arm(timer_entry& entry, time_point when) noexcept;
    void disarm(timer_entry& entry) noexcept { wheel_.cancel(entry); }
    // Returns true during completions that are forced by the context's destructor or by drain();
    // such completions report operation_canceled.
    bool ending() const noexcept { return ending_; }

    // Takes over an open, non-blocking file, and owns it on success. `waits`: reads and writes may
    // have to wait until the file is ready; false for regular files.
    result<descriptor*> adopt(int fd, bool waits = true) noexcept;
    // Starts an operation. Returns true if it has ended already; complete() is not called then.
    [[nodiscard]] bool start(ring_operation& op) noexcept;
    // Starts an operation likewise, for a caller that is known to be on the loop.
    [[nodiscard]] bool start_here(ring_operation& op) noexcept;
    // Tells whether try_here() may succeed, for a caller that has to prepare it. For receives on
    // the io_uring ring: only after receive_one_by_one().
    bool may_try(descriptor& d, opcode code) const noexcept {
        return (is_writing(code) ? d.writable : d.readable) && d.slot(code) == nullptr &&
               d.attached && !d.closing && !ending_ && inline_left_ != 0;
    }
    // Makes the system call of a receive or a send_message, for a caller on the loop. Returns true
    // if it ended: `result` is set. Otherwise nothing has happened, and nothing is pending.
    [[nodiscard]] bool try_here(ring_operation& op) noexcept {
        if (!may_try(*op.on, op.code) || !ring_->try_now(op)) return false;
        --inline_left_;
        return true;
    }
    // Prepares for receives by try_here() of what follows a buffer, or (false) for none.
    void receive_one_by_one(descriptor& d, bool on) noexcept { ring_->receive_one_by_one(d, on); }
    // Ends a pending operation early with operation_canceled, unless it ends by itself first.
    void cancel(ring_operation& op) noexcept {
        if (op.on->is_pending(op)) ring_->cancel(op);
    }
    // Says that one more pending operation lets run_until() return, or (false) one fewer. It goes
    // on in the next run.
    void note_background(bool more) noexcept { more ? ++background_ : --background_; }
    // Closes the file: at once, or in the next turn of the thread that runs the loop. Pending
    // operations on it complete with operation_canceled in a later turn.
    void close(descriptor& d) noexcept;

    // Returns when a completion of this loop has set `done`. Runs the loop meanwhile if the calling
    // thread already runs it (the call is inside a completion) or if no thread does. Otherwise
    // sleeps, and takes the loop over when the thread that runs it leaves. Ignores stop(). Used by
    // block.
    void drive(block_latch& done) noexcept;

    // Returns the operating system of this loop's ring.
    system_calls& system() noexcept { return *system_; }
    // See stream::is_quiet().
    bool is_quiet(int fd) noexcept { return !ring_->has_received(fd) && system_->is_quiet(fd); }
    buffer_pool& buffers() noexcept { return buffers_; }

    // Called by a ring when a pending operation has its result.
    void finish(ring_operation& op) noexcept;
    // Called by a ring: passes each pending operation to `begin`.
    void restart_pending(void (*begin)(ring_operation&, void*), void* ring) noexcept;

protected:
    event_loop(std::unique_ptr<simulation> own, simulation* world, uring_calls& calls,
               backend kind);
    ~event_loop();
    // Called once, by the destructor of the context: ends every pending operation, and closes the
    // ring and the files. Blocks: until no other thread uses the loop.
    void end() noexcept;

    enum class until_idle { with_guards, alone };
    // Runs turns. Returns true if `limit` ended it.
    bool run_until(time_point limit, until_idle guards);
    // Ends pending operations, and the operations that they start, with operation_canceled. Blocks:
    // until the thread that runs the loop has left it.
    void end_pending() noexcept;
    void stop() noexcept;
    void restart() noexcept { stopping_.store(false, relaxed); }
    bool stopped() const noexcept { return stopping_.load(relaxed); }
    backend kind() const noexcept { return ring_->kind(); }
    // Keep run_until() from returning when nothing is pending, and let it return again.
    void hold() noexcept { guards_.fetch_add(1, relaxed); }
    void let_go() noexcept {
        const in_flight::entry call(calls_);
        // edge context.guard (release): the returning run() sees what the holder did before
        if (guards_.fetch_sub(1, release) == 1) ring_->wake();
    }

private:
    // Runs one turn. Returns false if nothing is left to do, if the loop was told to stop, or,
    // given `done`, if that is set.
    bool turn(time_point limit, until_idle guards, const block_latch* done = nullptr) noexcept;
    void cancel_everything() noexcept;
    void run_queued() noexcept;
    void run_deferred() noexcept;
    void take_posted() noexcept;
    bool is_stopping(until_idle guards) const noexcept {
        return guards == until_idle::with_guards && stopped();
    }
    bool has_work(until_idle guards) const noexcept;
    std::uint64_t tick_at(time_point when) const noexcept;
    std::optional<time_point> wait_until(time_point limit, until_idle guards, bool late) noexcept;
    bool is_late() noexcept;
    bool grow() noexcept;
    std::error_code attach(descriptor& d) noexcept;
    friend struct descriptor;
    void close_here(descriptor& d) noexcept;
    void recycle(descriptor& d) noexcept;
    // Holds the lock meanwhile, so `visit` must not adopt or recycle a descriptor.
    template <class Visit>
    void for_each_descriptor(Visit visit);

    // How many operations in a row may complete inline. The next one completes through a turn of
    // the loop, so that a busy socket cannot starve the others.
    static constexpr unsigned inline_completions_max = 32;
    // How many operations in a row may complete on top of one another, or one after another without
    // a system call, as errors do. Bounds the stack, and the time between two turns.
    static constexpr unsigned completions_max = 255;
    static constexpr std::size_t slab_descriptors = 64;
    static constexpr unsigned tick_bits = 18;  // one tick is 2^18 ns
    static constexpr duration long_turn = std::chrono::milliseconds(1);

    std::unique_ptr<simulation> world_;  // the world of backend::sim, unless the caller gave one
    buffer_pool buffers_;                // outlives the ring, which lends its buffers to the kernel
    std::unique_ptr<ring> ring_;
    system_calls* system_;
    const clock* ring_clock_;
    const time_point origin_;  // tick 0
    time_point turn_time_;
    bool turn_time_known_ = false;
    duration lateness_ = duration::zero();  // how long the turn before took, if that was long
    timer_wheel wheel_;
    operation_queue deferred_;
    operation_queue running_;     // operations of the turn under way
    std::size_t pending_ = 0;     // operations that the ring has
    std::size_t files_ = 0;       // the pending operations that are on files
    std::size_t background_ = 0;  // the pending operations that let run_until() return
    unsigned inline_left_ = inline_completions_max;
    unsigned completions_left_ = completions_max;
    bool ending_ = false;
    std::mutex descriptors_;  // guards slabs_ and free_
    std::vector<std::unique_ptr<descriptor[]>> slabs_;
    operation* free_ = nullptr;  // free descriptors

    atomic<bool> stopping_{false};  // set by stop(); publishes nothing
    atomic<int> guards_{0};         // work_guards held; the loop only compares with 0
    mailbox<operation> mailbox_;    // filled by any thread
    // calls that may still wake the ring: posts, stops, and releases of guards
    in_flight calls_;
    ownership ownership_;
    in_flight drivers_;  // threads in drive()
};

inline bool event_loop::start_here(ring_operation& op) noexcept {
    descriptor& d = *op.on;
    COPPICE_CHECK(
        is_file_operation(op.code) || d.slot(op.code) == nullptr,
        "two operations in one direction on one descriptor: await the first one before the next");
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
        if (is_file_operation(op.code)) [[unlikely]] {
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

}  // namespace coppice::io::internal
