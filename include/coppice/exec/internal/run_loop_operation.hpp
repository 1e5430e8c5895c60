// The operations of a run_loop: schedule, and the timers of schedule_after and schedule_at.
#pragma once
// A stop of a timer arrives on any thread. Its callback pushes a second item, so that the timer is
// removed and completed on the loop.

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/run_loop_queue.hpp>
#include <coppice/exec/internal/stop_registration.hpp>

#include <utility>

namespace coppice::execution::internal {

// The operation of schedule.
template <class Rcvr>
class run_loop_operation final : run_loop_item {
public:
    using operation_state_concept = operation_state_tag;
    run_loop_operation(run_loop_queue& loop, Rcvr rcvr) noexcept
        : loop_(loop), rcvr_(static_cast<Rcvr&&>(rcvr)) {}
    ~run_loop_operation() {
        COPPICE_CHECK(phase_ != phase::queued,
                      "an operation on a run_loop was destroyed while it was queued: keep it until "
                      "it completes");
    }
    void start() & noexcept {
        COPPICE_CHECK(phase_ == phase::idle,
                      "an operation on a run_loop was started twice: connect its sender again");
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

    run_loop_queue& loop_;
    [[no_unique_address]] Rcvr rcvr_;
    phase phase_ = phase::idle;  // written before the push and after the pop
};

// True if a timer may complete as stopped: a stop request, or a deadline, may come first.
template <class Env>
inline constexpr bool run_loop_timer_stops =
    !unstoppable_token<stop_token_of_t<Env>> || has_query<Env, get_deadline_t>;

// The operation of schedule_after and schedule_at. Ends as stopped at the deadline of the
// environment, if that is earlier.
template <class Rcvr>
class run_loop_timer_operation final : run_loop_timer {
public:
    using operation_state_concept = operation_state_tag;
    run_loop_timer_operation(run_loop_queue& loop, instant at, time_span after, Rcvr rcvr) noexcept
        : loop_(loop), rcvr_(static_cast<Rcvr&&>(rcvr)), cancel_(*this), after_(after) {
        this->when = at;
    }
    ~run_loop_timer_operation() {
        COPPICE_CHECK(
            phase_ != phase::running,
            "a timer on a run_loop was destroyed while it was running: keep it until it completes");
    }
    void start() & noexcept {
        COPPICE_CHECK(phase_ == phase::idle,
                      "a timer on a run_loop was started twice: connect its sender again");
        phase_ = phase::running;
        const auto env = execution::get_env(rcvr_);
        if (this->when == instant::never()) this->when = monotonic_now() + after_;
        const instant deadline = get_unwatched_deadline(env);
        if (deadline < this->when) {
            this->when = deadline;
            ends_stopped_ = true;
        }
        on_stop_.engage(get_stop_token(env), push_cancel(*this));
        loop_.push_back(*this);
    }

private:
    enum class phase : unsigned char { idle, running, over };
    class cancel_item final : public run_loop_item {
    public:
        explicit cancel_item(run_loop_timer_operation& op) noexcept : op_(op) {}
        void execute() noexcept override { op_.cancel(); }

    private:
        run_loop_timer_operation& op_;
    };
    class push_cancel {
    public:
        explicit push_cancel(run_loop_timer_operation& op) noexcept : op_(&op) {}
        void operator()() noexcept {
            if (!planted("run_loop.cancel_unseen")) op_->cancel_pushed_.write(true);
            op_->loop_.push_back(op_->cancel_);
        }

    private:
        run_loop_timer_operation* op_;
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
        if constexpr (run_loop_timer_stops<env_of_t<Rcvr>>) {
            if (ends_stopped_) {
                set_stopped(static_cast<Rcvr&&>(rcvr_));
                return;
            }
        }
        set_value(static_cast<Rcvr&&>(rcvr_));
    }
    void complete_stopped() noexcept {
        on_stop_.reset();
        phase_ = phase::over;
        if constexpr (run_loop_timer_stops<env_of_t<Rcvr>>) {
            set_stopped(static_cast<Rcvr&&>(rcvr_));
        }
    }

    run_loop_queue& loop_;
    [[no_unique_address]] Rcvr rcvr_;
    cancel_item cancel_;
    time_span after_;
    // Written by the stop callback; read after that is deregistered.
    plain<bool> cancel_pushed_{false};
    bool ends_stopped_ = false;  // it waits for the deadline; written before the push
    bool armed_ = false;         // the runner's, like the fields that follow
    bool cancelled_ = false;
    bool expired_ = false;
    phase phase_ = phase::idle;
    [[no_unique_address]] stop_registration<stop_token_of_t<env_of_t<Rcvr>>, push_cancel> on_stop_;
};

}  // namespace coppice::execution::internal
