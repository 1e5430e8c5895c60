// loop_scheduler: the scheduler of a context, and the sender of its schedule_after().
#pragma once

#include <coppice/base/clock.hpp>
#include <coppice/exec/internal/runs_here.hpp>
#include <coppice/exec/internal/scheduled_sender.hpp>
#include <coppice/exec/timed_scheduler.hpp>
#include <coppice/io/internal/event_loop.hpp>
#include <coppice/io/internal/wait_request.hpp>
#include <coppice/token/transform.hpp>

#include <type_traits>

namespace coppice::io::internal {

class timed_sender;

// See context::scheduler.
class loop_scheduler {
public:
    using scheduler_concept = execution::scheduler_tag;
    using item_type = operation;

    explicit loop_scheduler(event_loop& loop) noexcept : loop_(&loop) {}
    execution::internal::scheduled_sender<loop_scheduler> schedule() const noexcept {
        return execution::internal::scheduled_sender<loop_scheduler>(*this);
    }
    // Returns the sender of schedule(), because posting never blocks and never allocates.
    execution::internal::scheduled_sender<loop_scheduler> try_schedule() const noexcept {
        return schedule();
    }
    // Complete on the loop, not before their time and at most about 0.3 ms after it; complete with
    // set_stopped when the context is destroyed.
    timed_sender schedule_after(duration time) const noexcept;
    timed_sender schedule_at(time_point when) const noexcept;
    time_point now() const noexcept { return loop_->now(); }
    void enqueue(operation& op) const noexcept { loop_->post(op); }

    execution::forward_progress_guarantee query(
        execution::get_forward_progress_guarantee_t) const noexcept {
        return execution::forward_progress_guarantee::parallel;
    }
    bool query(execution::internal::runs_here_t) const noexcept { return loop_->is_current(); }
    template <class Tag>
        requires(!std::is_same_v<Tag, execution::set_error_t>)
    loop_scheduler query(execution::get_completion_scheduler_t<Tag>) const noexcept {
        return *this;
    }
    friend bool operator==(const loop_scheduler&, const loop_scheduler&) noexcept = default;

private:
    event_loop* loop_;
};

inline loop_scheduler event_loop::get_scheduler() noexcept {
    return loop_scheduler(*this);
}

// The sender of schedule_after() and schedule_at(). It has no errors: the end of the context
// completes it as stopped.
class timed_sender {
    template <class Rcvr>
    class operation_state final : wait_request {
    public:
        using operation_state_concept = execution::operation_state_tag;
        operation_state(const arguments& a, Rcvr rcvr) noexcept
            : wait_request(a), rcvr_(static_cast<Rcvr&&>(rcvr)) {}
        void start() & noexcept {
            const completion_env env = completion_env_of(execution::get_env(rcvr_), link_);
            if (begin(env.query(get_stop_token),
                      static_cast<time_point>(env.query(execution::get_deadline)))) {
                completed();
            }
        }

    private:
        void completed() noexcept override {
            link_.reset();
            if (error()) {
                execution::set_stopped(static_cast<Rcvr&&>(rcvr_));
            } else {
                execution::set_value(static_cast<Rcvr&&>(rcvr_));
            }
        }
        [[no_unique_address]] Rcvr rcvr_;
        [[no_unique_address]] stop_link_for<execution::env_of_t<Rcvr>> link_;
    };

public:
    using sender_concept = execution::sender_tag;
    explicit timed_sender(const wait_request::arguments& a) noexcept : arguments_(a) {}

    // The attributes name the loop's scheduler twice: as the one that the sender completes on, and
    // as the timer that a timeout around it uses.
    class attrs {
    public:
        explicit attrs(event_loop& loop) noexcept : loop_(&loop) {}
        template <class Tag>
            requires(!std::is_same_v<Tag, execution::set_error_t>)
        loop_scheduler query(execution::get_completion_scheduler_t<Tag>) const noexcept {
            return loop_->get_scheduler();
        }
        loop_scheduler query(execution::get_timed_scheduler_t) const noexcept {
            return loop_->get_scheduler();
        }

    private:
        event_loop* loop_;
    };
    attrs get_env() const noexcept { return attrs(*arguments_.owner); }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return execution::completion_signatures<execution::set_value_t(),
                                                execution::set_stopped_t()>();
    }
    template <execution::receiver Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation_state<Rcvr>(arguments_, static_cast<Rcvr&&>(rcvr));
    }

private:
    wait_request::arguments arguments_;
};

inline timed_sender loop_scheduler::schedule_after(duration time) const noexcept {
    return timed_sender({*loop_, time});
}
inline timed_sender loop_scheduler::schedule_at(time_point when) const noexcept {
    return timed_sender({*loop_, when});
}

}  // namespace coppice::io::internal
