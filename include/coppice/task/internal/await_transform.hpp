// await_transform: what co_await does with each kind of object in the body of a task.
#pragma once
// A task is affine: after an await it continues on its own scheduler. The kinds differ in what
// brings it back.
//
//   what is awaited                          brought back by                       co_await uses
//   a task, wait_for_tasks                   itself: it ends where it began        the object
//   anything, if Env's scheduler is inline   nothing: it continues where it ends   the object
//   a sender with a member affine()          the sender that affine() returns      affine(object)
//   any other sender                         affine(), or nothing if at run time   affine_or_direct
//                                            the context is inline, or the sender
//                                            completes on the task's scheduler
//   any other awaitable, and a sender        a stand-in (way_back.hpp)             returning_await
//   that tells its failure
//   change_coroutine_scheduler               not at all: the task moves            scheduler_change
//
// An await of anything but tasks first detaches the awaiting task.

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/affine.hpp>
#include <coppice/exec/as_awaitable.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/internal/refused_await.hpp>
#include <coppice/task/internal/changed_scheduler.hpp>
#include <coppice/task/internal/suspension.hpp>
#include <coppice/task/internal/task_context.hpp>
#include <coppice/task/internal/way_back.hpp>

#include <concepts>
#include <coroutine>
#include <new>
#include <type_traits>
#include <utility>

namespace coppice::execution {

template <scheduler Sch>
struct change_coroutine_scheduler;

}  // namespace coppice::execution

namespace coppice::execution::internal {

template <class T>
inline constexpr bool changes_scheduler = false;
template <class Sch>
inline constexpr bool changes_scheduler<change_coroutine_scheduler<Sch>> = true;

// Types that keep the scheduler of a task themselves, so that it awaits them unchanged.
template <class T>
concept keeps_scheduler = requires { typename std::remove_cvref_t<T>::keeps_scheduler; };

// Types whose awaiters call tasks. Only their awaits leave the awaiting task attached.
template <class T>
concept awaits_tasks = requires { typename std::remove_cvref_t<T>::awaits_tasks; };

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

template <class Value, class Promise>
concept awaited_affine =
    sender<Value> && std::move_constructible<std::decay_t<Value>> &&
    std::constructible_from<std::decay_t<Value>, Value> && callable<affine_t, Value> &&
    awaited_in<call_result_t<affine_t, Value>, Promise>;
template <class Value, class Promise>
using direct_result_t = resume_result_t<decltype(internal::awaiter_of(
    std::declval<call_result_t<as_awaitable_t, Value, Promise&>>()))>;
template <class Value, class Promise>
using affine_result_t =
    decltype(std::declval<
                 call_result_t<as_awaitable_t, call_result_t<affine_t, Value>, Promise&>&>()
                 .await_resume());

// The await of a sender that affine() brings back to the task's scheduler. A direct one if the task
// has none, or if the sender declares that it completes there, as the operations of the task's own
// loop do. This is decided at run time.
template <class Value, class Promise>
class affine_or_direct : immovable {
    using direct_type = call_result_t<as_awaitable_t, Value, Promise&>;
    using direct_awaiter = decltype(awaiter_of(std::declval<direct_type>()));
    struct direct : immovable {
        direct(Value&& value, Promise& promise)
            : awaitable(as_awaitable(static_cast<Value&&>(value), promise)),
              awaiter(internal::awaiter_of(static_cast<direct_type&&>(awaitable))) {}
        direct_type awaitable;
        direct_awaiter awaiter;
    };
    using affine_sender_type = call_result_t<affine_t, Value>;
    using affine_type = call_result_t<as_awaitable_t, affine_sender_type, Promise&>;

public:
    affine_or_direct(Value&& value, Promise& promise)
        : is_direct_(promise.context().is_inline() ||
                     ends_on<Value>(value, promise.get_env(), promise.context().scheduler)) {
        if (is_direct_) {
            ::new (static_cast<void*>(&direct_)) direct(static_cast<Value&&>(value), promise);
        } else {
            ::new (static_cast<void*>(&affine_))
                affine_type(as_awaitable(affine(static_cast<Value&&>(value)), promise));
        }
    }
    ~affine_or_direct() {
        if (is_direct_) {
            direct_.~direct();
        } else {
            affine_.~affine_type();
        }
    }
    bool await_ready() { return is_direct_ ? direct_.awaiter.await_ready() : false; }
    // The return type depends on the compiler, and so does the name of the function:
    // suspension.hpp.
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

// The rows of the table above, and what cannot be awaited.
enum class await_kind {
    move,
    itself,
    affine,
    affine_or_direct,
    by_stand_in,
    refused_scheduler,  // to schedule on the task's scheduler can fail
    refused,            // it can resume only the task itself
};

template <class Value, class Env>
inline constexpr bool comes_back_itself =
    keeps_scheduler<Value> ||
    std::same_as<typename task_context<Env>::scheduler_type, inline_scheduler>;

// Returns how a task with the environment Env awaits a Value. The order of the questions matters,
// because not every type can be asked each of them.
template <class Value, class Promise, class Env>
consteval await_kind kind_of_await() noexcept {
    using plain = std::remove_cvref_t<Value>;
    if constexpr (changes_scheduler<plain>) {
        return await_kind::move;
    } else if constexpr (comes_back_itself<Value, Env>) {
        return await_kind::itself;
    } else if constexpr (tells_failure<plain> && awaited_by_stand_in<Value, Promise, Env>) {
        return await_kind::by_stand_in;
    } else if constexpr (is_sender<plain> && awaited_affine<Value, Promise>) {
        if constexpr (requires(Value&& value) { static_cast<Value&&>(value).affine(); }) {
            return await_kind::affine;
        } else if constexpr (std::same_as<direct_result_t<Value, Promise>,
                                          affine_result_t<Value, Promise>>) {
            return await_kind::affine_or_direct;
        } else {
            return await_kind::affine;
        }
    } else if constexpr (awaited_by_stand_in<Value, Promise, Env>) {
        return await_kind::by_stand_in;
    } else if constexpr (awaited_affine<Value, Promise>) {
        return await_kind::affine;
    } else if constexpr (!awaited_in<Value, Promise>) {
        return await_kind::itself;  // the compiler then says why it cannot be awaited
    } else if constexpr (!infallible_scheduler<typename task_context<Env>::scheduler_type, env<>>) {
        return await_kind::refused_scheduler;
    } else {
        return await_kind::refused;
    }
}

// Returns what co_await awaits for `value` in the body of a task with this promise.
template <class Env, class Value, class Promise>
[[gnu::always_inline]] inline decltype(auto) await_in_task(Value&& value, Promise& promise) {
    using Sch = typename task_context<Env>::scheduler_type;
    constexpr await_kind kind = kind_of_await<Value, Promise, Env>();
    if constexpr (!awaits_tasks<Value> || !comes_back_itself<Value, Env>) promise.detach();
    if constexpr (kind == await_kind::move) {
        Sch to(value.scheduler);
        Sch before = promise.exchange_scheduler(to);
        const bool is_there = promise.context().is_inline() || before == to;
        return scheduler_change<Sch>(static_cast<Sch&&>(before), static_cast<Sch&&>(to), is_there);
    } else if constexpr (kind == await_kind::itself) {
        return execution::awaited_as_it_is(static_cast<Value&&>(value), promise);
    } else if constexpr (kind == await_kind::affine) {
        return as_awaitable(affine(static_cast<Value&&>(value)), promise);
    } else if constexpr (kind == await_kind::affine_or_direct) {
        return affine_or_direct<Value, Promise>(static_cast<Value&&>(value), promise);
    } else if constexpr (kind == await_kind::by_stand_in) {
        return returning_await<Value, Promise, Env>(static_cast<Value&&>(value), promise);
    } else if constexpr (kind == await_kind::refused_scheduler) {
        return await_without_a_way_back<Sch>();
    } else {
        return await_that_does_not_come_back<Value>();
    }
}

}  // namespace coppice::execution::internal
