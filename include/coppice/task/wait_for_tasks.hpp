// wait_for_tasks: a task waits for several others, which run side by side on a pool's workers.
#pragma once
// The waiting task may run on a worker of the pool that is its scheduler. Then all children but the
// first are pushed to the worker's fork_deque. The waiting task calls the first child, then takes
// the others back and calls them, one after the other. This is the main line. A child ends
// elsewhere if a thief has taken it, or if the main line called it and it waits for something
// (task_join.hpp). If no child does, the waiting task is not even suspended, and the wait costs no
// atomic operation.
//
// Everywhere else the waiting task calls all children in order. This includes a pool's worker that
// runs the loop of another scheduler, because tasks of that scheduler rely on its one thread.
// Source: chapter 5 of the thesis (WaitForTasksAwaiter, SharedBarrier); the counting is libfork's
// idea.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/cold_call.hpp>
#include <coppice/base/internal/fork_deque.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/internal/refused_await.hpp>
#include <coppice/task/internal/task_join.hpp>
#include <coppice/task/task.hpp>

#include <algorithm>
#include <array>
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
using forked_task_value_t = std::conditional_t<std::is_void_v<forked_task_result_t<Task>>,
                                               std::monostate, forked_task_result_t<Task>>;

// One child of a wait: its coroutine and, for an r-value, its outcome.
template <class Task>
struct waiting_child : immovable {  // for an r-value, owned until it runs
    static constexpr bool keeps = false;
    using promise_type = typename Task::promise_type;
    using context_type = task_context<typename task_parameters<Task>::environment>;

    explicit waiting_child(Task&& task) noexcept : coroutine(task.take_coroutine()) {
        COPPICE_CHECK(coroutine, "wait_for_tasks: a task was moved from");
        outcome.construct();
    }
    void begin(promise_type& promise, context_type& context, task_waiter& waiter,
               bool attached) noexcept {
        promise.begin(context, waiter, attached, outcome.get());
    }
    void destroy_coroutine() const noexcept { coroutine.destroy(); }
    void destroy_outcome() noexcept { outcome.destroy(); }
    // Errors: throws the task's error as an exception.
    void check() { outcome.get().check(); }
    auto result() { return std::tuple<forked_task_value_t<Task>>(value()); }
    forked_task_value_t<Task> value() {
        if constexpr (std::is_void_v<forked_task_result_t<Task>>) {
            return {};
        } else {
            return take_known_result<forked_task_result_t<Task>>(outcome.get());
        }
    }

    static constexpr bool is_plain = promise_type::outcome_type::is_plain;
    const std::coroutine_handle<promise_type> coroutine;
    manual_lifetime<typename promise_type::outcome_type> outcome;  // destroyed by the awaiter
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
                      bool attached) noexcept {
        promise.begin(context, waiter, attached);
    }
    static void destroy_coroutine() noexcept {}
    static void destroy_outcome() noexcept {}
    static void check() noexcept {}
    static std::tuple<> result() noexcept { return {}; }

    static constexpr bool is_plain = true;
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
    // Calls function(child...).
    template <class Function>
    [[gnu::always_inline]] auto apply(Function function) {
        return function(
            static_cast<waiting_child<Tasks>&>(static_cast<numbered_child<I, Tasks>&>(*this))...);
    }
};
namespace internal {

template <std::size_t I, class Task>
waiting_child<Task>& child_of(numbered_child<I, Task>& children) noexcept {
    return children;
}

}  // namespace internal

// Refers to l-values. Owns r-values until they run.
template <class Promise, class... Tasks>
class waiter_for_tasks final : task_waiter {
    using env_type = typename task_parameters<
        std::remove_reference_t<std::tuple_element_t<0, std::tuple<Tasks...>>>>::environment;
    using children_type = numbered_children<std::index_sequence_for<Tasks...>, Tasks...>;
    static constexpr std::size_t count = sizeof...(Tasks);
    static constexpr bool gives_results = !(std::is_reference_v<Tasks> && ...);
    static constexpr bool is_plain = (waiting_child<Tasks>::is_plain && ...);
    static constexpr std::int16_t not_begun = -1;
    static_assert(count <= INT16_MAX);

public:
    template <class... P>
    [[gnu::always_inline]] explicit waiter_for_tasks(
        const typename children_type::tasks_type& tasks, P&... promise)
        : parent_(promise...), children_(tasks) {}
    [[gnu::always_inline]] void destroy() noexcept {
        if constexpr (is_plain) {
            if (away_ != 0) [[unlikely]]
                clean_up();
        } else {
            destroy_children();
        }
    }

    static bool is_ready() noexcept { return false; }
    template <class Other>
    [[gnu::always_inline]] bool suspends(std::coroutine_handle<Other> parent) noexcept {
        parent_.suspend(parent);
        away_ = 0;
        char here;
        if (!transfer_loop::has_room(&here)) [[unlikely]] {
            put_off();
            return true;
        }
        run(parent_.self());
        if (away_ == 0) [[likely]]
            return false;
        return !meet() || stop_if_stopped();
    }
    // Returns the results of the r-values, in order; nothing if there are none. Errors: throws the
    // first error among them, in order.
    [[gnu::always_inline]] auto result() {
        parent_.end();
        if constexpr (gives_results) {
            if (away_ != 0) [[unlikely]]
                check();
            return children_.apply([](auto&... each)
                                       __attribute__((always_inline)) { return results(each...); });
        }
    }

private:
    // The main line. State that is needed after a child stays in this object and is read again. In
    // a register, every task that is resumed would have to save it.
    template <class Parent>
    [[gnu::always_inline]] void run(Parent parent) noexcept {
        // Read before the other fields are written.
        const auto first = internal::child_of<0>(children_).coroutine;
        internal::fork_deque* const deque = internal::fork_deque::current();
        // A pool's worker may run a loop of another scheduler, as in sync_wait. Tasks of that loop
        // stay.
        const bool offers = deque != nullptr && &deque->team() == parent_.context(parent).team();
        if (offers && offer<count - 1>(*deque)) [[likely]] {
            run_child<0>(parent, first);
            run_rest<true>(parent, std::make_index_sequence<count - 1>());
        } else {
            run_partly_offered(offers);
        }
    }
    // The main line if the task's scheduler is not this pool, or the deque is full.
    [[gnu::noinline]] void run_partly_offered(bool was_offered) noexcept {
        auto without = slots_.rbegin();
        if (was_offered) without = std::find(without, slots_.rend(), nullptr);
        std::fill(without, slots_.rend(), nullptr);
        const auto parent = parent_.self();
        run_child<0>(parent, internal::child_of<0>(children_).coroutine);
        run_rest<false>(parent, std::make_index_sequence<count - 1>());
    }
    // Pushes the children from the last to the second, so that they are popped in order. Returns
    // false if the deque is full.
    template <std::size_t I>
    [[gnu::always_inline]] bool offer(internal::fork_deque& deque) noexcept {
        if constexpr (I == 0) {
            return true;
        } else {
            internal::fork_slot* const slot = deque.push(&run_stolen<I>, this);
            if (slot == nullptr) [[unlikely]] {
                slots_[I - 1] = nullptr;
                return false;
            }
            slots_[I - 1] = slot;
            return offer<I - 1>(deque);
        }
    }
    template <bool all_offered, class Parent, std::size_t... I>
    [[gnu::always_inline]] void run_rest([[maybe_unused]] Parent parent,
                                         std::index_sequence<I...>) noexcept {
        (run_next<all_offered, I + 1>(parent), ...);
    }
    template <bool all_offered, std::size_t I, class Parent>
    [[gnu::always_inline]] void run_next(Parent parent) noexcept {
        internal::fork_slot* const slot = slots_[I - 1];
        if ((!all_offered && slot == nullptr) || internal::fork_deque::current()->pop(slot))
            [[likely]] {
            run_child<I>(parent, internal::child_of<I>(children_).coroutine);
        } else {
            let_go(slot);
        }
    }
    // Calls child I. If the child leaves, leave() counts it, and the main line continues.
    template <std::size_t I, class Parent, class Coroutine>
    [[gnu::always_inline]] void run_child(Parent parent, Coroutine coroutine) noexcept {
        internal::child_of<I>(children_).begin(coroutine.promise(), parent_.context(parent), *this,
                                               true);
        coroutine.resume();
    }
    // Called if a child has not ended on the main line, or none has begun; any child may have
    // failed.
    COPPICE_COLD_CALL void clean_up() noexcept { destroy_children(); }
    [[gnu::always_inline]] void destroy_children() noexcept {
        children_.apply([this](auto&... each) {
            if (away_ == not_begun) (each.destroy_coroutine(), ...);
            (each.destroy_outcome(), ...);
        });
    }
    // Errors: throws the error of the first child that failed.
    [[gnu::noinline]] void check() {
        children_.apply([](auto&... each) { (each.check(), ...); });
    }
    // Called if a thief has taken the child.
    [[gnu::noinline]] void let_go(internal::fork_slot* slot) noexcept {
        internal::fork_deque::current()->let_go(slot);
        ++away_;
    }
    // Called by the thread that has taken child I out of the deque.
    template <std::size_t I>
    static void run_stolen(void* frame, internal::fork_slot&) noexcept {
        // Hides the token that fork_join set around the waiting task: it may end before the child
        // does.
        const internal::fork_context none(nullptr);
        waiter_for_tasks& self = *static_cast<waiter_for_tasks*>(frame);
        auto& child = internal::child_of<I>(self.children_);
        child.begin(child.coroutine.promise(), self.parent_.context(self.parent_.self()), self,
                    false);
        execution::resume_from_outside(child.coroutine);
    }
    // Ends the main line where children end elsewhere. Returns true if all of them have ended. If
    // it returns false, the last child continues with the parent.
    [[gnu::noinline]] bool meet() noexcept {
        detach();
        return join_.main_line_ended(away_);
    }
    void detach() noexcept {
        if (parent_.chain() != nullptr) parent_.chain()->detach();
    }
    [[gnu::noinline, gnu::cold]] void put_off() noexcept {
        away_ = not_begun;
        detach();
        transfer_loop::put_off(*this);
    }
    std::coroutine_handle<> run_put_off() noexcept {
        away_ = 0;
        run(parent_.self());
        return away_ == 0 || meet() ? parent() : std::noop_coroutine();
    }
    // Called when a child has ended elsewhere. Returns true if it was the last.
    bool child_ended(bool stopped) noexcept {
        // relaxed, here and below: the join orders it before the parent looks
        if (stopped) stopped_.store(1, internal::relaxed);
        return join_.ended_elsewhere();
    }
    // Returns the coroutine that continues when all children have ended. A stop ends the parent and
    // this object with it, so nothing here may be used after the call.
    std::coroutine_handle<> parent() noexcept {
        return stopped_.load(internal::relaxed) != 0 ? parent_.stop() : parent_.self();
    }
    bool stop_if_stopped() noexcept {
        if (stopped_.load(internal::relaxed) == 0) [[likely]]
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

    // The child that the main line has called will end elsewhere.
    task_chain* leave() noexcept override {
        ++away_;
        return parent_.chain();
    }
    std::coroutine_handle<> ended() noexcept override {
        if (!child_ended(false)) return std::noop_coroutine();
        return transfer_loop::next(*this, [this] { return parent(); });
    }
    stopped_coroutine stopped() noexcept override {
        if (!child_ended(true)) return {std::noop_coroutine(), nullptr};
        return parent_.stopped();
    }
    // Continues after the whole wait, or the resumption of the parent, was deferred.
    std::coroutine_handle<> go_on() noexcept override {
        return away_ == not_begun ? run_put_off() : parent();
    }

    [[no_unique_address]] waiting_coroutine<env_type, Promise>
        parent_;  // may throw; first, so that nothing is taken then
    children_type children_;
    task_join join_;
    internal::atomic<std::int16_t> stopped_{0};  // 1: a child was stopped; set by any child
    std::int16_t away_ = not_begun;              // children that have not ended on the main line
    std::array<internal::fork_slot*, count - 1> slots_;  // of the second and later children
};

template <class Promise, class... Tasks>
using task_wait_awaiter = waiting_awaiter<waiter_for_tasks<Promise, Tasks...>>;

// Refers to the tasks. Lifetime: await it in the expression that makes it.
template <class... Tasks>
class [[nodiscard]] task_wait
    : public ends_where_it_began<typename task_parameters<
          std::remove_reference_t<std::tuple_element_t<0, std::tuple<Tasks...>>>>::environment> {
    using first_task = std::remove_reference_t<std::tuple_element_t<0, std::tuple<Tasks...>>>;
    using env_type = typename task_parameters<first_task>::environment;
    static_assert(
        (std::same_as<env_type,
                      typename task_parameters<std::remove_reference_t<Tasks>>::environment> &&
         ...),
        "wait_for_tasks: the tasks must have the same Env");
    static_assert(sizeof...(Tasks) == 1 ||
                      takes_several_callbacks<typename task_stop_source<env_type>::type>,
                  "wait_for_tasks: a token of Env's stop_source_type takes one callback at a time, "
                  "and each task may register one: make stop_source_type inplace_stop_source");

public:
    using awaits_tasks = void;

    explicit task_wait(Tasks&&... tasks) noexcept : tasks_{{static_cast<Tasks&&>(tasks)}...} {}
    task_wait(task_wait&&) = delete;

    template <class Promise>
    [[gnu::always_inline]] task_wait_awaiter<Promise, Tasks...> as_awaitable(Promise& promise) && {
        return task_wait_awaiter<Promise, Tasks...>(tasks_, promise);
    }
    await_of_an_lvalue<task_wait> operator co_await() & noexcept { return {}; }
    task_wait_awaiter<void, Tasks...> operator co_await() && {
        return task_wait_awaiter<void, Tasks...>(tasks_);
    }

private:
    numbered_tasks<std::index_sequence_for<Tasks...>, Tasks...> tasks_;
};

// `co_await wait_for_tasks(a, b, ...)` runs all tasks and continues when all have ended. They run
// side by side if the scheduler of the waiting task is a pool. L-values keep their results; get
// them by co_await std::move(a) or std::move(a).get(). R-values return their results as a tuple,
// with std::monostate for void. Errors: throws the first exception of an r-value, in order. If a
// task is stopped, the waiting task is stopped too, when all have ended. Cost: no allocation; no
// atomic operation, except for children that run elsewhere.
template <class... Tasks>
    requires(sizeof...(Tasks) != 0) && (is_task<std::remove_cvref_t<Tasks>> && ...)
task_wait<Tasks...> wait_for_tasks(Tasks&&... tasks) noexcept {
    return task_wait<Tasks...>(static_cast<Tasks&&>(tasks)...);
}

}  // namespace coppice::execution

namespace coppice {

using execution::wait_for_tasks;

}  // namespace coppice
