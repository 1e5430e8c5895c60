// once_operation: the life of one async_once::get(), as a task and for any token.
#pragma once

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/sync/internal/once_core.hpp>
#include <coppice/sync/internal/wait_initiation.hpp>
#include <coppice/task/task.hpp>
#include <coppice/token/completion.hpp>
#include <coppice/token/internal/code_of.hpp>
#include <coppice/token/internal/completion_env.hpp>

#include <exception>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coppice::internal {

template <class T>
inline constexpr bool is_task = false;
template <class T, class Env>
inline constexpr bool is_task<execution::task<T, Env>> = true;

template <class T>
struct once_state : once_core {
    manual_lifetime<T> value;  // alive when done
};

// Gets the value. The task that has the turn to run makes it; if it is stopped there, its frame
// ends and `run` passes the turn on.
template <class Env, class T, class F>
execution::task<T&, Env> get_once(once_state<T>& state, F make) {
    once_turn turn = co_await initiate_wait(once_request{&state}, use_await);
    if (turn.kind == once_turn::what::value) co_return state.value.get();
    if (turn.kind == once_turn::what::error) std::rethrow_exception(std::move(turn.error));
    once_run run(state);
    try {
        if constexpr (is_task<std::remove_cvref_t<std::invoke_result_t<F&>>>) {
            state.value.construct(co_await make());
        } else {
            state.value.construct_with(make);
        }
    } catch (...) {
        run.fail(std::current_exception());
        throw;
    }
    run.publish();
    co_return state.value.get();
}

// A get() that completes a token. Its function stays here, since this outlives the task. Its task
// has no scheduler, and continues where it is resumed.
template <class T, class F>
class once_initiation {
    struct in_place {
        using scheduler_type = execution::inline_scheduler;
    };
    class receiver {
    public:
        using receiver_concept = execution::receiver_tag;
        explicit receiver(once_initiation& i) noexcept : initiation_(&i) {}
        void set_value(T& value) && noexcept { initiation_->complete(no_error, value); }
        void set_error(const std::exception_ptr& error) && noexcept {
            initiation_->complete(code_of(error), initiation_->state_->value.get());
        }
        void set_stopped() && noexcept {
            initiation_->complete(std::make_error_code(std::errc::operation_canceled),
                                  initiation_->state_->value.get());
        }
        completion_env get_env() const noexcept { return initiation_->completion_.get_env(); }

    private:
        once_initiation* initiation_;
    };
    using task_type = execution::task<T&, in_place>;
    using operation_type = execution::connect_result_t<task_type, receiver>;

public:
    static constexpr const char* name = once_request::name;

    once_initiation(once_state<T>& state, F make) : state_(&state), make_(std::move(make)) {}
    // Moved only before it begins.
    once_initiation(once_initiation&& other) noexcept(std::is_nothrow_move_constructible_v<F>)
        : state_(other.state_), make_(std::move(other.make_)) {}
    ~once_initiation() {
        if (connected_) operation_.destroy();
    }

    void operator()(completion<T&> done) noexcept {
        completion_ = done;
        try {
            operation_.construct_with([this] {
                return execution::connect(get_once<in_place, T, F&>(*state_, make_),
                                          receiver(*this));
            });
        } catch (const std::bad_alloc&) {
            complete(std::make_error_code(std::errc::not_enough_memory), state_->value.get());
            return;
        }
        connected_ = true;
        execution::start(operation_.get());  // this object may be gone
    }

private:
    // With an error, the reference is to where the value would be.
    void complete(std::error_code error, T& value) noexcept {
        std::move(completion_)(error, value);
    }

    once_state<T>* state_;
    F make_;
    completion<T&> completion_;
    manual_lifetime<operation_type> operation_;
    bool connected_ = false;
};

}  // namespace coppice::internal
