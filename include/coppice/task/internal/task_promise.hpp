// The promise of a task: how it is resumed, what its body may await, how it ends. Used by task.
#pragma once

#include <coppice/exec/affine.hpp>
#include <coppice/exec/as_awaitable.hpp>
#include <coppice/task/internal/changed_scheduler.hpp>
#include <coppice/task/internal/task_chain.hpp>
#include <coppice/task/internal/task_context.hpp>
#include <coppice/task/internal/task_frame.hpp>
#include <coppice/task/internal/task_outcome.hpp>
#include <coppice/task/internal/transfer.hpp>
#include <coppice/task/internal/way_back.hpp>

#include <coroutine>
#include <cstring>
#include <exception>
#include <type_traits>
#include <utility>

namespace coppice::execution {

// `co_yield with_error(e)` ends a task with set_error(e). Source: [exec.with.error].
template <class E>
struct with_error {
    using type = std::remove_cvref_t<E>;
    // A constructor, because g++ 12 destroys aggregates in co_yield and co_await twice.
    explicit with_error(type e) noexcept(std::is_nothrow_move_constructible_v<type>)
        : error(static_cast<type&&>(e)) {}
    type error;
};
template <class E>
with_error(E) -> with_error<E>;

// An await of a sender that comes back to the task's scheduler, or a direct one if the task has
// none. The context decides which at run time.
template <class Value, class Promise>
class task_await : immovable {
    using direct_type = internal::call_result_t<as_awaitable_t, Value, Promise&>;
    using direct_awaiter = decltype(awaiter_of(std::declval<direct_type>()));
    struct direct : immovable {
        direct(Value&& value, Promise& promise)
            : awaitable(as_awaitable(static_cast<Value&&>(value), promise)),
              awaiter(execution::awaiter_of(static_cast<direct_type&&>(awaitable))) {}
        direct_type awaitable;
        direct_awaiter awaiter;
    };
    using affine_sender_type = internal::call_result_t<affine_t, Value>;
    using affine_type = internal::call_result_t<as_awaitable_t, affine_sender_type, Promise&>;

public:
    task_await(Value&& value, Promise& promise) : is_direct_(promise.context().is_inline()) {
        if (is_direct_) {
            ::new (static_cast<void*>(&direct_)) direct(static_cast<Value&&>(value), promise);
        } else {
            ::new (static_cast<void*>(&affine_))
                affine_type(as_awaitable(affine(static_cast<Value&&>(value)), promise));
        }
    }
    ~task_await() {
        if (is_direct_) {
            direct_.~direct();
        } else {
            affine_.~affine_type();
        }
    }
    bool await_ready() { return is_direct_ ? direct_.awaiter.await_ready() : false; }
    // The return type depends on the compiler, and so does the name of the function: transfer.hpp.
    template <class Suspension = suspension>
    auto await_suspend(std::coroutine_handle<Promise> h) {
        using result = decltype(direct_.awaiter.await_suspend(h));
        if constexpr (is_coroutine_handle<result>) {
            if (is_direct_) return std::coroutine_handle<>(direct_.awaiter.await_suspend(h));
            return affine_.await_suspend(h) ? std::noop_coroutine() : std::coroutine_handle<>(h);
        } else {
            if (!is_direct_) return affine_.await_suspend(h);
            if constexpr (std::is_void_v<result>) {
                direct_.awaiter.await_suspend(h);
                return true;
            } else {
                return direct_.awaiter.await_suspend(h);
            }
        }
    }
    decltype(auto) await_resume() {
        return is_direct_ ? direct_.awaiter.await_resume() : affine_.await_resume();
    }

private:
    const bool is_direct_;
    union {
        direct direct_;
        affine_type affine_;
    };
};

// Types that keep the scheduler of a task themselves, so that it awaits them unchanged.
template <class T>
concept keeps_scheduler = requires { typename std::remove_cvref_t<T>::keeps_scheduler; };

// Senders that, as awaiters, report what failed and on which object. The error of a sender does
// not.
template <class T>
concept tells_failure = requires { requires T::tells_failure; };

// Base class of awaitables that await tasks of Env. They end on the scheduler where they began,
// unless Env lets a task continue where an await ended.
template <class Env>
struct ends_where_it_began {
    using keeps_scheduler = void;
};
template <class Env>
    requires std::same_as<typename task_start_scheduler<Env>::type, inline_scheduler>
struct ends_where_it_began<Env> {};

// Types whose awaiters call tasks. Only their awaits leave the awaiting task attached.
template <class T>
concept awaits_tasks = requires { typename std::remove_cvref_t<T>::awaits_tasks; };

template <class Value, class Promise>
concept awaited_affine =
    sender<Value> && std::move_constructible<std::decay_t<Value>> &&
    std::constructible_from<std::decay_t<Value>, Value> && internal::callable<affine_t, Value> &&
    awaited_in<internal::call_result_t<affine_t, Value>, Promise>;
template <class Value, class Promise>
using direct_result_t = resume_result_t<decltype(execution::awaiter_of(
    std::declval<internal::call_result_t<as_awaitable_t, Value, Promise&>>()))>;
template <class Value, class Promise>
using affine_result_t =
    decltype(std::declval<internal::call_result_t<
                 as_awaitable_t, internal::call_result_t<affine_t, Value>, Promise&>&>()
                 .await_resume());

// The part of a promise that does not depend on the result.
template <class Env>
class task_promise_base : public task_frame,
                          public task_frame_allocator<typename task_allocator<Env>::type>,
                          public task_chain {
    using allocator_type = typename task_allocator<Env>::type;

public:
    task_promise_base() = default;
    template <class... Args>
        requires gives_frame<Args...>
    explicit task_promise_base(const Args&... args) noexcept
        : task_frame_allocator<allocator_type>(args...) {
        this->add(this->given_frame);
    }
    [[gnu::always_inline]] ~task_promise_base() {
        if (this->has(this->own_context)) [[unlikely]]
            delete static_cast<changed_context<Env>*>(context_);
    }

    static void resume_from_outside(std::coroutine_handle<> coroutine) {
        execution::resume_from_outside(coroutine);
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }

    // Awaited by co_yield with_error: ends the body.
    class cut_short {
    public:
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) const noexcept {
            task_promise_base& promise =
                self.promise();  // the awaiter may be gone after end_or_go_home
            promise.detach();
            return promise.end_or_go_home(self);
        }
        void await_resume() const noexcept {}
    };
    [[gnu::noinline]] std::coroutine_handle<> end_or_go_home(
        std::coroutine_handle<> self) noexcept {
        if (!this->has(this->own_context)) [[likely]]
            return this->end(self);
        auto& changed = *static_cast<changed_context<Env>*>(context_);
        return changed.go_home(self) ? this->end(self) : std::noop_coroutine();
    }
    task_context<Env>& context() const noexcept { return *context_; }
    task_env<Env> get_env() const noexcept { return task_env<Env>(context_, this->allocator()); }

protected:
    typename task_context<Env>::scheduler_type exchange_scheduler(
        typename task_context<Env>::scheduler_type sch) {
        auto before = context_->scheduler;
        if (this->has(this->own_context)) {
            context_->change_scheduler(static_cast<decltype(sch)&&>(sch));
        } else {
            this->detach();
            context_ =
                new changed_context<Env>(static_cast<decltype(sch)&&>(sch), *context_, *this);
            this->add(this->own_context);
        }
        return before;
    }

    void set_context(task_context<Env>& context) noexcept { context_ = &context; }

private:
    friend class changed_context<Env>;

    task_context<Env>* context_;  // owned by this promise if the task has changed its scheduler
};

template <class T, class Env>
class task;

// What all kinds of tasks share: awaits and errors.
template <class Derived, class Value, class Env>
class task_promise_common : public end_of_body<Derived>, public task_promise_base<Env> {
    using errors = typename task_errors<Env>::type;

public:
    using outcome_type = task_outcome<Value, errors>;
    static_assert(alignof(outcome_type) <= internal::frame_pool::class_bytes,
                  "task: results and errors may be aligned to 64 bytes at most, as the frames of "
                  "coroutines are; put them on the heap");
    task_promise_common() = default;
    template <class... Args>
        requires gives_frame<Args...>
    explicit task_promise_common(const Args&... args) noexcept : task_promise_base<Env>(args...) {
        static_assert(alignof(outcome_type) <= given_frame_align,
                      "task: where an allocator gives the frame, results and errors may be aligned "
                      "to 32 bytes at most; put them on the heap");
    }
    [[gnu::always_inline]] ~task_promise_common() {
        if (this->has(this->kept_outcome)) [[unlikely]]
            kept_.destroy();
    }

    decltype(auto) final_suspend() noexcept { return this->to_be_awaited(); }

    // Called before the task is resumed for the first time. `is_attached` says if it runs on top of
    // its waiter. `outcome` is where the waiter wants the outcome; without it the promise keeps the
    // outcome.
    void begin(task_context<Env>& context, task_waiter& waiter, bool is_attached,
               outcome_type& outcome) noexcept {
        this->set_context(context);
        this->set_waiter(waiter, is_attached);
        outcome_ = &outcome;
    }
    void begin(task_context<Env>& context, task_waiter& waiter, bool is_attached) noexcept {
        COPPICE_CHECK(!this->has(this->kept_outcome), "a task was waited for twice");
        begin(context, waiter, is_attached, kept_.construct());
        this->add(this->kept_outcome);
    }
    // Returns the outcome of a task that has ended and kept it, or nullptr.
    outcome_type* outcome_kept() noexcept {
        if (!this->has(this->kept_outcome)) [[likely]]
            return nullptr;
        return self().done() || kept_.get().is_error() ? &kept_.get() : nullptr;
    }

    [[gnu::always_inline]] void unhandled_exception() noexcept {
        if constexpr (task_outcome<Value, errors>::holds_exceptions) {
            fail(self());
        } else {
            std::terminate();  // Env says that the task sends no exceptions
        }
    }
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
    template <class V>
    [[gnu::always_inline]] decltype(auto) await_transform(V&& value) {
        Derived& promise = static_cast<Derived&>(*this);
        using Plain = std::remove_cvref_t<V>;
        constexpr bool comes_back =
            keeps_scheduler<V> ||
            std::same_as<typename task_context<Env>::scheduler_type, inline_scheduler>;
        if constexpr (!awaits_tasks<V> || !comes_back) this->detach();
        if constexpr (changes_scheduler<Plain>) {
            using Sch = typename task_context<Env>::scheduler_type;
            Sch to(value.scheduler);
            Sch before = this->exchange_scheduler(to);
            const bool is_there = this->context().is_inline() || before == to;
            return scheduler_change<Sch>(static_cast<Sch&&>(before), static_cast<Sch&&>(to),
                                         is_there);
        } else if constexpr (comes_back) {
            return execution::awaited_as_it_is(static_cast<V&&>(value), promise);
        } else if constexpr (tells_failure<Plain> && awaited_by_stand_in<V, Derived, Env>) {
            return returning_await<V, Derived, Env>(static_cast<V&&>(value), promise);
        } else if constexpr (!is_sender<Plain> || !awaited_affine<V, Derived>) {
            return came_back(static_cast<V&&>(value), promise);
        } else if constexpr (requires { static_cast<V&&>(value).affine(); }) {
            return as_awaitable(affine(static_cast<V&&>(value)), promise);
        } else if constexpr (std::same_as<direct_result_t<V, Derived>,
                                          affine_result_t<V, Derived>>) {
            return task_await<V, Derived>(static_cast<V&&>(value), promise);
        } else {
            return as_awaitable(affine(static_cast<V&&>(value)), promise);
        }
    }
    std::coroutine_handle<> unhandled_stopped() noexcept { return this->stop(self()); }

protected:
    outcome_type* outcome_;  // the waiter's, or kept_

private:
    manual_lifetime<outcome_type> kept_;

    std::coroutine_handle<Derived> self() noexcept {
        return std::coroutine_handle<Derived>::from_promise(static_cast<Derived&>(*this));
    }
    // Stores the exception and detaches the task. The waiter of a detached task checks its outcome,
    // so the waiter of an attached one need not check whether it failed.
    [[gnu::noinline, gnu::cold]] static void fail(std::coroutine_handle<Derived> self) noexcept {
        self.promise().outcome_->set_current_exception();
        self.promise().detach();
    }
    // Awaits an awaitable that cannot be made affine, or is not a sender.
    template <class V>
    static decltype(auto) came_back(V&& value, Derived& promise) {
        using Sch = typename task_context<Env>::scheduler_type;
        if constexpr (awaited_by_stand_in<V, Derived, Env>) {
            return returning_await<V, Derived, Env>(static_cast<V&&>(value), promise);
        } else if constexpr (awaited_affine<V, Derived>) {
            return as_awaitable(affine(static_cast<V&&>(value)), promise);
        } else if constexpr (!awaited_in<V, Derived>) {
            return execution::awaited_as_it_is(static_cast<V&&>(value), promise);
        } else if constexpr (!infallible_scheduler<Sch, env<>>) {
            return await_without_a_way_back<Sch>();
        } else {
            return await_that_does_not_come_back<V>();
        }
    }
};

template <class T, class Env>
class task_promise final : public task_promise_common<task_promise<T, Env>, T, Env> {
    using base = task_promise_common<task_promise<T, Env>, T, Env>;

public:
    using base::base;
    [[gnu::always_inline]] ~task_promise() {
    }  // not defaulted: g++ 12 would then call it out of line
    task<T, Env> get_return_object() noexcept;

    template <class U = T>
        requires std::is_constructible_v<T, U>
    void return_value(U&& value) noexcept(std::is_nothrow_constructible_v<T, U>) {
        this->outcome_->set_value(std::forward<U>(value));
    }
};

template <class T, class Env>
class task_promise<T&, Env> final : public task_promise_common<task_promise<T&, Env>, T*, Env> {
    using base = task_promise_common<task_promise<T&, Env>, T*, Env>;

public:
    using base::base;
    [[gnu::always_inline]] ~task_promise() {}  // as above
    task<T&, Env> get_return_object() noexcept;

    void return_value(T& value) noexcept { this->outcome_->set_value(__builtin_addressof(value)); }
};

template <class Env>
class task_promise<void, Env> final
    : public task_promise_common<task_promise<void, Env>, no_task_value, Env> {
    using base = task_promise_common<task_promise<void, Env>, no_task_value, Env>;

public:
    using base::base;
    [[gnu::always_inline]] ~task_promise() {}  // as above
    task<void, Env> get_return_object() noexcept;

    void return_void() noexcept { this->outcome_->set_value(); }
};

}  // namespace coppice::execution
