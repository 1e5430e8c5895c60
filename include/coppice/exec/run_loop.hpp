// run_loop: a first-in-first-out queue of operations that one thread runs; sync_wait uses one.
#pragma once
// One word carries the protocol of the queue:
//
//   newest_    finishing bit | sleeping bit | pointer to the newest operation, linked to older ones
//
//   push_back  puts an operation at the head of the chain and clears `sleeping`. If the bit was
//              set, wakes the sleeper.
//   pop_front  takes the whole chain at once and reverses it, then serves it without touching the
//              word. With nothing to serve it leaves if `finishing` is set. Otherwise it sets
//              `sleeping` and sleeps on the word, at most until the earliest timer.
//   finish     sets `finishing` and clears `sleeping`. After that the finishing thread does no more
//              than wake by address, because the loop may be gone already: sync_wait returns as
//              soon as the word says so.
//
// Timers belong to the runner, the thread in run(). An operation of schedule_after is queued to be
// armed, and its stop callback queues a second item that disarms it. So only the runner touches the
// heap, and the operation completes only when none of its items is queued.
//
// Threads: schedule, push, and finish from any thread; run from one at a time. Source:
// [exec.run.loop]; timers are ours. Model: tests/model/run_loop_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/futex.hpp>
#include <coppice/base/internal/no_fork_context.hpp>
#include <coppice/base/internal/put_off.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/internal/stop_registration.hpp>
#include <coppice/exec/internal/timer_heap.hpp>
#include <coppice/exec/timed_scheduler.hpp>

namespace coppice::execution {

class [[gnu::visibility("default")]] run_loop : immovable {
public:
    // What the queue holds. The operations of schedule() derive from it.
    class item : immovable {
    public:
        virtual void execute() noexcept = 0;
        // The loop's. Written by the pushing thread, then by the runner.
        internal::plain<item*> next{nullptr};

    protected:
        item() = default;
        ~item() = default;
    };
    // A timer. execute() arms it; expire() is called when its time has come.
    class timer : public item, public internal::heap_timer {
    public:
        virtual void expire() noexcept = 0;

    protected:
        ~timer() = default;
    };

    class scheduler;

    run_loop() noexcept = default;
    // Misuse: destroying a loop that is running or holds operations ends the process.
    ~run_loop() {
        // edge run_loop.finish (acquire): sees the queue as the finishing thread left it
        COPPICE_CHECK(serving_ == nullptr && (newest_.load(internal::acquire) & ~finishing) == 0,
                      "a run_loop was destroyed with operations in its queue");
        COPPICE_CHECK(timers_.empty(), "a run_loop was destroyed with timers in it");
        COPPICE_CHECK(!running_, "a run_loop was destroyed while it was running");
    }

    // Returns the loop's scheduler. Threads: any. Lifetime: the loop outlives what it schedules.
    scheduler get_scheduler() noexcept;

    // Runs queued operations. Blocks: until finish() was called and the queue is empty. Threads:
    // one at a time.
    void run() noexcept {
        COPPICE_CHECK(!running_, "run_loop::run() was called while the loop was running");
        running_ = true;
        const internal::no_fork_context
            none;  // queued operations are not part of the caller's fork_join
        while (item* const next = pop_front()) next->execute();
        running_ = false;
    }

    // Makes run() return once the queue is empty. The runner may destroy the loop before this
    // returns. Misuse: calling it twice.
    void finish() noexcept {
        std::uintptr_t seen = newest_.load(internal::relaxed);
        std::uintptr_t next;
        do {
            next = (seen & ~sleeping) | finishing;
            // edge run_loop.finish (release): what the finishing thread did; pairs with pop_front()
        } while (!newest_.compare_exchange_weak(seen, next, internal::release, internal::relaxed));
        if ((seen & sleeping) != 0 && !internal::planted("run_loop.finish_asleep"))
            internal::futex_wake_one(newest_);
    }

    // Queues an operation. Threads: any. Blocks: never.
    void push_back(item& pushed) noexcept {
        std::uintptr_t seen = newest_.load(internal::relaxed);
        std::uintptr_t next;
        do {
            pushed.next.write(pointer(seen));
            next = reinterpret_cast<std::uintptr_t>(&pushed) | (seen & finishing);
            // edge run_loop.push (release): the operation is linked; pairs with pop_front()
        } while (!newest_.compare_exchange_weak(seen, next, internal::release, internal::relaxed));
        if ((seen & sleeping) != 0 && !internal::planted("run_loop.push_asleep"))
            internal::futex_wake_one(newest_);
    }

    // For the operations of timers. Threads: the runner's.
    void arm(timer& t) noexcept { timers_.insert(t); }
    void disarm(timer& t) noexcept { timers_.remove(t); }

private:
    static constexpr std::uintptr_t finishing = 1;
    static constexpr std::uintptr_t sleeping = 2;

    static item* pointer(std::uintptr_t word) noexcept {
        return reinterpret_cast<item*>(word & ~(finishing | sleeping));
    }

    // Returns the oldest operation, or nullptr when the loop should end. Before it takes a new
    // chain, it expires the timers that are due.
    item* pop_front() noexcept {
        for (;;) {
            if (item* const oldest = serving_) {
                serving_ = oldest->next.read();
                return oldest;
            }
            expire_timers();
            // edge run_loop.push (acquire), edge run_loop.finish (acquire): sees what they did
            const std::uintptr_t seen = newest_.fetch_and(finishing, internal::acquire);
            if (pointer(seen) != nullptr) {
                serving_ = reversed(pointer(seen));
                continue;
            }
            if ((seen & finishing) != 0) return nullptr;
            if (!internal::put_off_work::run_one()) sleep();
        }
    }
    void expire_timers() noexcept {
        if (timers_.empty()) return;
        const instant time = monotonic_now();
        while (internal::heap_timer* const due = timers_.pop_due(time))
            static_cast<timer*>(due)->expire();
    }
    void sleep() noexcept {
        std::uintptr_t empty = 0;
        // relaxed: the chain is taken, with acquire, only after the wake-up
        if (!newest_.compare_exchange_strong(empty, sleeping, internal::relaxed, internal::relaxed))
            return;
        // relaxed: as above
        while (newest_.load(internal::relaxed) == sleeping) {
            if (timers_.empty()) {
                internal::futex_wait(newest_, sleeping);
            } else if (!sleep_until(timers_.earliest()->when)) {
                return;
            }
        }
    }
    // Returns false if the time has come.
    bool sleep_until(instant when) noexcept {
#if defined(COPPICE_MODEL)
        static_cast<void>(when);  // the model has no clock, and arms no timers
        return false;
#else
        return internal::futex_wait_until(newest_, sleeping, when.nanoseconds());
#endif
    }
    static item* reversed(item* newest) noexcept {
        item* oldest = nullptr;
        while (newest != nullptr) {
            item* const older = newest->next.read();
            newest->next.write(oldest);
            oldest = newest;
            newest = older;
        }
        return oldest;
    }

    internal::atomic<std::uintptr_t> newest_{0};  // states above; written by all threads
    item* serving_ = nullptr;                     // the runner's; oldest first
    internal::timer_heap timers_;                 // the runner's
    bool running_ = false;                        // the runner's
};

// Refers to its loop, which must outlive it and every operation. A timed scheduler.
class run_loop::scheduler {
public:
    using scheduler_concept = scheduler_tag;

    // The attributes of the loop's senders: they complete on the loop.
    class attrs {
    public:
        explicit attrs(run_loop& loop) noexcept : loop_(&loop) {}
        template <class Tag>
            requires(!std::is_same_v<Tag, set_error_t>)
        scheduler query(get_completion_scheduler_t<Tag>) const noexcept {
            return scheduler(*loop_);
        }
        scheduler query(get_timed_scheduler_t) const noexcept { return scheduler(*loop_); }

    private:
        run_loop* loop_;
    };

    template <class Rcvr>
    class operation final : item {
    public:
        using operation_state_concept = operation_state_tag;
        operation(run_loop& loop, Rcvr rcvr) noexcept
            : loop_(loop), rcvr_(static_cast<Rcvr&&>(rcvr)) {}
        ~operation() {
            COPPICE_CHECK(phase_ != phase::queued,
                          "an operation on a run_loop was destroyed while it was queued");
        }
        void start() & noexcept {
            COPPICE_CHECK(phase_ == phase::idle, "an operation on a run_loop was started twice");
            phase_ = phase::queued;
            loop_.push_back(*this);
        }

    private:
        enum class phase : unsigned char { idle, queued, over };

        void execute() noexcept override {
            phase_ = phase::over;
            if constexpr (!unstoppable_token<stop_token_of_t<env_of_t<Rcvr>>>) {
                if (get_stop_token(get_env(rcvr_)).stop_requested()) {
                    set_stopped(static_cast<Rcvr&&>(rcvr_));
                    return;
                }
            }
            set_value(static_cast<Rcvr&&>(rcvr_));
        }

        run_loop& loop_;
        [[no_unique_address]] Rcvr rcvr_;
        phase phase_ = phase::idle;  // written before the push and after the pop
    };

    // The operation of schedule_after and schedule_at.
    template <class Rcvr>
    class timed_operation final : timer {
    public:
        using operation_state_concept = operation_state_tag;
        timed_operation(run_loop& loop, instant at, time_span after, Rcvr rcvr) noexcept
            : loop_(loop), rcvr_(static_cast<Rcvr&&>(rcvr)), cancel_(*this), after_(after) {
            this->when = at;
        }
        ~timed_operation() {
            COPPICE_CHECK(phase_ != phase::running,
                          "a timer on a run_loop was destroyed while it was running");
        }
        void start() & noexcept {
            COPPICE_CHECK(phase_ == phase::idle, "a timer on a run_loop was started twice");
            phase_ = phase::running;
            if (this->when == instant::never()) this->when = monotonic_now() + after_;
            on_stop_.engage(get_stop_token(execution::get_env(rcvr_)), push_cancel(*this));
            loop_.push_back(*this);
        }

    private:
        enum class phase : unsigned char { idle, running, over };
        class cancel_item final : public item {
        public:
            explicit cancel_item(timed_operation& op) noexcept : op_(op) {}
            void execute() noexcept override { op_.cancel(); }

        private:
            timed_operation& op_;
        };
        class push_cancel {
        public:
            explicit push_cancel(timed_operation& op) noexcept : op_(&op) {}
            void operator()() noexcept {
                if (!internal::planted("run_loop.cancel_unseen")) op_->cancel_pushed_.write(true);
                op_->loop_.push_back(op_->cancel_);
            }

        private:
            timed_operation* op_;
        };

        // The next three run on the loop.
        void execute() noexcept override {
            if (cancelled_) {
                complete_stopped();
            } else {
                armed_ = true;
                loop_.arm(*this);
            }
        }
        void cancel() noexcept {
            cancelled_ = true;
            if (std::exchange(armed_, false)) {
                loop_.disarm(*this);
            } else if (!expired_) {
                return;  // execute() has not armed it yet, and will complete it
            }
            complete_stopped();
        }
        void expire() noexcept override {
            armed_ = false;
            expired_ = true;
            // After this, the stop callback has run or will never run.
            on_stop_.reset();
            if (cancel_pushed_.read()) return;  // cancel() is queued, and will complete it
            phase_ = phase::over;
            set_value(static_cast<Rcvr&&>(rcvr_));
        }
        void complete_stopped() noexcept {
            on_stop_.reset();
            phase_ = phase::over;
            if constexpr (!unstoppable_token<stop_token_of_t<env_of_t<Rcvr>>>) {
                set_stopped(static_cast<Rcvr&&>(rcvr_));
            }
        }

        run_loop& loop_;
        [[no_unique_address]] Rcvr rcvr_;
        cancel_item cancel_;
        time_span after_;
        // Written by the stop callback; read after that is deregistered.
        internal::plain<bool> cancel_pushed_{false};
        bool armed_ = false;  // the runner's, like the fields that follow
        bool cancelled_ = false;
        bool expired_ = false;
        phase phase_ = phase::idle;
        [[no_unique_address]] internal::stop_registration<stop_token_of_t<env_of_t<Rcvr>>,
                                                          push_cancel> on_stop_;
    };

    class sender {
    public:
        using sender_concept = sender_tag;
        explicit sender(run_loop& loop) noexcept : loop_(&loop) {}
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
            return operation<Rcvr>(*loop_, static_cast<Rcvr&&>(rcvr));
        }

    private:
        run_loop* loop_;
    };
    class timed_sender {
    public:
        using sender_concept = sender_tag;
        timed_sender(run_loop& loop, instant at, time_span after) noexcept
            : loop_(&loop), at_(at), after_(after) {}
        attrs get_env() const noexcept { return attrs(*loop_); }

        template <class Self, class... Env>
        static consteval auto get_completion_signatures() noexcept {
            return sender::template get_completion_signatures<sender, Env...>();
        }
        template <receiver Rcvr>
        auto connect(Rcvr rcvr) const noexcept {
            return timed_operation<Rcvr>(*loop_, at_, after_, static_cast<Rcvr&&>(rcvr));
        }

    private:
        run_loop* loop_;
        instant at_;  // never() if `after_` counts, from the start
        time_span after_;
    };

    explicit scheduler(run_loop& loop) noexcept : loop_(&loop) {}
    sender schedule() const noexcept { return sender(*loop_); }
    timed_sender schedule_after(time_span span) const noexcept {
        return timed_sender(*loop_, instant::never(), span);
    }
    timed_sender schedule_at(instant when) const noexcept {
        return timed_sender(*loop_, when, time_span(instant::never().nanoseconds()));
    }
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
    run_loop* loop_;
};

inline run_loop::scheduler run_loop::get_scheduler() noexcept {
    return scheduler(*this);
}

}  // namespace coppice::execution
