// shared_task<T>: a task that runs once, and gives its result to every coroutine that awaits it.
#pragma once
// The first await starts it, in the environment of that waiter: it runs on that waiter's scheduler.
// Each waiter continues on its own scheduler, and gets `const T&`, or the exception. A waiter that
// is stopped leaves; the others do not notice. The deadline of a waiter neither limits the task nor
// ends the wait: put a timeout around the await.
//
// When the last copy and the last waiter have gone, the task is stopped. No thread waits for its
// end, so what it refers to must live until then, and so must the scheduler of the waiter that
// started it. A waiter that was given the last copy, by `co_await std::move(s)`, does not leave
// when it is stopped. It stops the task, and waits until the task has ended.
//
// Source: ours; cppcoro's type of this name has no stop.

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/env.hpp>
#include <coppice/exec/sender.hpp>
#include <coppice/task/internal/shared_task_wait.hpp>
#include <coppice/task/task.hpp>

#include <coroutine>
#include <utility>

namespace coppice::execution {

// The return type of a coroutine, or made from a task. Copies share the work. Threads: as a
// std::shared_ptr: several threads may use copies, and await the same object. Cost: at its
// creation, a frame and a state, both from the thread's frame_pool; an await allocates nothing, and
// registers two stop callbacks. Lifetime: the result lives as long as a copy or an await.
template <class T = void, class Env = env<>>
class [[nodiscard]] shared_task {
    using state_type = internal::shared_task_state<T, Env>;
    using handle_type = internal::shared_handle<state_type>;

public:
    using sender_concept = sender_tag;
    using promise_type = internal::task_promise<T, Env>;
    // Waiters that have the context of a task come back to its scheduler by themselves.
    using keeps_scheduler = void;

    // Makes a task shareable; it has not been awaited. Errors: std::bad_alloc.
    shared_task(task<T, Env>&& work) : state_(make(work)) {}

    // Returns true if awaiting gives the result at once.
    bool is_ready() const noexcept {
        check();
        return state_->has_ended();
    }

    // The functions of an awaitable. Return the result. Errors: throw the task's error.
    template <class Promise>
    auto as_awaitable(Promise& promise) const& {
        return awaiter(handle(), promise);
    }
    template <class Promise>
    auto as_awaitable(Promise& promise) && {
        return awaiter(take(), promise);
    }
    internal::followed_awaiter<T, Env, void> operator co_await() const& {
        return internal::followed_awaiter<T, Env, void>(handle());
    }
    internal::followed_awaiter<T, Env, void> operator co_await() && {
        return internal::followed_awaiter<T, Env, void>(take());
    }

    // The functions of a sender. Completes with const l-values of the result or of the error, or
    // with set_stopped, where the task ends.
    template <class Self, class... Outer>
    static consteval auto get_completion_signatures() noexcept {
        return typename internal::shared_completions<
            T, typename internal::task_errors<Env>::type>::type();
    }
    template <receiver Rcvr>
    internal::shared_task_operation<T, Env, Rcvr> connect(Rcvr rcvr) const& noexcept {
        return {handle(), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
    internal::shared_task_operation<T, Env, Rcvr> connect(Rcvr rcvr) && noexcept {
        return {take(), static_cast<Rcvr&&>(rcvr)};
    }

private:
    static state_type& make(task<T, Env>& work) {
        COPPICE_CHECK(work,
                      "a shared_task was made of a task that was awaited or moved from: pass a "
                      "task that has not begun");
        return *new state_type(work);
    }
    void check() const noexcept {
        COPPICE_CHECK(state_, "a shared_task was used after it was moved from: copy it instead");
    }
    handle_type handle() const noexcept {
        check();
        return state_;
    }
    handle_type take() noexcept {
        check();
        return std::move(state_);
    }
    template <class Promise>
    static auto awaiter(handle_type state, Promise& promise) {
        if constexpr (internal::has_task_context<Promise>) {
            return internal::shared_task_awaiter<T, Env, Promise>(std::move(state), promise);
        } else {
            return internal::followed_awaiter<T, Env, Promise>(std::move(state), promise);
        }
    }

    handle_type state_;
};

}  // namespace coppice::execution

namespace coppice {

using execution::shared_task;

}  // namespace coppice
