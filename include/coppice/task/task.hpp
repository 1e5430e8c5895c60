// task<T, Env>: a lazy coroutine that one owner awaits; the unit of asynchronous work.
#pragma once
// A task starts when it is awaited, connected, or waited for. When it ends, its owner continues by
// symmetric transfer: no queue, atomic operation, or lock lies between a task and the task that
// awaits it. Its frame comes from the thread's frame_pool. The frame is destroyed before a receiver
// is completed or, in an await, at the end of the full expression.
//
// A task ends in one of three ways. It gives its result: a value, a reference, or nothing. It fails
// with an exception, or with the error of `co_yield with_error(e)`; an await throws the error, and
// a receiver gets it unchanged. Or it is stopped, because a sender that it awaits completed with
// set_stopped; then the coroutines that await it are stopped too.
//
// A task is affine: after each await it is resumed on the scheduler on which it was started, unless
// its environment names none.
//
// internal/task_promise.hpp has a picture of a task's life. Source: [exec.task].

#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/cold_call.hpp>
#include <coppice/exec/env.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/exec/sender.hpp>
#include <coppice/task/internal/task_await.hpp>
#include <coppice/task/internal/task_in_memory.hpp>
#include <coppice/task/internal/task_operation.hpp>
#include <coppice/task/internal/task_promise.hpp>

#include <coroutine>
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
    type error;  // one of the task's error_types, or what converts to exactly one of them
};
template <class E>
with_error(E) -> with_error<E>;

// `co_await change_coroutine_scheduler(s)` moves the task to s, and gives the scheduler that it had
// before. The task continues on s even if it was stopped meanwhile. What it awaits from then on
// comes back to s. However the task ends, its waiter is told on the scheduler where the task was
// started. Source: P3552R3.
template <scheduler Sch>
struct change_coroutine_scheduler {
    using type = std::remove_cvref_t<Sch>;
    // Names the scheduler. The await connects to it, and throws what that throws.
    explicit change_coroutine_scheduler(type sch) noexcept : scheduler(static_cast<type&&>(sch)) {}
    type scheduler;  // where the task goes
};
template <scheduler Sch>
change_coroutine_scheduler(Sch) -> change_coroutine_scheduler<Sch>;

// A coroutine that returns T, a T&, or nothing. Move-only; awaited once, as an r-value. Threads: a
// task may be awaited on another thread than the one that made it; one thread at a time may use it.
// Cost: one frame, from the thread's pool; awaiting costs no allocation and no atomic operation.
// Lifetime: destroying a task that has not run destroys its frame. A task must not be destroyed
// while it is suspended after it has started.
template <class T = void, class Env = env<>>
class
#if defined(__clang__)
    [[clang::trivial_abi]]  // internal/task_in_memory.hpp
#endif
    [[nodiscard]] task : internal::task_in_memory<T>,
                         public internal::ends_where_it_began<Env> {
    static_assert(std::is_same_v<T, void> || std::is_reference_v<T> ||
                      (std::is_object_v<T> && std::is_same_v<T, std::remove_cv_t<T>>),
                  "task<T>: T is void, a reference, or an object type without const or volatile");

public:
    using sender_concept = sender_tag;
    using promise_type = internal::task_promise<T, Env>;
    using handle_type = std::coroutine_handle<promise_type>;
    // Env may have these members, env_type<Outer>, and queries. In the order below, the defaults
    // are std::allocator<std::byte>, task_scheduler, inplace_stop_source, and
    // completion_signatures<set_error_t(std::exception_ptr)>. Env may name start_scheduler_type by
    // scheduler_type too.
    using allocator_type = typename internal::task_allocator<Env>::type;
    using start_scheduler_type = typename internal::task_start_scheduler<Env>::type;
    using stop_source_type = typename internal::task_stop_source<Env>::type;
    using error_types = typename internal::task_errors<Env>::type;
    using scheduler_type = start_scheduler_type;
    using stop_token_type = typename internal::task_context<Env>::stop_token_type;
    using awaits_tasks = void;

    task(task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, {})) {}
    task& operator=(task&& other) noexcept {
        task(std::move(other)).swap(*this);
        return *this;
    }
    ~task() {
        if (coroutine_) destroy(coroutine_);
    }
    void swap(task& other) noexcept { std::swap(coroutine_, other.coroutine_); }

    // Returns false if the task was moved from or awaited.
    explicit operator bool() const noexcept { return static_cast<bool>(coroutine_); }

    // Returns the result of a task that wait_for_tasks has run. Errors: throws the task's error.
    // Stops the process if the task has not been run.
    T get() &&;

    // The functions of an awaitable. Returns the result. Errors: throws the task's error.
    template <class Promise>
    internal::task_awaiter<T, Env, Promise> as_awaitable(Promise& promise) && {
        check();
        return internal::task_awaiter<T, Env, Promise>(*this, promise);
    }
    internal::task_awaiter<T, Env, void> operator co_await() && {
        check();
        return internal::task_awaiter<T, Env, void>(*this);
    }

    // The functions of a sender. Completes with the result, with an error of error_types, or with
    // set_stopped; on the scheduler of the receiver's environment, which is where it is started.
    template <class Self, class... Outer>
    static consteval auto get_completion_signatures() noexcept {
        return typename internal::task_completions<T, error_types>::type();
    }
    template <receiver Rcvr>
    internal::task_operation<T, Env, Rcvr> connect(Rcvr rcvr) && {
        check();
        return internal::task_operation<T, Env, Rcvr>(*this, static_cast<Rcvr&&>(rcvr));
    }
    // Returns the task itself, because a task completes on the scheduler where it was started.
    task affine() && noexcept
        requires internal::keeps_scheduler<internal::ends_where_it_began<Env>>
    {
        return std::move(*this);
    }

    // These three are for the library. The constructor takes ownership of the coroutine, and
    // take_coroutine() gives it away; after coroutine() the task still owns it.
    explicit task(handle_type coroutine) noexcept : coroutine_(coroutine) {}
    handle_type coroutine() const noexcept { return coroutine_; }
    handle_type take_coroutine() noexcept { return std::exchange(coroutine_, {}); }

private:
    void check() const noexcept {
        COPPICE_CHECK(coroutine_,
                      "a task was awaited twice, or after it was moved from: make a shared_task of "
                      "it for several waiters");
    }
    // Takes the handle by value, so that a task need not be in memory.
    COPPICE_COLD_CALL static void destroy(handle_type unused) noexcept { unused.destroy(); }

    handle_type coroutine_;
};

template <class T, class Env>
T task<T, Env>::get() && {
    auto* const outcome = coroutine_ ? coroutine_.promise().outcome_kept() : nullptr;
    COPPICE_CHECK(outcome != nullptr, "get() of a task that has not been run: await it first");
    const task ended(std::move(*this));
    return internal::take_result<T>(*outcome);
}

}  // namespace coppice::execution

namespace coppice {

using execution::task;
using execution::task_scheduler;
using execution::with_error;

}  // namespace coppice
