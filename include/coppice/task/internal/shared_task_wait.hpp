// Waits for a shared_task: by a task that awaits it, and as a sender's operation.
#pragma once

#include <coppice/exec/completion_signatures.hpp>
#include <coppice/exec/sender.hpp>
#include <coppice/task/internal/changed_scheduler.hpp>
#include <coppice/task/internal/shared_task_state.hpp>
#include <coppice/task/internal/shared_work.hpp>
#include <coppice/task/internal/task_await.hpp>
#include <coppice/task/internal/transfer.hpp>
#include <coppice/task/task.hpp>

#include <coroutine>
#include <optional>
#include <type_traits>
#include <utility>

namespace coppice::execution::internal {

// Completes a receiver with the result of a shared task.
template <class T, class Rcvr>
class shared_result_receiver {
public:
    explicit shared_result_receiver(Rcvr& rcvr) noexcept : rcvr_(&rcvr) {}
    template <class Stored>
    void set_value(const Stored& stored) && noexcept {
        if constexpr (std::is_void_v<T>) {
            execution::set_value(static_cast<Rcvr&&>(*rcvr_));
        } else if constexpr (std::is_reference_v<T>) {
            execution::set_value(static_cast<Rcvr&&>(*rcvr_), static_cast<T>(*stored));
        } else {
            execution::set_value(static_cast<Rcvr&&>(*rcvr_), stored);
        }
    }
    template <class Error>
    void set_error(const Error& error) && noexcept {
        execution::set_error(static_cast<Rcvr&&>(*rcvr_), error);
    }
    void set_stopped() && noexcept { execution::set_stopped(static_cast<Rcvr&&>(*rcvr_)); }

private:
    Rcvr* rcvr_;
};

template <class T, class Env, class Rcvr>
class shared_task_operation final : shared_wait<stop_token_of_t<env_of_t<Rcvr>>> {
    using base_type = shared_wait<stop_token_of_t<env_of_t<Rcvr>>>;
    using handle_type = shared_handle<shared_task_state<T, Env>>;

public:
    using operation_state_concept = operation_state_tag;

    shared_task_operation(handle_type state, Rcvr rcvr) noexcept
        : base_type(*state),
          state_(static_cast<handle_type&&>(state)),
          rcvr_(static_cast<Rcvr&&>(rcvr)) {}

    void start() & noexcept {
        COPPICE_CHECK(!std::exchange(is_started_, true),
                      "an operation of shared_task was started twice: connect its sender again");
        const shared_event event = this->wait(get_stop_token(execution::get_env(rcvr_)), [this] {
            state_->start_once(execution::get_env(rcvr_), false);
        });
        if (event != shared_event::none) woken(event);
    }

private:
    void woken(shared_event event) noexcept override {
        if (event == shared_event::stopped) {
            state_.reset();  // the last holder stops the task
            execution::set_stopped(static_cast<Rcvr&&>(rcvr_));
        } else {
            state_->read(shared_result_receiver<T, Rcvr>(rcvr_));
        }
    }

    handle_type state_;
    [[no_unique_address]] Rcvr rcvr_;
    bool is_started_ = false;
};

// The await by a task, or by another coroutine that has the context of one. That continues on the
// scheduler of its context, also when it is stopped. Gives the result; or, if `gives_state`, the
// share of the state, in which the result is.
template <class T, class Env, class Promise, bool gives_state = false>
class shared_task_awaiter final : shared_wait<stop_token_of_t<env_of_t<const Promise&>>>,
                                  task_waiter {
    using base_type = shared_wait<stop_token_of_t<env_of_t<const Promise&>>>;
    using handle_type = shared_handle<shared_task_state<T, Env>>;
    using result_type =
        std::conditional_t<gives_state, handle_type, typename shared_result<T>::type>;
    using scheduler_type =
        std::remove_cvref_t<decltype(std::declval<Promise&>().context().scheduler)>;
    struct continues {
        shared_task_awaiter* self;
        std::coroutine_handle<> operator()() const noexcept { return self->next(); }
    };
    using move_type = task_move<scheduler_type, continues>;

public:
    shared_task_awaiter(handle_type state, Promise& promise) noexcept
        : base_type(*state), state_(static_cast<handle_type&&>(state)), promise_(promise) {}
    ~shared_task_awaiter() {
        if (has_move_) move_.destroy();
    }

    bool await_ready() noexcept {
        if (!state_->has_ended()) return false;
        is_stopped_ = state_->was_stopped();
        return !is_stopped_;
    }
    template <class Suspension = suspension>
    auto await_suspend(std::coroutine_handle<Promise> self) {
        if (is_stopped_) return stop_here<Suspension>();  // of await_ready()
        if (!promise_.context().is_inline()) {
            move_.construct_with(
                [this] { return move_type(promise_.context().scheduler, continues{this}); });
            has_move_ = true;
        }
        const shared_event event = this->wait(get_stop_token(execution::get_env(promise_)), [this] {
            state_->start_once(execution::get_env(promise_), true);
        });
        if (event == shared_event::none) return Suspension::stay();  // this object may be gone
        note(event);
        if (is_stopped_) return stop_here<Suspension>();
        return Suspension::go_on(self);
    }
    // Errors: throws the error of the task, unless the state is given.
    result_type await_resume() {
        if constexpr (gives_state) {
            return static_cast<handle_type&&>(state_);
        } else {
            return state_->get();
        }
    }

private:
    void woken(shared_event event) noexcept override {
        note(event);
        if (has_move_) {
            if (move_.get().start()) resume_from_outside(next());
        } else if (transfer_loop::has_room(__builtin_frame_address(0))) {
            next().resume();
        } else {
            transfer_loop::defer(*this);
        }
    }
    void note(shared_event event) noexcept {
        is_stopped_ = event == shared_event::stopped || state_->was_stopped();
        if (event == shared_event::stopped) state_.reset();  // the last holder stops the task
    }
    // Returns the coroutine to resume. This object may be gone afterwards.
    std::coroutine_handle<> next() noexcept {
        if (is_stopped_) return promise_.unhandled_stopped();
        return std::coroutine_handle<Promise>::from_promise(promise_);
    }
    template <class Suspension>
    auto stop_here() noexcept {
        resume_from_outside(promise_.unhandled_stopped());  // this object is gone
        return Suspension::stay();
    }
    std::coroutine_handle<> resume_deferred() noexcept override { return next(); }
    // Not called: nothing is started with this waiter.
    std::coroutine_handle<> child_ended() noexcept override { return std::noop_coroutine(); }
    after_stop child_stopped() noexcept override { return after_stop::nothing(); }

    handle_type state_;
    Promise& promise_;
    bool is_stopped_ = false;
    bool has_move_ = false;
    manual_lifetime<move_type> move_;
};

// What a task awaits in the place of a coroutine that is no task.
template <class T, class Env>
class shared_task_end {
    using handle_type = shared_handle<shared_task_state<T, Env>>;

public:
    using keeps_scheduler = void;
    explicit shared_task_end(handle_type state) noexcept
        : state_(static_cast<handle_type&&>(state)) {}
    template <class Promise>
    shared_task_awaiter<T, Env, Promise, true> as_awaitable(Promise& promise) && noexcept {
        return {static_cast<handle_type&&>(state_), promise};
    }

private:
    handle_type state_;
};
template <class T, class Env>
task<shared_handle<shared_task_state<T, Env>>> follow_shared(
    shared_handle<shared_task_state<T, Env>> state) {
    co_return co_await shared_task_end<T, Env>(std::move(state));
}
// The await by a coroutine that is no task. Promise is void if it is not known. Cost: a frame from
// the thread's frame_pool.
template <class T, class Env, class Promise>
class followed_awaiter : immovable {
    using handle_type = shared_handle<shared_task_state<T, Env>>;
    using follower_type = task<handle_type>;

public:
    template <class... P>
    explicit followed_awaiter(handle_type state, P&... promise)
        : follower_(internal::follow_shared<T, Env>(std::move(state))),
          awaiter_(follower_, promise...) {}
    bool await_ready() { return awaiter_.await_ready(); }
    template <class Other>
    auto await_suspend(std::coroutine_handle<Other> self) noexcept {
        return awaiter_.await_suspend(self);
    }
    typename shared_result<T>::type await_resume() {
        state_.emplace(awaiter_.await_resume());
        return (*state_)->get();
    }

private:
    follower_type follower_;
    task_awaiter<handle_type, env<>, Promise> awaiter_;
    std::optional<handle_type> state_;  // keeps the result until the end of the full expression
};

template <class T, class Errors>
struct shared_completions;
template <class T, class... E>
struct shared_completions<T, completion_signatures<set_error_t(E)...>> {
    using type = completion_signatures<typename shared_result<T>::signature,
                                       set_error_t(const std::decay_t<E>&)..., set_stopped_t()>;
};

// Promises that have the context of a task.
template <class Promise>
concept has_task_context = requires(Promise& promise) {
    promise.context().is_inline();
    promise.unhandled_stopped();
};

}  // namespace coppice::execution::internal
