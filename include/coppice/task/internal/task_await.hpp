// task_await: the await of one task by a coroutine of any type.
#pragma once
// The await calls the task. In most cases the task ends on this stack: then the coroutine continues
// and was never suspended, and the outcome is known to be a value.
//
//   not_begun ---> here                       the task runs on this stack, and ends on it
//       |            |
//       | deferred   v
//       +------> elsewhere ---> ended_elsewhere
//                detached       and the coroutine is resumed or stopped

#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/cold_call.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/task/internal/task_promise.hpp>
#include <coppice/task/internal/transfer.hpp>
#include <coppice/task/internal/waiting_coroutine.hpp>

#include <coroutine>

namespace coppice::execution::internal {

// Owns the task until it runs. Promise is that of the awaiting coroutine, or void if it is not
// known.
template <class T, class Env, class Promise>
class waiter_for_task final : task_waiter {
    using promise_type = task_promise<T, Env>;
    using outcome_type = typename promise_type::outcome_type;
    enum class child : unsigned char { here, not_begun, elsewhere, ended_elsewhere };

public:
    template <class... P>
    [[gnu::always_inline]] explicit waiter_for_task(task<T, Env>& awaited, P&... promise)
        : parent_(promise...), coroutine_(awaited.take_coroutine()) {
        outcome_.construct();
    }
    [[gnu::always_inline]] void destroy() noexcept {
        if constexpr (outcome_type::is_plain) {
            if (child_ != child::here) [[unlikely]]
                clean_up();
        } else {
            if (child_ != child::here) [[unlikely]]
                clean_up_child();
            outcome_.destroy();
        }
    }
    // Takes the outcome of a task that wait_for_tasks has already run.
    bool is_ready() {
        auto* const kept = coroutine_.promise().outcome_kept();
        if (kept == nullptr) [[likely]]
            return false;
        outcome_.get().move_from(*kept);
        return true;
    }
    // Starts the task. Returns false if it has ended on this stack.
    template <class Other>
    [[gnu::always_inline]] bool suspends(std::coroutine_handle<Other> parent) noexcept {
        const auto coroutine = coroutine_;
        task_context<Env>& context = parent_.suspend(parent);
        child_ = child::here;
        bool detached = false;
        if (!transfer_loop::has_room(&detached)) [[unlikely]] {
            coroutine.promise().begin(context, *this, starts::detached, outcome_.get());
            defer();
            return true;
        }
        detached_ = &detached;
        coroutine.promise().begin(context, *this, starts::attached, outcome_.get());
        coroutine.resume();
        return detached;  // if so, this object may be gone
    }
    // Errors: throws the error of the task.
    [[gnu::always_inline]] T result() {
        parent_.end();
        if (child_ != child::here) [[unlikely]]
            outcome_.get().check();
        return take_known_result<T>(outcome_.get());
    }

private:
    COPPICE_COLD_CALL void clean_up() noexcept {
        clean_up_child();
        outcome_.destroy();
    }
    COPPICE_COLD_CALL void clean_up_child() noexcept {
        COPPICE_CHECK(child_ != child::elsewhere,
                      "a coroutine was destroyed while it awaited a task that was running: let the "
                      "task end first");
        if (child_ == child::not_begun) coroutine_.destroy();
    }
    // The stack is deep: the loop starts the task.
    [[gnu::noinline, gnu::cold]] void defer() noexcept {
        child_ = child::not_begun;
        if (parent_.chain() != nullptr) parent_.chain()->detach();
        transfer_loop::defer(*this);
    }
    // Deferred was the start of the task, or the resumption of the parent after it.
    std::coroutine_handle<> resume_deferred() noexcept override {
        if (child_ != child::not_begun) return parent_.self();
        child_ = child::elsewhere;
        return coroutine_;
    }
    task_chain* child_detached() noexcept override {
        *detached_ = true;
        child_ = child::elsewhere;
        return parent_.chain();
    }
    std::coroutine_handle<> child_ended() noexcept override {
        child_ = child::ended_elsewhere;
        return transfer_loop::resume_or_defer(*this, [this] { return parent_.self(); });
    }
    after_stop child_stopped() noexcept override {
        child_ = child::ended_elsewhere;
        return parent_.stopped();
    }

    // First, because it may throw, and then nothing is taken.
    [[no_unique_address]] waiting_coroutine<Env, Promise> parent_;
    const std::coroutine_handle<promise_type> coroutine_;
    bool* detached_;  // in suspends(), because a detached child may end this object
    child child_ = child::not_begun;
    manual_lifetime<outcome_type> outcome_;
};
template <class T, class Env, class Promise>
using task_awaiter = waiting_awaiter<waiter_for_task<T, Env, Promise>>;

}  // namespace coppice::execution::internal
