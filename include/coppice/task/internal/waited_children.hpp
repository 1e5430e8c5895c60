// waited_children: the tasks that one wait_for_tasks waits for, and their results.
#pragma once

#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/task/internal/task_chain.hpp>
#include <coppice/task/internal/task_context.hpp>
#include <coppice/task/internal/task_outcome.hpp>

#include <coroutine>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace coppice::execution {

template <class T, class Env>
class task;

}  // namespace coppice::execution

namespace coppice::execution::internal {

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
using task_environment_t = typename task_parameters<std::remove_reference_t<Task>>::environment;
template <class Task>
using waited_result_t = typename task_parameters<std::remove_reference_t<Task>>::result;
template <class Task>
using waited_value_t = std::conditional_t<std::is_void_v<waited_result_t<Task>>, std::monostate,
                                          waited_result_t<Task>>;

// A child that was given as an r-value. Owned until it runs; its outcome is here.
template <class Task>
struct waited_child : immovable {
    static constexpr bool keeps = false;
    using promise_type = typename Task::promise_type;
    using context_type = task_context<task_environment_t<Task>>;
    static constexpr bool is_plain = promise_type::outcome_type::is_plain;

    explicit waited_child(Task&& task) noexcept : coroutine(task.take_coroutine()) {
        COPPICE_CHECK(coroutine,
                      "wait_for_tasks: a task was moved from: pass the task that it was moved to");
        outcome.construct();
    }
    void begin(promise_type& promise, context_type& context, task_waiter& waiter,
               starts how) noexcept {
        promise.begin(context, waiter, how, outcome.get());
    }
    void destroy_coroutine() const noexcept { coroutine.destroy(); }
    void destroy_outcome() noexcept { outcome.destroy(); }
    // Errors: throws the task's error as an exception.
    void check() { outcome.get().check(); }
    auto result() { return std::tuple<waited_value_t<Task>>(value()); }
    waited_value_t<Task> value() {
        if constexpr (std::is_void_v<waited_result_t<Task>>) {
            return {};
        } else {
            return take_known_result<waited_result_t<Task>>(outcome.get());
        }
    }

    const std::coroutine_handle<promise_type> coroutine;
    manual_lifetime<typename promise_type::outcome_type> outcome;  // destroyed by the awaiter
};
// A child that was given as an l-value. Its own object keeps the outcome, so there is no result.
template <class Task>
struct waited_child<Task&> : immovable {
    static constexpr bool keeps = true;
    using promise_type = typename Task::promise_type;
    using context_type = task_context<task_environment_t<Task>>;
    static constexpr bool is_plain = true;

    explicit waited_child(Task& task) noexcept : coroutine(task.coroutine()) {
        COPPICE_CHECK(coroutine,
                      "wait_for_tasks: a task was moved from: pass the task that it was moved to");
    }
    static void begin(promise_type& promise, context_type& context, task_waiter& waiter,
                      starts how) noexcept {
        promise.begin(context, waiter, how);
    }
    static void destroy_coroutine() noexcept {}
    static void destroy_outcome() noexcept {}
    static void check() noexcept {}
    static std::tuple<> result() noexcept { return {}; }

    const std::coroutine_handle<promise_type> coroutine;
};

// References to tasks, and their children. Not a std::tuple: clang does not inline the constructor
// of a large one, and then keeps the address of every task that the waiting coroutine made.
template <std::size_t I, class Task>
struct numbered_task {
    Task&& task;
};
template <class Indices, class... Tasks>
struct numbered_tasks;
template <std::size_t... I, class... Tasks>
struct numbered_tasks<std::index_sequence<I...>, Tasks...> : numbered_task<I, Tasks>... {};

template <std::size_t I, class Task>
struct numbered_child : waited_child<Task> {
    [[gnu::always_inline]] explicit numbered_child(const numbered_task<I, Task>& given) noexcept
        : waited_child<Task>(static_cast<Task&&>(given.task)) {}
};
template <std::size_t I, class Task>
waited_child<Task>& child_of(numbered_child<I, Task>& children) noexcept {
    return children;
}
template <class Indices, class... Tasks>
struct numbered_children;
template <std::size_t... I, class... Tasks>
struct numbered_children<std::index_sequence<I...>, Tasks...> : numbered_child<I, Tasks>... {
    using tasks_type = numbered_tasks<std::index_sequence<I...>, Tasks...>;
    [[gnu::always_inline]] explicit numbered_children(const tasks_type& tasks) noexcept
        : numbered_child<I, Tasks>(static_cast<const numbered_task<I, Tasks>&>(tasks))... {}
    // Calls function(child...).
    template <class Function>
    [[gnu::always_inline]] auto apply(Function function) {
        return function(
            static_cast<waited_child<Tasks>&>(static_cast<numbered_child<I, Tasks>&>(*this))...);
    }
};

}  // namespace coppice::execution::internal
