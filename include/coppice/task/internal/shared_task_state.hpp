// shared_task_state: the task that the copies of a shared_task share, its context, and its result.
#pragma once
// The task runs in a context that is made from the environment of the waiter which starts it: the
// scheduler and the timed scheduler are copied, because that waiter may leave before the task ends.
// The stop token is that of the shared work. The deadline is not taken over, because it is that of
// one waiter.

#include <coppice/exec/internal/alternatives.hpp>
#include <coppice/exec/internal/as_exception.hpp>
#include <coppice/task/internal/shared_work.hpp>
#include <coppice/task/internal/task_operation.hpp>
#include <coppice/task/internal/task_promise.hpp>
#include <coppice/task/internal/task_root.hpp>
#include <coppice/task/internal/transfer.hpp>

#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace coppice::execution::internal {

// The environment of the shared task.
template <class Env>
class shared_task_env {
    using scheduler_type = typename task_context<Env>::scheduler_type;

public:
    template <class Outer>
    shared_task_env(const Outer& outer, inplace_stop_token stop)
        : scheduler_(task_scheduler_from<scheduler_type>(outer)), stop_(stop) {
        const outer_timer<Outer> timer(outer);
        const inherited_timer given = timer.get(outer);
        if (given.scheduler() != nullptr) timer_.emplace(*given.scheduler());
        is_named_ = given.is_named();
    }
    const scheduler_type& query(get_start_scheduler_t) const noexcept { return scheduler_; }
    const scheduler_type& query(get_scheduler_t) const noexcept { return scheduler_; }
    inplace_stop_token query(get_stop_token_t) const noexcept { return stop_; }
    inherited_timer query(get_inherited_timer_t) const noexcept {
        return timer_ ? inherited_timer(*timer_, is_named_) : inherited_timer();
    }

private:
    scheduler_type scheduler_;
    std::optional<any_scheduler> timer_;
    bool is_named_;
    inplace_stop_token stop_;
};

// What the waiters of a shared_task<T> get.
template <class T>
struct shared_result {
    using type = const T&;
    using signature = set_value_t(const T&);
};
template <class T>
struct shared_result<T&> {
    using type = T&;
    using signature = set_value_t(T&);
};
template <>
struct shared_result<void> {
    using type = void;
    using signature = set_value_t();
};

// Threads: started by one waiter; then read by all of them, once the work has ended.
template <class T, class Env>
class shared_task_state final : public shared_work, task_waiter {
    using promise_type = task_promise<T, Env>;
    using errors = typename task_errors<Env>::type;
    // The result as the task stores it: a pointer for a reference, no_task_value for void.
    using stored_type = typename task_return<promise_type, T>::stored_type;
    template <class Sigs>
    struct kept;
    template <class... E>
    struct kept<completion_signatures<set_error_t(E)...>> {
        using type =
            completion_signatures<set_value_t(stored_type), set_error_t(E)..., set_stopped_t()>;
    };
    using result_type = completion_store<typename kept<errors>::type>;
    using env_type = shared_task_env<Env>;

public:
    // Takes the coroutine out of `work`.
    explicit shared_task_state(task<T, Env>& work) noexcept : coroutine_(work.take_coroutine()) {}
    shared_task_state(shared_task_state&&) = delete;
    ~shared_task_state() {
        if (coroutine_) coroutine_.destroy();
        if (is_started_) {
            root_.destroy();
            env_.destroy();
        }
    }
    static void* operator new(std::size_t bytes) { return frame_pool::allocate(bytes); }
    static void operator delete(void* memory, std::size_t bytes) noexcept {
        frame_pool::deallocate(memory, bytes);
    }

    // Starts the task, unless it was started, in the environment `outer`. What it takes from that
    // environment is copied. `is_awaited`: the caller is the await of a task, and returns to the
    // loop of tasks, which may start this one if the stack is deep.
    template <class Outer>
    void start_once(const Outer& outer, bool is_awaited) noexcept {
        if (!this->begin()) return;
        if constexpr (promise_type::outcome_type::holds_exceptions) {
            try {
                make_context(outer);
            } catch (...) {
                result_.keep(set_error, std::current_exception());
                this->end();
                return;
            }
        } else {
            make_context(outer);
        }
        run(is_awaited);
    }
    // The rest is called when the work has ended.

    bool was_stopped() const noexcept { return was_stopped_; }
    // Calls a receiver with const l-values of the result.
    template <class Reader>
    void read(Reader&& receiver) noexcept {
        result_.deliver_copy(receiver);
    }
    // Returns the result. Errors: throws the error of the task, which was not stopped.
    typename shared_result<T>::type get() {
        const stored_type* value = nullptr;
        std::exception_ptr error;
        read(reader{&value, &error});
        if (value == nullptr) std::rethrow_exception(std::move(error));
        if constexpr (std::is_reference_v<T>) {
            return static_cast<T>(**value);
        } else if constexpr (!std::is_void_v<T>) {
            return *value;
        }
    }

private:
    struct reader {
        const stored_type** value;
        std::exception_ptr* error;
        void set_value(const stored_type& stored) && noexcept {
            *value = __builtin_addressof(stored);
        }
        template <class Error>
        void set_error(const Error& given) && noexcept {
            *error = as_exception(given);
        }
        void set_stopped() && noexcept {}
    };
    template <class Outer>
    void make_context(const Outer& outer) {
        env_.construct(outer, this->stop_token());
        scope_exit undo([this] { env_.destroy(); });
        root_.construct(env_.get());
        undo.dismiss();
        is_started_ = true;
    }
    void run(bool is_awaited) noexcept {
        root_.get().listen(env_.get());
        coroutine_.promise().begin(root_.get().context(), *this, starts::detached, outcome_);
        if (!is_awaited) {
            resume_from_outside(std::exchange(coroutine_, {}));
        } else if (transfer_loop::has_room(__builtin_frame_address(0))) {
            std::exchange(coroutine_, {}).resume();
        } else {
            transfer_loop::defer(*this);
        }
    }
    std::coroutine_handle<> resume_deferred() noexcept override {
        return std::exchange(coroutine_, {});
    }
    std::coroutine_handle<> child_ended() noexcept override {
        root_.get().reset();
        outcome_.deliver(
            [this](auto&& value) noexcept {
                result_.keep(set_value, static_cast<decltype(value)>(value));
            },
            [this](auto&& error) noexcept {
                result_.keep(set_error, static_cast<decltype(error)>(error));
            });
        this->end();  // this object may be gone
        return std::noop_coroutine();
    }
    after_stop child_stopped() noexcept override {
        root_.get().reset();
        result_.keep(set_stopped);
        was_stopped_ = true;
        this->end();  // this object may be gone
        return after_stop::nothing();
    }
    void destroy() noexcept override { delete this; }

    std::coroutine_handle<promise_type> coroutine_;  // null once the task runs
    bool is_started_ = false;                        // env_ and root_ exist
    manual_lifetime<env_type> env_;
    manual_lifetime<task_root<Env, env_type>> root_;
    typename promise_type::outcome_type outcome_;
    // Written before the work ends.
    result_type result_;
    bool was_stopped_ = false;
};

}  // namespace coppice::execution::internal
