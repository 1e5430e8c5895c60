// waiter_for_tasks: runs the children of one wait_for_tasks, and continues when all have ended.
#pragma once
// The waiting task may run on a worker of the pool that is its scheduler. Then it offers all
// children but the first to thieves, in the worker's fork_deque. It calls the first child, then
// takes each of the others back and calls it. This is the main line. Everywhere else the main line
// calls all children in order. This includes a pool's worker that runs the loop of another
// scheduler, because tasks of that scheduler rely on its one thread.
//
// A child that the main line calls ends there, unless it waits for something. A child that a thief
// has taken ends elsewhere too. If none does, the waiting task is not even suspended, and the wait
// costs no atomic operation. Otherwise the last one of the main line and these children continues
// with the waiting task (task_join.hpp).
//
//   suspends ----- stack deep ----> defer ... resume_deferred
//      |                                            |
//      v                                            v
//   run_main_line                             run_main_line
//      |  offer_others                              |
//      |  run_child<0>                          (the same)
//      |  for each other child:
//      |     taken back: run_child<I> --- it waits ----> child_detached --+
//      |     stolen:     let_go ------------------------------------------+
//      |                                                                  | counted in elsewhere_
//      v                                                                  v
//   elsewhere_ == 0: continues at once                   child_ended, child_stopped, on any thread
//   otherwise: end_main_line ------------- task_join --------> the last one: parent_or_its_stop
//
// Source: chapter 5 of the thesis (WaitForTasksAwaiter, SharedBarrier); the counting is libfork's
// idea.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/cold_call.hpp>
#include <coppice/base/internal/fork_deque.hpp>
#include <coppice/task/internal/task_join.hpp>
#include <coppice/task/internal/task_promise.hpp>
#include <coppice/task/internal/transfer.hpp>
#include <coppice/task/internal/waited_children.hpp>
#include <coppice/task/internal/waiting_coroutine.hpp>

#include <algorithm>
#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

namespace coppice::execution::internal {

// Refers to l-values. Owns r-values until they run. Promise is that of the waiting coroutine, or
// void if it is not known.
//
// What the main line needs after a child is read again from this object. In a register, every task
// that is resumed would have to save it.
template <class Promise, class... Tasks>
class waiter_for_tasks final : task_waiter {
    using env_type = task_environment_t<std::tuple_element_t<0, std::tuple<Tasks...>>>;
    using children_type = numbered_children<std::index_sequence_for<Tasks...>, Tasks...>;
    using others = std::make_index_sequence<sizeof...(Tasks) - 1>;
    static constexpr std::size_t count = sizeof...(Tasks);
    static constexpr bool gives_results = !(std::is_reference_v<Tasks> && ...);
    static constexpr bool is_plain = (waited_child<Tasks>::is_plain && ...);
    static_assert(count <= INT16_MAX);

public:
    template <class... P>
    [[gnu::always_inline]] explicit waiter_for_tasks(
        const typename children_type::tasks_type& tasks, P&... promise)
        : parent_(promise...), children_(tasks) {}
    [[gnu::always_inline]] void destroy() noexcept {
        if constexpr (is_plain) {
            if (!all_ended_here()) [[unlikely]]
                clean_up();
        } else {
            destroy_children();
        }
    }

    static bool is_ready() noexcept { return false; }
    // Runs the children. Returns false if all have ended, and the parent continues.
    template <class Other>
    [[gnu::always_inline]] bool suspends(std::coroutine_handle<Other> parent) noexcept {
        parent_.suspend(parent);
        elsewhere_ = 0;  // before the test, so that defer() alone has to write not_begun
        char here;
        if (!transfer_loop::has_room(&here)) [[unlikely]] {
            defer();
            return true;
        }
        run_main_line(parent_.self());
        if (all_ended_here()) [[likely]]
            return false;
        return !end_main_line() || stop_if_stopped();
    }
    // Returns the results of the r-values, in order; nothing if there are none. Errors: throws the
    // first error among them, in order.
    [[gnu::always_inline]] auto result() {
        parent_.end();
        if constexpr (gives_results) {
            if (!all_ended_here()) [[unlikely]]
                check();
            return children_.apply([](auto&... each)
                                       __attribute__((always_inline)) { return results(each...); });
        }
    }

private:
    // Values of elsewhere_: not_begun, or how many of the children that were begun or stolen do not
    // end on the main line.
    static constexpr std::int16_t not_begun = -1;
    // Such children have not failed and were not stopped: task_promise::fail() and a stop detach.
    bool all_ended_here() const noexcept { return elsewhere_ == 0; }

    template <class Parent>
    [[gnu::always_inline]] void run_main_line(Parent parent) noexcept {
        const auto first = child_of<0>(children_).coroutine;  // read before the slots are written
        fork_deque* const deque = fork_deque::current();
        const bool may_offer = deque != nullptr && &deque->team() == parent_.context(parent).team();
        if (may_offer && offer_others<count - 1>(*deque)) [[likely]] {
            run_child<0>(parent, first);
            run_others<true>(parent, others());
        } else {
            run_partly_offered(may_offer);
        }
    }
    // The main line if this is not a worker of the task's pool, or its deque is full.
    [[gnu::noinline]] void run_partly_offered(bool has_offered) noexcept {
        // offer_others() set the slot of the child that did not fit to null. It had offered the
        // children behind that child, and none before it.
        auto not_offered = slots_.rbegin();
        if (has_offered) not_offered = std::find(not_offered, slots_.rend(), nullptr);
        std::fill(not_offered, slots_.rend(), nullptr);
        const auto parent = parent_.self();
        run_child<0>(parent, child_of<0>(children_).coroutine);
        run_others<false>(parent, others());
    }
    // Offers child I and those before it, except the first: from the last to the second, so that
    // they are popped in order. Returns false if the deque is full.
    template <std::size_t I>
    [[gnu::always_inline]] bool offer_others(fork_deque& deque) noexcept {
        if constexpr (I == 0) {
            return true;
        } else {
            fork_slot* const slot = deque.push(&run_stolen<I>, this);
            if (slot == nullptr) [[unlikely]] {
                slots_[I - 1] = nullptr;
                return false;
            }
            slots_[I - 1] = slot;
            return offer_others<I - 1>(deque);
        }
    }
    template <bool all_offered, class Parent, std::size_t... I>
    [[gnu::always_inline]] void run_others([[maybe_unused]] Parent parent,
                                           std::index_sequence<I...>) noexcept {
        (run_unless_stolen<all_offered, I + 1>(parent), ...);
    }
    template <bool all_offered, std::size_t I, class Parent>
    [[gnu::always_inline]] void run_unless_stolen(Parent parent) noexcept {
        fork_slot* const slot = slots_[I - 1];
        if ((!all_offered && slot == nullptr) || fork_deque::current()->pop(slot)) [[likely]] {
            run_child<I>(parent, child_of<I>(children_).coroutine);
        } else {
            let_go(slot);
        }
    }
    template <std::size_t I, class Parent, class Coroutine>
    [[gnu::always_inline]] void run_child(Parent parent, Coroutine coroutine) noexcept {
        child_of<I>(children_).begin(coroutine.promise(), parent_.context(parent), *this,
                                     starts::attached);
        coroutine.resume();
    }
    [[gnu::noinline]] void let_go(fork_slot* slot) noexcept {
        fork_deque::current()->let_go(slot);
        ++elsewhere_;
    }
    // Ends the main line where children end elsewhere. Returns true if all of them have ended. If
    // it returns false, the last child continues with the parent, and this object may be gone.
    [[gnu::noinline]] bool end_main_line() noexcept {
        detach_parent();
        return join_.main_line_ended(elsewhere_);
    }

    // Runs child I on the thread that has taken it out of the deque.
    template <std::size_t I>
    static void run_stolen(void* frame, fork_slot&) noexcept {
        // Hides the token that fork_join set around the waiting task: it may end before the child
        // does.
        const fork_context none(nullptr);
        waiter_for_tasks& self = *static_cast<waiter_for_tasks*>(frame);
        auto& child = child_of<I>(self.children_);
        child.begin(child.coroutine.promise(), self.parent_.context(self.parent_.self()), self,
                    starts::detached);
        resume_from_outside(child.coroutine);
    }
    task_chain* child_detached() noexcept override {
        ++elsewhere_;
        return parent_.chain();
    }
    std::coroutine_handle<> child_ended() noexcept override {
        if (!join_.ended_elsewhere()) return std::noop_coroutine();
        return transfer_loop::resume_or_defer(*this, [this] { return parent_or_its_stop(); });
    }
    after_stop child_stopped() noexcept override {
        // relaxed, here and below: the join orders it before the parent looks
        stopped_.store(1, relaxed);
        return join_.ended_elsewhere() ? parent_.stopped() : after_stop::nothing();
    }

    // Returns the coroutine that continues when all children have ended. A stop ends the parent and
    // this object with it, so nothing here may be used after the call.
    std::coroutine_handle<> parent_or_its_stop() noexcept {
        return stopped_.load(relaxed) != 0 ? parent_.stop() : parent_.self();
    }
    bool stop_if_stopped() noexcept {
        if (stopped_.load(relaxed) == 0) [[likely]]
            return false;
        resume_from_outside(parent_.stop());
        return true;
    }

    // The stack is deep: the loop runs the main line.
    [[gnu::noinline, gnu::cold]] void defer() noexcept {
        elsewhere_ = not_begun;
        detach_parent();
        transfer_loop::defer(*this);
    }
    // Runs what was deferred: the main line, if it was not begun; then resumes the parent.
    std::coroutine_handle<> resume_deferred() noexcept override {
        if (elsewhere_ == not_begun) {
            elsewhere_ = 0;
            run_main_line(parent_.self());
            if (!all_ended_here() && !end_main_line()) return std::noop_coroutine();
        }
        return parent_or_its_stop();
    }
    void detach_parent() noexcept {
        if (parent_.chain() != nullptr) parent_.chain()->detach();
    }

    // Called if the wait was not begun, or a child has not ended on the main line.
    COPPICE_COLD_CALL void clean_up() noexcept { destroy_children(); }
    [[gnu::always_inline]] void destroy_children() noexcept {
        children_.apply([this](auto&... each) {
            if (elsewhere_ == not_begun) (each.destroy_coroutine(), ...);
            (each.destroy_outcome(), ...);
        });
    }
    // Errors: throws the error of the first child that failed.
    [[gnu::noinline]] void check() {
        children_.apply([](auto&... each) { (each.check(), ...); });
    }
    template <class... Child>
    [[gnu::always_inline, gnu::flatten]] static auto results(Child&... child) {
        if constexpr ((Child::keeps || ...)) {
            return std::tuple_cat(child.result()...);
        } else {
            return std::tuple<waited_value_t<Tasks>...>{child.value()...};
        }
    }

    // First, because it may throw, and then nothing is taken.
    [[no_unique_address]] waiting_coroutine<env_type, Promise> parent_;
    children_type children_;
    task_join join_;
    atomic<std::int16_t> stopped_{0};          // 1: a child was stopped; set by any child
    std::int16_t elsewhere_ = not_begun;       // written by the main line and what it calls
    std::array<fork_slot*, count - 1> slots_;  // of the second and later children
};

template <class Promise, class... Tasks>
using task_wait_awaiter = waiting_awaiter<waiter_for_tasks<Promise, Tasks...>>;

// What wait_for_tasks returns. Refers to the tasks. Lifetime: await it in the expression that makes
// it.
template <class... Tasks>
class [[nodiscard]] task_wait
    : public ends_where_it_began<
          task_environment_t<std::tuple_element_t<0, std::tuple<Tasks...>>>> {
    using env_type = task_environment_t<std::tuple_element_t<0, std::tuple<Tasks...>>>;
    static_assert((std::is_same_v<env_type, task_environment_t<Tasks>> && ...),
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

}  // namespace coppice::execution::internal
