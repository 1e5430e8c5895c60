// run_loop: a first-in-first-out queue of operations that one thread runs; sync_wait drives one.
#pragma once
// One word carries the whole protocol:
//
//   newest_    finishing bit | sleeping bit | pointer to the newest operation, linked to older ones
//
//   push_back  puts an operation in front of the chain, clears `sleeping`, wakes the sleeper if the
//              bit was set.
//   pop_front  takes the whole chain at once, turns it round, and then serves it without touching
//              the word. With nothing to serve it sets `sleeping` and sleeps on the word, or leaves
//              when `finishing` is set.
//   finish     sets `finishing`, clears `sleeping`. It is the last thing the finishing thread does
//              to the loop but for a wake by address: the loop may be gone already (sync_wait
//              returns as soon as the word says so).
//
// Threads: schedule, push and finish from any; run from one at a time. Source: [exec.run.loop].

#include <coppice/base/atomic.hpp>
#include <coppice/base/check.hpp>
#include <coppice/base/futex.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/scheduler.hpp>

namespace coppice::execution {

class run_loop : immovable {
public:
    // What the queue holds: derived from by the operations of schedule().
    class item : immovable {
    public:
        virtual void execute() noexcept = 0;
        plain<item*> next{nullptr};  // the loop's: written by the pusher, then by the runner

    protected:
        item() = default;
        ~item() = default;
    };

    class scheduler;

    run_loop() noexcept = default;
    // Misuse: a loop with operations in it, or one that is running, stops the process.
    ~run_loop() {
        COPPICE_CHECK(serving_ == nullptr && (newest_.load(acquire) & ~finishing) == 0,
                      "a run_loop was destroyed with operations in its queue");
        COPPICE_CHECK(!running_, "a run_loop was destroyed while it was running");
    }

    scheduler get_scheduler() noexcept;

    // Runs what is queued until finish() was called and the queue is empty. Blocks: until then.
    // Threads: one at a time.
    void run() noexcept {
        COPPICE_CHECK(!running_, "run_loop::run() was called while the loop was running");
        running_ = true;
        while (item* const next = pop_front()) next->execute();
        running_ = false;
    }

    // Makes run() return once the queue is empty. The loop may be destroyed by the runner before
    // this returns.
    void finish() noexcept {
        std::uintptr_t seen = newest_.load(relaxed);
        // edge run_loop.finish (release): what the finishing thread did; pairs with pop_front()
        while (!newest_.compare_exchange_weak(seen, (seen & ~sleeping) | finishing, release, relaxed)) {
        }
        if ((seen & sleeping) != 0) futex_wake_one(newest_);
    }

    // Queues an operation. Threads: any. Blocks: never.
    void push_back(item& pushed) noexcept {
        std::uintptr_t seen = newest_.load(relaxed);
        std::uintptr_t next;
        do {
            pushed.next.write(pointer(seen));
            next = reinterpret_cast<std::uintptr_t>(&pushed) | (seen & finishing);
            // edge run_loop.push (release): the operation is linked; pairs with pop_front()
        } while (!newest_.compare_exchange_weak(seen, next, release, relaxed));
        if ((seen & sleeping) != 0 && !planted("run_loop.forget_wake")) futex_wake_one(newest_);
    }

private:
    static constexpr std::uintptr_t finishing = 1;
    static constexpr std::uintptr_t sleeping = 2;

    static item* pointer(std::uintptr_t word) noexcept {
        return reinterpret_cast<item*>(word & ~(finishing | sleeping));
    }

    // The oldest operation, or nullptr once the loop is to end.
    item* pop_front() noexcept {
        for (;;) {
            if (item* const oldest = serving_) {
                serving_ = oldest->next.read();
                return oldest;
            }
            // edge run_loop.push (acquire), edge run_loop.finish (acquire): sees what they did
            const std::uintptr_t seen = newest_.fetch_and(finishing, acquire);
            if (pointer(seen) != nullptr) {
                serving_ = reversed(pointer(seen));
                continue;
            }
            if ((seen & finishing) != 0) return nullptr;
            sleep();
        }
    }
    void sleep() noexcept {
        std::uintptr_t empty = 0;
        // relaxed: the chain is taken, with acquire, only after waking.
        if (newest_.compare_exchange_strong(empty, sleeping, relaxed, relaxed)) {
            while (newest_.load(relaxed) == sleeping) futex_wait(newest_, sleeping);
        }
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

    atomic<std::uintptr_t> newest_{0};  // states above; written by all threads
    item* serving_ = nullptr;           // the runner's: oldest first
    bool running_ = false;              // the runner's
};

// Refers to its loop, which must outlive it and every operation.
class run_loop::scheduler {
public:
    using scheduler_concept = scheduler_tag;

    template <class Rcvr>
    class operation final : item {
    public:
        using operation_state_concept = operation_state_tag;
        operation(run_loop& loop, Rcvr rcvr) noexcept
            : loop_(loop), rcvr_(static_cast<Rcvr&&>(rcvr)) {}
        ~operation() {
            COPPICE_CHECK(!queued_, "an operation on a run_loop was destroyed while queued");
        }
        void start() & noexcept {
            COPPICE_CHECK(!queued_, "an operation on a run_loop was started twice");
            queued_ = true;
            loop_.push_back(*this);
        }

    private:
        void execute() noexcept override {
            queued_ = false;
            using Token = stop_token_of_t<env_of_t<Rcvr>>;
            if constexpr (!unstoppable_token<Token>) {
                if (get_stop_token(get_env(rcvr_)).stop_requested()) {
                    set_stopped(static_cast<Rcvr&&>(rcvr_));
                    return;
                }
            }
            set_value(static_cast<Rcvr&&>(rcvr_));
        }

        run_loop& loop_;
        [[no_unique_address]] Rcvr rcvr_;
        bool queued_ = false;  // written before the push and after the pop
    };

    class sender {
    public:
        using sender_concept = sender_tag;
        explicit sender(run_loop& loop) noexcept : loop_(&loop) {}

        // The attributes: completes on the loop.
        class attrs {
        public:
            explicit attrs(run_loop& loop) noexcept : loop_(&loop) {}
            template <class Tag>
                requires(!std::is_same_v<Tag, set_error_t>)
            run_loop::scheduler query(get_completion_scheduler_t<Tag>) const noexcept {
                return run_loop::scheduler(*loop_);
            }

        private:
            run_loop* loop_;
        };
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

    explicit scheduler(run_loop& loop) noexcept : loop_(&loop) {}
    sender schedule() const noexcept { return sender(*loop_); }
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

inline run_loop::scheduler run_loop::get_scheduler() noexcept { return scheduler(*this); }

}  // namespace coppice::execution
