// task_promise: how the body of a task begins, and how it ends.
#pragma once
// The life of a task: each step, the function that takes it, and the file where it is.
//
//   created      task_frame::operator new: the frame             task_frame.hpp
//      |         task_promise::get_return_object                 here
//      |
//   awaited      co_await t: waiter_for_task                     task_await.hpp
//      |         co_await wait_for_tasks(t): waiter_for_tasks    waiter_for_tasks.hpp
//      |         connect(t, r): task_operation                   task_operation.hpp
//      |
//   started      waiter_for_task::suspends,
//      |         waiter_for_tasks::run_child and run_stolen,
//      |         task_operation::start: each calls
//      |         task_promise::begin, then resume()              here
//      |         stack deep: transfer_loop::defer                transfer.hpp
//      |
//   runs <----+  co_await x: await_in_task                       await_transform.hpp
//      |      |
//   suspended |  x is not a task: task_chain::detach,            task_chain.hpp
//      |      |  then x.await_suspend
//      |      |
//   resumed --+  on its scheduler, by affine(x) or a stand-in,   exec/affine.hpp, way_back.hpp
//      |         then resume_from_outside                        transfer.hpp
//      |
//   completed    attached: end_of_body::await_ready, and the     here
//      |            waiter's call of resume() returns
//      |         detached: end_or_go_home, task_chain::end,      here, task_chain.hpp
//      |            then child_ended() of the waiter
//      |         failed: fail() detaches it, then the same       here
//      |         away from home: changed_context::go_home        changed_scheduler.hpp
//   or stopped   task_chain::stop,                               task_chain.hpp
//      |            then child_stopped() of the waiter
//      |
//   destroyed    before the waiter is told. The result is in the waiter (task_outcome.hpp). Only
//                an l-value in wait_for_tasks keeps its frame, and the result in its promise.

#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/as_awaitable.hpp>
#include <coppice/task/internal/await_transform.hpp>
#include <coppice/task/internal/changed_scheduler.hpp>
#include <coppice/task/internal/task_chain.hpp>
#include <coppice/task/internal/task_context.hpp>
#include <coppice/task/internal/task_frame.hpp>
#include <coppice/task/internal/task_outcome.hpp>
#include <coppice/task/internal/transfer.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>

namespace coppice::execution {

template <class T, class Env>
class task;
template <class E>
struct with_error;

}  // namespace coppice::execution

namespace coppice::execution::internal {

// The awaiter for the end of the body, returned by final_suspend(). With clang it is a part of the
// promise, so that the frame need not hold it. g++ 12 copies the object to which final_suspend()
// returns a reference, so it gets a reference wrapped in an object.
template <class Promise>
class end_of_body : immovable {
public:
    bool await_ready() noexcept {
        Promise& promise = static_cast<Promise&>(*this);
        if (!promise.ends_attached()) return false;
        // It has no given frame, so operator delete need not check for one.
        void* const frame = std::coroutine_handle<Promise>::from_promise(promise).address();
        if (!task_frame::is_of_the_pool(frame)) __builtin_unreachable();
        return true;
    }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> self) noexcept {
        return static_cast<Promise&>(*this).end_or_go_home(self);
    }
    void await_resume() const noexcept {}

    // Each is passed as one pointer, so object files of both compilers fit together.
#if defined(__clang__)
    end_of_body& to_be_awaited() noexcept { return *this; }
#else
    auto to_be_awaited() noexcept { return awaiter_reference<end_of_body>(*this); }
#endif

protected:
    end_of_body() = default;
    ~end_of_body() = default;
};

// The part of a promise that does not depend on the result: the context, and the end.
template <class Env>
class task_promise_base : public task_frame,
                          public task_frame_allocator<typename task_allocator<Env>::type>,
                          public task_chain {
    using scheduler_type = typename task_context<Env>::scheduler_type;
    using frame_allocator_type = task_frame_allocator<typename task_allocator<Env>::type>;

public:
    task_promise_base() = default;
    template <class... Args>
        requires gives_frame<Args...>
    explicit task_promise_base(const Args&... args) noexcept : frame_allocator_type(args...) {
        this->add(given_frame);
    }
    [[gnu::always_inline]] ~task_promise_base() {
        if (this->has(own_context)) [[unlikely]]
            delete static_cast<changed_context<Env>*>(context_);
    }

    static void resume_from_outside(std::coroutine_handle<> coroutine) {
        internal::resume_from_outside(coroutine);
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }

    task_context<Env>& context() const noexcept { return *context_; }
    task_env<Env> get_env() const noexcept { return task_env<Env>(context_, this->allocator()); }

    // Gives the task another scheduler, and returns the one that it had.
    scheduler_type exchange_scheduler(scheduler_type sch) {
        scheduler_type before = context_->scheduler;
        if (this->has(own_context)) {
            context_->change_scheduler(static_cast<scheduler_type&&>(sch));
        } else {
            this->detach();
            context_ =
                new changed_context<Env>(static_cast<scheduler_type&&>(sch), *context_, *this);
            this->add(own_context);
        }
        return before;
    }

    // Ends a task that has a waiter to tell. A task that has changed its scheduler first goes home.
    [[gnu::noinline]] std::coroutine_handle<> end_or_go_home(
        std::coroutine_handle<> self) noexcept {
        if (!this->has(own_context)) [[likely]]
            return this->end(self);
        auto& changed = *static_cast<changed_context<Env>*>(context_);
        return changed.go_home(self) ? this->end(self) : std::noop_coroutine();
    }
    // Awaited by co_yield with_error: ends the body.
    class cut_short {
    public:
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) const noexcept {
            task_promise_base& promise = self.promise();  // end_or_go_home may end the awaiter
            promise.detach();
            return promise.end_or_go_home(self);
        }
        void await_resume() const noexcept {}
    };

protected:
    void set_context(task_context<Env>& context) noexcept { context_ = &context; }
    // Called before each resumption of an async_generator, which ends once for each of its waiters.
    void begin_again(task_context<Env>& context, task_waiter& waiter, starts how) noexcept {
        if (this->has(own_context)) [[unlikely]] {
            delete static_cast<changed_context<Env>*>(context_);
            this->remove(own_context);
        }
        set_context(context);
        this->add(attached);
        this->set_waiter(waiter, how);
    }

private:
    friend class changed_context<Env>;

    task_context<Env>* context_;  // owned by this promise if the task has changed its scheduler
};

// The co_return of a task<T>, and the object in which its value waits. A base class, because a
// promise may not have both return_value and return_void.
template <class Promise, class T>
class task_return {
public:
    using stored_type = T;
    template <class U = T>
        requires std::is_constructible_v<T, U>
    void return_value(U&& value) noexcept(std::is_nothrow_constructible_v<T, U>) {
        static_cast<Promise&>(*this).outcome().set_value(std::forward<U>(value));
    }
};
template <class Promise, class T>
class task_return<Promise, T&> {
public:
    using stored_type = T*;
    void return_value(T& value) noexcept {
        static_cast<Promise&>(*this).outcome().set_value(__builtin_addressof(value));
    }
};
template <class Promise>
class task_return<Promise, void> {
public:
    using stored_type = no_task_value;
    void return_void() noexcept { static_cast<Promise&>(*this).outcome().set_value(); }
};

template <class T, class Env>
class task_promise final : public end_of_body<task_promise<T, Env>>,
                           public task_promise_base<Env>,
                           public task_return<task_promise<T, Env>, T> {
    using errors = typename task_errors<Env>::type;
    using handle_type = std::coroutine_handle<task_promise>;

public:
    using outcome_type = task_outcome<typename task_return<task_promise, T>::stored_type, errors>;
    static_assert(alignof(outcome_type) <= frame_pool::class_bytes,
                  "task: results and errors may be aligned to 64 bytes at most, as the frames of "
                  "coroutines are; put them on the heap");

    task_promise() = default;
    template <class... Args>
        requires gives_frame<Args...>
    explicit task_promise(const Args&... args) noexcept : task_promise_base<Env>(args...) {
        static_assert(alignof(outcome_type) <= given_frame_align,
                      "task: where an allocator gives the frame, results and errors may be aligned "
                      "to 32 bytes at most; put them on the heap");
    }
    [[gnu::always_inline]] ~task_promise() {
        if (this->has(this->kept_outcome)) [[unlikely]]
            kept_.destroy();
    }
    task<T, Env> get_return_object() noexcept { return task<T, Env>(self()); }

    // Called before the task is resumed for the first time. `outcome` is where the waiter wants the
    // outcome; without it the promise keeps the outcome.
    void begin(task_context<Env>& context, task_waiter& waiter, starts how,
               outcome_type& outcome) noexcept {
        this->set_context(context);
        this->set_waiter(waiter, how);
        outcome_ = &outcome;
    }
    void begin(task_context<Env>& context, task_waiter& waiter, starts how) noexcept {
        COPPICE_CHECK(!this->has(this->kept_outcome),
                      "a task was waited for twice: pass each task once");
        begin(context, waiter, how, kept_.construct());
        this->add(this->kept_outcome);
    }
    outcome_type& outcome() noexcept { return *outcome_; }
    // Returns the outcome of a task that has ended and kept it, or nullptr.
    outcome_type* outcome_kept() noexcept {
        if (!this->has(this->kept_outcome)) [[likely]]
            return nullptr;
        return self().done() || kept_.get().is_error() ? &kept_.get() : nullptr;
    }

    template <class Value>
    [[gnu::always_inline]] decltype(auto) await_transform(Value&& value) {
        return internal::await_in_task<Env>(static_cast<Value&&>(value), *this);
    }

    decltype(auto) final_suspend() noexcept { return this->to_be_awaited(); }
    [[gnu::always_inline]] void unhandled_exception() noexcept {
        if constexpr (outcome_type::holds_exceptions) {
            fail(self());
        } else {
            std::terminate();  // Env says that the task sends no exceptions
        }
    }
    std::coroutine_handle<> unhandled_stopped() noexcept { return this->stop(self()); }
    template <class E>
    auto yield_value(with_error<E> ended) {
        using Given = typename with_error<E>::type;
        using Found = fitting_error<Given, errors>;
        static_assert(Found::count != 0,
                      "with_error: Env's error_types name no error that this one converts to");
        static_assert(Found::count <= 1,
                      "with_error: this error converts to several of Env's error_types: give one "
                      "of them");
        outcome_->template set_error<typename Found::type>(static_cast<Given&&>(ended.error));
        return typename task_promise_base<Env>::cut_short();
    }

private:
    handle_type self() noexcept { return handle_type::from_promise(*this); }
    // Stores the exception and detaches the task. The waiter of a detached task checks its outcome,
    // so the waiter of an attached one need not check whether it failed.
    [[gnu::noinline, gnu::cold]] static void fail(handle_type self) noexcept {
        self.promise().outcome_->set_current_exception();
        self.promise().detach();
    }

    outcome_type* outcome_;  // the waiter's, or kept_
    manual_lifetime<outcome_type> kept_;
};

}  // namespace coppice::execution::internal
