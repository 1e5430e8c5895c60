// changed_scheduler: a task moves to another scheduler, and returns home when it ends; for task.
#pragma once
// The home of a task is the scheduler on which it was started. Its waiter relies on the task ending
// there. A task that moves makes a context of its own, which brings it home:
//
//   the body gave a value, threw,   the task goes home with its frame and ends there; the frame
//   or ended with with_error        owns the context
//   the task was stopped            the frame is destroyed on the scheduler where the task runs
//                                   now, as an exception would unwind it; only the stop goes home,
//                                   carried by the context, which owns itself and stops the task's
//                                   waiter there
//
// Threads: the thread that runs the task; the end of the way home runs on a thread of the home
// scheduler. Lifetime: the context around the task outlives the way home, because the task's waiter
// waits.

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/starting.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/task/internal/task_chain.hpp>
#include <coppice/task/internal/task_context.hpp>
#include <coppice/task/internal/transfer.hpp>

#include <coroutine>
#include <type_traits>

namespace coppice::execution::internal {

template <class Env>
class task_promise_base;

// Schedules a task on a scheduler. If that fails or is stopped, the task continues all the same,
// because it has no other place. Completed() returns the coroutine to resume there.
template <class Sch, class Completed>
class task_move : immovable {
    class receiver {
    public:
        using receiver_concept = receiver_tag;
        explicit receiver(task_move& move) noexcept : move_(&move) {}
        void set_value() && noexcept { move_->complete(); }
        template <class Error>
        void set_error(Error&&) && noexcept {
            move_->complete();
        }
        void set_stopped() && noexcept { move_->complete(); }
        env<> get_env() const noexcept { return {}; }

    private:
        task_move* move_;
    };

public:
    task_move(Sch sch, Completed completed)
        : completed_(completed),
          operation_(execution::connect(execution::schedule(sch), receiver(*this))) {}
    // Starts the move. Returns true if it has completed already; the caller then resumes the task.
    // If it returns false, this object may be gone.
    bool start() noexcept {
        starting start_call(this, mark_);
        execution::start(operation_);
        return start_call.has_completed();
    }

private:
    void complete() noexcept {
        if (starting::takes_completion_of(this, mark_)) return;
        const Completed completed = completed_;  // this object may be gone below
        resume_from_outside(completed());
    }

    const Completed completed_;
    const starting* mark_ = nullptr;
    connect_result_t<schedule_result_t<Sch&>, receiver> operation_;
};

// The context of a task that has changed its scheduler, and its way home: see above.
template <class Env>
class changed_context final : public task_context<Env>, task_waiter {
    using scheduler_type = typename task_context<Env>::scheduler_type;
    struct is_home {
        changed_context* here;
        std::coroutine_handle<> operator()() const noexcept { return here->arrive(); }
    };
    using way_home = task_move<scheduler_type, is_home>;

public:
    // Connects the way home here, where an exception from connecting can be reported.
    changed_context(scheduler_type sch, task_context<Env>& outer, task_promise_base<Env>& promise)
        : task_context<Env>(static_cast<scheduler_type&&>(sch), outer.stop_token,
                            outer.environment(), outer.timer(), outer.allocator()),
          outer_(outer),
          promise_(promise),
          home_(outer.scheduler, is_home{this}) {
        this->deadline = outer.deadline;
        waiter_ = &promise.add_waiter(*this);
    }
    // Called when the body has ended. Returns true if the task is home already, and the caller ends
    // it. If it returns false, the task ends when it arrives at home.
    bool go_home(std::coroutine_handle<> self) noexcept {
        self_ = self;
        promise_.restore_waiter(*waiter_);
        return outer_.is_inline() || home_.start();
    }

private:
    // Called when the task was stopped and its frame is gone.
    after_stop child_stopped() noexcept override {
        if (outer_.is_inline() || home_.start()) return end_here().child_stopped();
        return after_stop::nothing();  // this object may be gone
    }
    std::coroutine_handle<> arrive() noexcept {
        return self_ ? promise_.end(self_) : task_chain::stop_waiter(end_here());
    }
    task_waiter& end_here() noexcept {
        task_waiter& waiter = *waiter_;
        delete this;
        return waiter;
    }
    // Not called, because the task puts its former waiter back before it ends.
    std::coroutine_handle<> child_ended() noexcept override { return std::noop_coroutine(); }

    task_context<Env>& outer_;
    task_promise_base<Env>& promise_;  // gone if the task was stopped
    task_waiter* waiter_;
    std::coroutine_handle<> self_;  // null if the task was stopped
    way_home home_;
};

// The await of change_coroutine_scheduler, after the context was changed. Schedules nothing if the
// task is on the new scheduler already.
template <class Sch>
class scheduler_change : immovable {
    struct resumes {
        std::coroutine_handle<> self;
        std::coroutine_handle<> operator()() const noexcept { return self; }
    };
    using move_type = task_move<Sch, resumes>;

public:
    scheduler_change(Sch before, Sch to, bool is_there)
        : before_(static_cast<Sch&&>(before)), to_(static_cast<Sch&&>(to)), is_there_(is_there) {}
    ~scheduler_change() {
        if (moving_) move_.destroy();
    }
    bool await_ready() const noexcept { return is_there_; }
    bool await_suspend(std::coroutine_handle<> self) {
        move_.construct_with([this, self] { return move_type(to_, resumes{self}); });
        moving_ = true;
        return !move_.get().start();
    }
    Sch await_resume() noexcept { return static_cast<Sch&&>(before_); }

private:
    Sch before_;
    Sch to_;
    const bool is_there_;
    bool moving_ = false;
    manual_lifetime<move_type> move_;
};

}  // namespace coppice::execution::internal
