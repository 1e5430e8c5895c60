// run_loop: an execution resource that is run by a thread of the program, with timers.
#pragma once
// Schedule, push, and finish from any thread; run from one at a time. Source: [exec.run.loop];
// timers are ours.

#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/no_fork_context.hpp>
#include <coppice/exec/internal/run_loop_operation.hpp>
#include <coppice/exec/timed_scheduler.hpp>

namespace coppice::execution {

// A queue of operations and timers, run by a thread of the program. Cost: scheduling allocates
// nothing.
class [[gnu::visibility("default")]] run_loop {
public:
    // What the queue holds. The operations of schedule() derive from it.
    using item = internal::run_loop_item;
    class scheduler;

    run_loop() noexcept = default;
    // Misuse: destroying a loop that is running or holds operations ends the process.
    ~run_loop() {
        COPPICE_CHECK(!running_,
                      "a run_loop was destroyed while it was running: let run() return first");
    }

    // Returns the loop's scheduler. Threads: any. Lifetime: the loop outlives what it schedules.
    scheduler get_scheduler() noexcept;

    // Runs queued operations. Blocks: until finish() was called and the queue is empty. Threads:
    // one at a time.
    void run() noexcept {
        COPPICE_CHECK(!running_,
                      "run_loop::run() was called while the loop was running: one thread at a time "
                      "may run it");
        running_ = true;
        const internal::no_fork_context
            none;  // queued operations are not part of the caller's fork_join
        while (item* const next = queue_.pop()) next->execute();
        running_ = false;
    }

    // Makes run() return once the queue is empty. The runner may destroy the loop before this
    // returns. Threads: any. Misuse: calling it twice.
    void finish() noexcept { queue_.finish(); }

    // Queues an operation. Threads: any. Blocks: never.
    void push_back(item& pushed) noexcept { queue_.push_back(pushed); }

private:
    internal::run_loop_queue queue_;  // immovable, and so the loop is
    bool running_ = false;            // the runner's
};

// Refers to its loop, which must outlive it and every operation. A timed scheduler.
class run_loop::scheduler {
    using queue = internal::run_loop_queue;

    // The attributes of the loop's senders: they complete on the loop.
    class attrs {
    public:
        explicit attrs(queue& loop) noexcept : loop_(&loop) {}
        template <class Tag>
            requires(!std::is_same_v<Tag, set_error_t>)
        scheduler query(get_completion_scheduler_t<Tag>) const noexcept {
            return scheduler(*loop_);
        }
        scheduler query(get_timed_scheduler_t) const noexcept { return scheduler(*loop_); }

    private:
        queue* loop_;
    };
    class sender {
    public:
        using sender_concept = sender_tag;
        explicit sender(queue& loop) noexcept : loop_(&loop) {}
        attrs get_env() const noexcept { return attrs(*loop_); }

        template <class Self, class... Env>
        static consteval auto get_completion_signatures() noexcept {
            if constexpr (sizeof...(Env) != 0 && (unstoppable_token<stop_token_of_t<Env>> && ...)) {
                return completion_signatures<set_value_t()>();
            } else {
                return completion_signatures<set_value_t(), set_stopped_t()>();
            }
        }
        template <receiver Rcvr>
        auto connect(Rcvr rcvr) const noexcept {
            return internal::run_loop_operation<Rcvr>(*loop_, static_cast<Rcvr&&>(rcvr));
        }

    private:
        queue* loop_;
    };
    class timed_sender {
    public:
        using sender_concept = sender_tag;
        timed_sender(queue& loop, instant at, time_span after) noexcept
            : loop_(&loop), at_(at), after_(after) {}
        attrs get_env() const noexcept { return attrs(*loop_); }

        template <class Self, class... Env>
        static consteval auto get_completion_signatures() noexcept {
            if constexpr (sizeof...(Env) != 0 && (!internal::run_loop_timer_stops<Env> && ...)) {
                return completion_signatures<set_value_t()>();
            } else {
                return completion_signatures<set_value_t(), set_stopped_t()>();
            }
        }
        template <receiver Rcvr>
        auto connect(Rcvr rcvr) const noexcept {
            return internal::run_loop_timer_operation<Rcvr>(*loop_, at_, after_,
                                                            static_cast<Rcvr&&>(rcvr));
        }

    private:
        queue* loop_;
        instant at_;  // if never(), the time is `after_` after the start
        time_span after_;
    };

public:
    using scheduler_concept = scheduler_tag;

    explicit scheduler(run_loop& loop) noexcept : scheduler(loop.queue_) {}

    // Returns a sender that completes on the loop, or with set_stopped if the stop was requested
    // before the loop reached it. Cost: no allocation.
    sender schedule() const noexcept { return sender(*loop_); }
    // Returns the same sender: queueing never blocks and never allocates.
    sender try_schedule() const noexcept { return schedule(); }
    // Returns a sender that completes on the loop, `span` after its start. A stop request, and the
    // deadline of its environment, end it with set_stopped.
    timed_sender schedule_after(time_span span) const noexcept {
        return timed_sender(*loop_, instant::never(), span);
    }
    // Returns a sender like that of schedule_after, which completes at `when`, or at once if that
    // has passed.
    timed_sender schedule_at(instant when) const noexcept {
        return timed_sender(*loop_, when, time_span(instant::never().nanoseconds()));
    }
    // Returns the current CLOCK_MONOTONIC time.
    instant now() const noexcept { return monotonic_now(); }

    forward_progress_guarantee query(get_forward_progress_guarantee_t) const noexcept {
        return forward_progress_guarantee::parallel;
    }
    template <class Tag>
        requires(!std::is_same_v<Tag, set_error_t>)
    scheduler query(get_completion_scheduler_t<Tag>) const noexcept {
        return *this;
    }
    bool operator==(const scheduler& other) const noexcept { return loop_ == other.loop_; }

private:
    explicit scheduler(queue& loop) noexcept : loop_(&loop) {}

    queue* loop_;
};

inline run_loop::scheduler run_loop::get_scheduler() noexcept {
    return scheduler(*this);
}

}  // namespace coppice::execution
