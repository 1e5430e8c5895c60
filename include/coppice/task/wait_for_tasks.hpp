// wait_for_tasks: a task waits for several others, which run side by side on a pool's workers.
#pragma once
// On a worker all children but the first lie in the worker's fork_deque. The waiting task calls the
// first, then takes back and calls one after the other; this is the main line. A child that a thief
// has, and one that the main line called and that waits for something, ends elsewhere
// (task_join.hpp). If none does, the waiting task is not even suspended, and the wait costs no
// atomic operation.
//
// Off a pool all are called in order. Source: chapter 5 of the thesis (WaitForTasksAwaiter,
// SharedBarrier); the counting is libfork's idea.

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
using forked_task_result_t = typename task_parameters<std::remove_reference_t<Task>>::result;
template <class Task>
using forked_task_value_t =
    std::conditional_t<std::is_void_v<forked_task_result_t<Task>>, std::monostate,
                       forked_task_result_t<Task>>;

// Who waits for the children that are called one after the other, and for those that end elsewhere.
template <class Awaiter>
class main_line_waiter : public task_waiter {
protected:
    main_line_waiter() noexcept = default;
    ~main_line_waiter() = default;

private:
    std::coroutine_handle<> ended() noexcept override { return std::noop_coroutine(); }
    stopped_coroutine stopped() noexcept override { std::terminate(); }  // it has left before
    task_chain* leave(task_chain& child) noexcept override {
        return static_cast<Awaiter&>(*this).child_left(child);
    }
    // The whole wait was put off.
    std::coroutine_handle<> go_on() noexcept override {
        return static_cast<Awaiter&>(*this).run_put_off();
    }
};
template <class Awaiter>
class elsewhere_waiter : public task_waiter {
protected:
    elsewhere_waiter() noexcept = default;
    ~elsewhere_waiter() = default;

private:
    std::coroutine_handle<> ended() noexcept override {
        Awaiter& awaiter = static_cast<Awaiter&>(*this);
        if (!awaiter.child_ended(false)) return std::noop_coroutine();
        return transfer_loop::next(*this, awaiter.parent());
    }
    stopped_coroutine stopped() noexcept override {
        Awaiter& awaiter = static_cast<Awaiter&>(*this);
        if (!awaiter.child_ended(true)) return {std::noop_coroutine(), nullptr};
        return awaiter.stopped_parent();
    }
    task_chain* leave(task_chain&) noexcept override { return nullptr; }
    // The parent's resumption was put off.
    std::coroutine_handle<> go_on() noexcept override {
        return static_cast<Awaiter&>(*this).parent();
    }
};

// One child of a wait: its coroutine and, for an r-value, its outcome.
template <class Task>
struct waiting_child : immovable {  // an r-value, owned until it runs
    static constexpr bool keeps = false;
    using promise_type = typename Task::promise_type;
    using context_type = task_context<typename task_parameters<Task>::environment>;

    explicit waiting_child(Task&& task) noexcept : coroutine(task.take_coroutine()) {
        COPPICE_CHECK(coroutine, "wait_for_tasks: a task was moved from");
    }
    void begin(promise_type& promise, context_type& context, task_waiter& waiter,
               bool* left) noexcept {
        promise.begin(context, waiter, left, outcome);
    }
    void destroy() const noexcept { coroutine.destroy(); }
    auto result() {
        return std::tuple<forked_task_value_t<Task>>(value());
    }
    forked_task_value_t<Task> value() {
        if constexpr (std::is_void_v<forked_task_result_t<Task>>) {
            outcome.take();
            return {};
        } else {
            return take_result<forked_task_result_t<Task>>(outcome);
        }
    }

    const std::coroutine_handle<promise_type> coroutine;
    typename promise_type::outcome_type outcome;
};
template <class Task>
struct waiting_child<Task&> : immovable {
    static constexpr bool keeps = true;
    using promise_type = typename Task::promise_type;
    using context_type = task_context<typename task_parameters<Task>::environment>;

    explicit waiting_child(Task& task) noexcept : coroutine(task.coroutine()) {
        COPPICE_CHECK(coroutine, "wait_for_tasks: a task was moved from");
    }
    static void begin(promise_type& promise, context_type& context, task_waiter& waiter,
                      bool* left) noexcept {
        promise.begin(context, waiter, left);
    }
    static void destroy() noexcept {}
    static std::tuple<> result() noexcept { return {}; }

    const std::coroutine_handle<promise_type> coroutine;
};

// References to tasks, and their children. No std::tuple: clang calls the constructor of a large
// one, and then keeps the address of every task that the waiting coroutine made.
template <std::size_t I, class Task>
struct numbered_task {
    Task&& task;
};
template <class Indices, class... Tasks>
struct numbered_tasks;
template <std::size_t... I, class... Tasks>
struct numbered_tasks<std::index_sequence<I...>, Tasks...> : numbered_task<I, Tasks>... {};

template <std::size_t I, class Task>
struct numbered_child : waiting_child<Task> {
    [[gnu::always_inline]] explicit numbered_child(const numbered_task<I, Task>& given) noexcept
        : waiting_child<Task>(static_cast<Task&&>(given.task)) {}
};
template <class Indices, class... Tasks>
struct numbered_children;
template <std::size_t... I, class... Tasks>
struct numbered_children<std::index_sequence<I...>, Tasks...> : numbered_child<I, Tasks>... {
    using tasks_type = numbered_tasks<std::index_sequence<I...>, Tasks...>;
    [[gnu::always_inline]] explicit numbered_children(const tasks_type& tasks) noexcept
        : numbered_child<I, Tasks>(static_cast<const numbered_task<I, Tasks>&>(tasks))... {}
    // function(child...)
    template <class Function>
    [[gnu::always_inline]] auto apply(Function function) {
        return function(
            static_cast<waiting_child<Tasks>&>(static_cast<numbered_child<I, Tasks>&>(*this))...);
    }
};
template <std::size_t I, class Task>
waiting_child<Task>& child_of(numbered_child<I, Task>& children) noexcept {
    return children;
}

// Refers to l-values, owns r-values until they run.
template <class Promise, class... Tasks>
class task_wait_awaiter final : public main_line_waiter<task_wait_awaiter<Promise, Tasks...>>,
                                public elsewhere_waiter<task_wait_awaiter<Promise, Tasks...>> {
    using env_type =
        typename task_parameters<std::remove_reference_t<std::tuple_element_t<
            0, std::tuple<Tasks...>>>>::environment;
    using children_type = numbered_children<std::index_sequence_for<Tasks...>, Tasks...>;
    static constexpr std::size_t count = sizeof...(Tasks);
    static constexpr bool gives_results = !(std::is_reference_v<Tasks> && ...);
    using main_line = main_line_waiter<task_wait_awaiter>;
    using elsewhere = elsewhere_waiter<task_wait_awaiter>;

public:
    template <class... P>
    [[gnu::always_inline]] explicit task_wait_awaiter(
        const typename children_type::tasks_type& tasks, P&... promise)
        : children_(tasks), parent_(promise...) {}
    ~task_wait_awaiter() {
        if (context_ == nullptr) [[unlikely]]
            children_.apply([](auto&... each) { (each.destroy(), ...); });
    }

    bool await_ready() const noexcept { return false; }
    template <class Other>
    [[gnu::always_inline]] bool await_suspend(std::coroutine_handle<Other> parent) noexcept {
        context_ = &parent_.suspend(parent);
        bool left;
        if (!transfer_loop::has_room(&left)) [[unlikely]] {
            put_off();
            return true;
        }
        const std::int32_t away = run(left);
        if (away == 0) [[likely]]
            return false;
        return !meet(away) || stop_if_stopped();
    }
    // The results of the r-values, in order; nothing if there are none. Errors: the first of them.
    [[gnu::always_inline]] auto await_resume() {
        if constexpr (gives_results) {
            return children_.apply([](auto&... each)
                                       __attribute__((always_inline)) { return results(each...); });
        }
    }

private:
    template <class>
    friend class main_line_waiter;
    template <class>
    friend class elsewhere_waiter;

    // The main line. Gives how many children have not ended on it.
    [[gnu::always_inline]] std::int32_t run(bool& left) noexcept {
        const auto first = child_of<0>(children_).coroutine;  // read before the rest is written
        fork_deque* const deque = fork_deque::current();
        fork_slot* slots[count] = {};
        if (deque != nullptr) [[likely]]
            offer<count - 1>(*deque, slots);
        std::int32_t away = 0;
        if (!run_child(child_of<0>(children_), first, left)) [[unlikely]]
            ++away;
        run_rest(deque, slots, left, away, std::make_index_sequence<count - 1>());
        return away;
    }
    // From the last to the second, so that they are taken back in order.
    template <std::size_t I>
    [[gnu::always_inline]] void offer(fork_deque& deque, fork_slot** slots) noexcept {
        if constexpr (I != 0) {
            slots[I] = deque.push(&run_stolen<I>, this);
            offer<I - 1>(deque, slots);
        }
    }
    template <std::size_t... I>
    [[gnu::always_inline]] void run_rest([[maybe_unused]] fork_deque* deque,
                                         [[maybe_unused]] fork_slot** slots,
                                         [[maybe_unused]] bool& left,
                                         [[maybe_unused]] std::int32_t& away,
                                         std::index_sequence<I...>) noexcept {
        (run_next<I + 1>(deque, slots[I + 1], left, away), ...);
    }
    template <std::size_t I>
    [[gnu::always_inline]] void run_next(fork_deque* deque, fork_slot* slot, bool& left,
                                         std::int32_t& away) noexcept {
        auto& child = child_of<I>(children_);
        if (slot != nullptr && !deque->pop(slot)) [[unlikely]] {
            deque->let_go(slot);
            ++away;
        } else if (!run_child(child, child.coroutine, left)) [[unlikely]] {
            ++away;
        }
    }
    // False: it has left, and ends elsewhere.
    template <class Child, class Coroutine>
    [[gnu::always_inline]] bool run_child(Child& child, Coroutine coroutine, bool& left) noexcept {
        left = false;
        child.begin(coroutine.promise(), *context_, static_cast<main_line&>(*this), &left);
        coroutine.resume();
        return !left;
    }
    // By who took child I out of the deque.
    template <std::size_t I>
    static void run_stolen(void* frame, fork_slot&) noexcept {
        task_wait_awaiter& self = *static_cast<task_wait_awaiter*>(frame);
        auto& child = child_of<I>(self.children_);
        child.begin(child.coroutine.promise(), *self.context_, static_cast<elsewhere&>(self),
                    nullptr);
        execution::resume_from_outside(child.coroutine);
    }
    // Some children end elsewhere. True: they have. False: the last goes on with the parent.
    [[gnu::noinline]] bool meet(std::int32_t away) noexcept {
        detach();
        return join_.main_line_ended(away);
    }
    void detach() noexcept {
        if (parent_.chain() != nullptr) parent_.chain()->detach();
    }
    [[gnu::noinline, gnu::cold]] void put_off() noexcept {
        detach();
        transfer_loop::put_off(static_cast<main_line&>(*this));
    }
    std::coroutine_handle<> run_put_off() noexcept {
        bool left;
        const std::int32_t away = run(left);
        return away == 0 || meet(away) ? parent() : std::noop_coroutine();
    }
    // A child of the main line will end elsewhere.
    task_chain* child_left(task_chain& child) noexcept {
        child.change_waiter(static_cast<elsewhere&>(*this));
        return parent_.chain();
    }
    // A child has ended elsewhere. True: it was the last.
    bool child_ended(bool stopped) noexcept {
        // relaxed, here and below: the join orders it before the parent looks
        if (stopped) stopped_.store(1, relaxed);
        return join_.ended_elsewhere();
    }
    std::coroutine_handle<> parent() noexcept {
        return stopped_.load(relaxed) != 0 ? parent_.stop() : parent_.resumed();
    }
    stopped_coroutine stopped_parent() noexcept { return parent_.stopped(); }
    bool stop_if_stopped() noexcept {
        if (stopped_.load(relaxed) == 0) [[likely]]
            return false;
        execution::resume_from_outside(parent_.stop());
        return true;
    }
    template <class... Child>
    [[gnu::always_inline, gnu::flatten]] static auto results(Child&... child) {
        if constexpr ((Child::keeps || ...)) {
            return std::tuple_cat(child.result()...);
        } else {
            return std::tuple<forked_task_value_t<Tasks>...>{child.value()...};
        }
    }

    children_type children_;
    [[no_unique_address]] waiting_coroutine<env_type, Promise> parent_;
    task_context<env_type>* context_ = nullptr;  // null: the children do not run yet
    task_join join_;
    atomic<std::int32_t> stopped_{0};  // 1: set by any child
};

// Refers to the tasks. Lifetime: it is awaited in the expression that makes it.
template <class... Tasks>
class [[nodiscard]] task_wait {
    using first_task = std::remove_reference_t<std::tuple_element_t<0, std::tuple<Tasks...>>>;
    using env_type = typename task_parameters<first_task>::environment;
    static_assert(
        (std::same_as<env_type,
                      typename task_parameters<std::remove_reference_t<Tasks>>::environment> &&
         ...),
        "wait_for_tasks: the tasks must have the same Env");

public:
    using keeps_scheduler = void;
    using awaits_tasks = void;

    explicit task_wait(Tasks&&... tasks) noexcept : tasks_{{static_cast<Tasks&&>(tasks)}...} {}
    task_wait(task_wait&&) = delete;

    template <class Promise>
    [[gnu::always_inline]] task_wait_awaiter<Promise, Tasks...> as_awaitable(Promise& promise) && {
        return task_wait_awaiter<Promise, Tasks...>(tasks_, promise);
    }
    task_wait_awaiter<void, Tasks...> operator co_await() && {
        return task_wait_awaiter<void, Tasks...>(tasks_);
    }

private:
    numbered_tasks<std::index_sequence_for<Tasks...>, Tasks...> tasks_;
};

// `co_await wait_for_tasks(a, b, ...)` runs all tasks, side by side on a pool, and goes on when all
// have ended. L-values keep their results: co_await std::move(a) or std::move(a).get(). R-values
// give theirs as a tuple, with std::monostate for void. Errors: the first exception of an r-value,
// in order. A task that ends with a stop ends the waiting one so, when all have ended.
// Cost: no allocation; no atomic operation but for children that run elsewhere.
template <class... Tasks>
    requires(sizeof...(Tasks) != 0) && (is_task<std::remove_cvref_t<Tasks>> && ...)
task_wait<Tasks...> wait_for_tasks(Tasks&&... tasks) noexcept {
    return task_wait<Tasks...>(static_cast<Tasks&&>(tasks)...);
}

}  // namespace coppice::execution

namespace coppice {

using execution::wait_for_tasks;

}  // namespace coppice
