// The sender of schedule() for resources that queue intrusive items: thread_pool and io::context.
#pragma once
// Scheduler is a copyable handle with
//   item_type                     the queue's item, constructed from void (*)(item_type*) noexcept
//   void enqueue(item_type&)      queues it; the resource calls the function once
// The operation is the item, so scheduling allocates nothing. If a stop has been requested by the
// time the item runs, the operation completes with set_stopped. Source: [exec.sched].

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/exec/timed_scheduler.hpp>

#include <coroutine>

namespace coppice::execution::internal {

template <class Scheduler>
class scheduled_sender {
    using item_type = typename Scheduler::item_type;

public:
    using sender_concept = sender_tag;

    explicit scheduled_sender(Scheduler sch) noexcept : sch_(sch) {}

    // It completes on the scheduler, which is also the timer for a timeout if it has timers.
    class attrs {
    public:
        explicit attrs(Scheduler sch) noexcept : sch_(sch) {}
        template <class Tag>
            requires(!std::is_same_v<Tag, set_error_t>)
        Scheduler query(get_completion_scheduler_t<Tag>) const noexcept {
            return sch_;
        }
        template <std::same_as<get_timed_scheduler_t> Tag>
            requires certainly_timed_scheduler<Scheduler>
        Scheduler query(Tag) const noexcept {
            return sch_;
        }

    private:
        Scheduler sch_;
    };
    attrs get_env() const noexcept { return attrs(sch_); }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        if constexpr (sizeof...(Env) != 0 && (unstoppable_token<stop_token_of_t<Env>> && ...)) {
            return completion_signatures<set_value_t()>();
        } else {
            return completion_signatures<set_value_t(), set_stopped_t()>();
        }
    }

    template <class Rcvr>
    class operation final : item_type {
    public:
        using operation_state_concept = operation_state_tag;
        operation(Scheduler sch, Rcvr rcvr) noexcept
            : item_type(&run), sch_(sch), rcvr_(static_cast<Rcvr&&>(rcvr)) {}
        operation(operation&&) = delete;
        ~operation() {
            COPPICE_CHECK(phase_ != phase::queued,
                          "an operation of a scheduler was destroyed while it was queued: keep it "
                          "until it completes");
        }
        void start() & noexcept {
            COPPICE_CHECK(
                phase_ == phase::idle,
                "an operation of a scheduler was started twice: connect its sender again");
            phase_ = phase::queued;
            sch_.enqueue(*this);  // may destroy *this before it returns
        }

    private:
        enum class phase : unsigned char { idle, queued, over };

        static void run(item_type* item) noexcept {
            operation& self = *static_cast<operation*>(item);
            self.phase_ = phase::over;
            if constexpr (!unstoppable_token<stop_token_of_t<env_of_t<Rcvr>>>) {
                if (get_stop_token(execution::get_env(self.rcvr_)).stop_requested()) {
                    set_stopped(static_cast<Rcvr&&>(self.rcvr_));
                    return;
                }
            }
            set_value(static_cast<Rcvr&&>(self.rcvr_));
        }
        [[no_unique_address]] Scheduler sch_;
        [[no_unique_address]] Rcvr rcvr_;
        phase phase_ = phase::idle;  // written before it is queued, and by the thread that runs it
    };
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(sch_, static_cast<Rcvr&&>(rcvr));
    }

    // The awaiter for a coroutine of any type. It is the queued item; no receiver is needed.
    template <class Promise>
    class awaiter : item_type {
    public:
        explicit awaiter(Scheduler sch) noexcept : item_type(&run), sch_(sch) {}
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
            coroutine_ = coroutine;
            sch_.enqueue(*this);  // the resource may resume and destroy the coroutine at once
        }
        void await_resume() const noexcept {}

    private:
        static void run(item_type* item) noexcept {
            const std::coroutine_handle<Promise> coroutine =
                static_cast<awaiter*>(item)->coroutine_;
            if constexpr (requires(Promise& p) { p.unhandled_stopped(); }) {
                if (get_stop_token(execution::get_env(coroutine.promise())).stop_requested()) {
                    resume(coroutine.promise().unhandled_stopped());
                    return;
                }
            }
            resume(coroutine);
        }
        // Promise::resume_from_outside tells the promise that this is no symmetric transfer
        // (task/internal/transfer.hpp).
        static void resume(std::coroutine_handle<> coroutine) {
            if constexpr (requires { Promise::resume_from_outside(coroutine); }) {
                Promise::resume_from_outside(coroutine);
            } else {
                coroutine.resume();
            }
        }
        [[no_unique_address]] Scheduler sch_;
        std::coroutine_handle<Promise> coroutine_;
    };
    template <class Promise>
    awaiter<Promise> as_awaitable(Promise&) const noexcept {
        return awaiter<Promise>(sch_);
    }
    awaiter<void> operator co_await() const noexcept { return awaiter<void>(sch_); }

private:
    [[no_unique_address]] Scheduler sch_;
};

}  // namespace coppice::execution::internal
