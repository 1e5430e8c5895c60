// wait_for_tasks: a task waits for several others, which run side by side on a pool's workers.
#pragma once
// The first child is run at once, by symmetric transfer; the others lie in the worker's fork_deque
// meanwhile and are run one after the other by whoever ended the child before, the main line. Those
// that a thief takes, or a worker whose main line has gone elsewhere, end elsewhere
// (task_join.hpp). A wait whose children all run on the main line costs no atomic operation.
//
// Off a pool the children run one after the other. Source: chapter 5 of the thesis
// (WaitForTasksAwaiter, SharedBarrier); the counting is libfork's idea.

#include <coppice/base/atomic.hpp>
#include <coppice/base/fork_deque.hpp>
#include <coppice/task/task.hpp>
#include <coppice/task/task_join.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace coppice::execution {

template <class T>
inline constexpr bool is_task = false;
template <class T, class Env>
inline constexpr bool is_task<task<T, Env>> = true;
template <class Task>
struct task_parameters;
template <class T, class Env>
struct task_parameters<task<T, Env>> {
    using result = T;
    using environment = Env;
};

template <class Task>
using forked_task_value_t =
    std::conditional_t<std::is_void_v<typename task_parameters<std::remove_cvref_t<Task>>::result>,
                       std::monostate, typename task_parameters<std::remove_cvref_t<Task>>::result>;

// Refers to the tasks: task& for l-values, task&& for r-values. Lifetime: of the expression in
// which it was made; it is awaited there.
template <class... Tasks>
class [[nodiscard]] task_wait {
    using first_task = std::remove_cvref_t<std::tuple_element_t<0, std::tuple<Tasks...>>>;
    using env_type = typename task_parameters<first_task>::environment;
    static_assert(
        (std::same_as<env_type,
                      typename task_parameters<std::remove_cvref_t<Tasks>>::environment> &&
         ...),
        "wait_for_tasks: the tasks must have the same Env");
    static constexpr std::size_t count = sizeof...(Tasks);
    static constexpr bool gives_results = !(std::is_lvalue_reference_v<Tasks> && ...);
    static_assert((std::is_reference_v<Tasks> && ...));

public:
    using keeps_scheduler = void;

    explicit task_wait(std::in_place_t, Tasks... tasks) noexcept
        : tasks_(static_cast<Tasks>(tasks)...) {}
    task_wait(task_wait&&) = delete;

    template <class Promise>
    class awaiter;
    template <class Promise>
    awaiter<Promise> as_awaitable(Promise& promise) && {
        return awaiter<Promise>(*this, promise);
    }
    awaiter<void> operator co_await() && { return awaiter<void>(*this); }

private:
    template <std::size_t I>
    auto coroutine() const noexcept {
        return std::get<I>(tasks_).coroutine();
    }
    template <std::size_t I>
    auto value() -> forked_task_value_t<std::tuple_element_t<I, std::tuple<Tasks...>>> {
        using Task = std::tuple_element_t<I, std::tuple<Tasks...>>;
        if constexpr (std::is_void_v<typename task_parameters<std::remove_cvref_t<Task>>::result>) {
            coroutine<I>().promise().take();
            return {};
        } else {
            return coroutine<I>().promise().take();
        }
    }
    // A tuple of it, or of nothing for an l-value, which keeps it.
    template <std::size_t I>
    auto result() {
        using Task = std::tuple_element_t<I, std::tuple<Tasks...>>;
        if constexpr (std::is_lvalue_reference_v<Task>) {
            return std::tuple<>();
        } else {
            return std::tuple<forked_task_value_t<Task>>(value<I>());
        }
    }

    std::tuple<Tasks...> tasks_;
};

// The parent of waiting tasks: a coroutine of any type, or a task, whose promise says all.
template <class Env, class Promise>
class waiting_parent : immovable {
public:
    template <class... P>
    explicit waiting_parent(P&... promise) : context_(promise...) {}
    template <class Other>
    task_context<Env>& suspend(std::coroutine_handle<Other> parent) noexcept {
        parent_ = parent;
        stop_parent_ = [](void* address) noexcept -> std::coroutine_handle<> {
            if constexpr (requires(Other& other) { other.unhandled_stopped(); }) {
                return std::coroutine_handle<Other>::from_address(address)
                    .promise()
                    .unhandled_stopped();
            } else {
                std::terminate();
            }
        };
        context_.listen();
        return context_.get();
    }
    std::coroutine_handle<> resumed() const noexcept { return parent_; }
    std::coroutine_handle<> stopped() const noexcept { return stop_parent_(parent_.address()); }

private:
    awaiting_context<Env, Promise> context_;
    std::coroutine_handle<> parent_;
    std::coroutine_handle<> (*stop_parent_)(void*) noexcept = nullptr;
};
template <class Env, class Promise>
    requires std::derived_from<Promise, task_promise_base<Env>>
class waiting_parent<Env, Promise> : immovable {
public:
    explicit waiting_parent(Promise& promise) noexcept : promise_(promise) {}
    task_context<Env>& suspend(std::coroutine_handle<Promise>) noexcept {
        return promise_.context();
    }
    std::coroutine_handle<> resumed() const noexcept {
        return std::coroutine_handle<Promise>::from_promise(promise_);
    }
    std::coroutine_handle<> stopped() const noexcept { return promise_.unhandled_stopped(); }

private:
    Promise& promise_;
};

struct on_main_line : task_waiter {
    using task_waiter::task_waiter;
};
struct run_elsewhere : task_waiter {
    using task_waiter::task_waiter;
};

// Refers to the task_wait, which lives as long as the awaiting expression.
template <class... Tasks>
template <class Promise>
class task_wait<Tasks...>::awaiter : on_main_line, run_elsewhere {
public:
    template <class... P>
    explicit awaiter(task_wait& wait, P&... promise)
        : on_main_line(&main_child_ended<1>),
          run_elsewhere(&other_child_ended),
          wait_(wait),
          parent_(promise...) {}

    bool await_ready() const noexcept { return false; }
    template <class Other>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Other> parent) noexcept {
        task_context<env_type>& context = parent_.suspend(parent);
        wait_in<0>(context);
        return transfer(wait_.template coroutine<0>());
    }
    // The results of the r-values, in order; nothing if there are none. Errors: the first of them.
    auto await_resume() {
        if constexpr (gives_results) return results(std::make_index_sequence<count>());
    }

private:
    // From the last to the first, so that the main line takes them back in order.
    template <std::size_t I>
    [[gnu::always_inline]] void wait_in(task_context<env_type>& context) noexcept {
        if constexpr (I + 1 != count) wait_in<I + 1>(context);
        const auto coroutine = wait_.template coroutine<I>();
        COPPICE_CHECK(coroutine, "wait_for_tasks: a task was moved from");
        coroutine.promise().wait_in(context, static_cast<on_main_line&>(*this));
        if constexpr (I != 0) join_.offer(I, &run_child<I>, this);
    }
    // By who took child I out of the deque.
    template <std::size_t I>
    static void run_child(void* frame, fork_slot&) noexcept {
        awaiter& self = *static_cast<awaiter*>(frame);
        const auto coroutine = self.wait_.template coroutine<I>();
        coroutine.promise().set_waiter(static_cast<run_elsewhere&>(self));
        execution::resume_from_outside(coroutine);
    }
    // Children before I have ended or run elsewhere.
    template <std::size_t I>
    static std::coroutine_handle<> main_child_ended(task_waiter& waiter, bool stopped) noexcept {
        awaiter& self = static_cast<awaiter&>(static_cast<on_main_line&>(waiter));
        // relaxed, here and below: the join orders it before the parent looks
        if (stopped) self.stopped_.store(true, relaxed);
        return self.template go_on<I>();
    }
    static std::coroutine_handle<> other_child_ended(task_waiter& waiter, bool stopped) noexcept {
        awaiter& self = static_cast<awaiter&>(static_cast<run_elsewhere&>(waiter));
        if (stopped) self.stopped_.store(true, relaxed);
        if (!self.join_.ended_elsewhere()) return std::noop_coroutine();
        return self.parent();
    }
    template <std::size_t I>
    [[gnu::always_inline]] std::coroutine_handle<> go_on() noexcept {
        if constexpr (I < count) {
            if (!join_.take_back(I, this)) return go_on<I + 1>();
            on_main_line::ended = &main_child_ended<I + 1>;
            return wait_.template coroutine<I>();
        } else {
            if (!join_.main_line_ended()) return std::noop_coroutine();
            return parent();
        }
    }
    std::coroutine_handle<> parent() noexcept {
        return stopped_.load(relaxed) ? parent_.stopped() : parent_.resumed();
    }
    template <std::size_t... I>
    auto results(std::index_sequence<I...>) {
        if constexpr ((std::is_lvalue_reference_v<Tasks> || ...)) {
            return std::tuple_cat(wait_.template result<I>()...);
        } else {
            using result = std::tuple<forked_task_value_t<Tasks>...>;
            return result{wait_.template value<I>()...};
        }
    }

    task_wait& wait_;
    [[no_unique_address]] waiting_parent<env_type, Promise> parent_;
    atomic<bool> stopped_{false};  // set by any child
    [[no_unique_address]] task_join<count> join_;
};

// `co_await wait_for_tasks(a, b, ...)` runs all tasks, side by side on a pool, and goes on when all
// have ended. L-values keep their results: co_await std::move(a) or std::move(a).get(). R-values
// give theirs as a tuple, with std::monostate for void. Errors: the first exception of an r-value,
// in order. A task that ends with a stop ends the waiting one so, when all have ended.
// Cost: no allocation; no atomic operation but for children that run elsewhere.
template <class... Tasks>
    requires(sizeof...(Tasks) != 0) && (is_task<std::remove_cvref_t<Tasks>> && ...)
task_wait<Tasks&&...> wait_for_tasks(Tasks&&... tasks) noexcept {
    return task_wait<Tasks&&...>(std::in_place, static_cast<Tasks&&>(tasks)...);
}

}  // namespace coppice::execution

namespace coppice {

using execution::wait_for_tasks;

}  // namespace coppice
