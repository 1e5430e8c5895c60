// Timed schedulers: schedulers that can run work later. timeout needs one.
#pragma once
// A scheduler is timed if it has
//   now()                    an instant, or a <chrono> time point of its clock
//   schedule_after(span)     a sender that completes on the scheduler, at least `span` after its
//                            start; `span` is a time_span or std::chrono::nanoseconds
// It may also have schedule_at(instant); otherwise the span to that time is computed where the
// sender is made, not where it is started. A stop request ends the wait with set_stopped. run_loop,
// pools, and io::context have timed schedulers. A scheduler type with timers in some objects and
// not in others also has has_timers(): any_scheduler, the type of a task's scheduler.

#include <coppice/exec/deadline.hpp>
#include <coppice/exec/internal/inherited_timer.hpp>
#include <coppice/exec/scheduler.hpp>

namespace coppice::execution {

// Waits for a time span on a timed scheduler.
struct schedule_after_t {
    template <class Sch>
        requires requires(const Sch& sch, time_span span) { sch.schedule_after(span); }
    constexpr auto operator()(const Sch& sch, time_span span) const
        noexcept(noexcept(sch.schedule_after(span))) {
        static_assert(sender<decltype(sch.schedule_after(span))>);
        return sch.schedule_after(span);
    }
};
inline constexpr schedule_after_t schedule_after{};

// Returns the time of a timed scheduler's own clock.
struct now_t {
    template <class Sch>
        requires requires(const Sch& sch) { instant(sch.now()); }
    constexpr instant operator()(const Sch& sch) const noexcept {
        return instant(sch.now());
    }
};
inline constexpr now_t now{};

// Waits until a time of the scheduler's clock. Does not wait if that time has passed.
struct schedule_at_t {
    template <class Sch>
        requires requires(const Sch& sch, instant when) { sch.schedule_at(when); }
    constexpr auto operator()(const Sch& sch, instant when) const
        noexcept(noexcept(sch.schedule_at(when))) {
        static_assert(sender<decltype(sch.schedule_at(when))>);
        return sch.schedule_at(when);
    }
    template <class Sch>
        requires(!requires(const Sch& sch, instant when) { sch.schedule_at(when); }) &&
                internal::callable<schedule_after_t, const Sch&, time_span> &&
                internal::callable<now_t, const Sch&>
    constexpr auto operator()(const Sch& sch, instant when) const {
        return schedule_after(sch, when - now(sch));
    }
};
inline constexpr schedule_at_t schedule_at{};

// A scheduler that can run work later.
template <class Sch>
concept timed_scheduler = scheduler<Sch> && requires(const Sch& sch, time_span span) {
    { now(sch) } -> std::same_as<instant>;
    { schedule_after(sch, span) } -> sender;
};

// A timed scheduler that always has timers, so that has_timers() need not be asked.
template <class Sch>
concept certainly_timed_scheduler =
    timed_scheduler<Sch> && !requires(const Sch& sch) { sch.has_timers(); };

// Returns the timed scheduler of an environment. The first rule that applies decides:
//
//   1. The environment answers this query.
//   2. Its start scheduler, its scheduler, or its delegation scheduler, in this order, is of a type
//      that always has timers.
//   3. Its start scheduler or its scheduler may have timers, as a task's scheduler. A timer that
//      was named around the task, or around a task that awaits it, is preferred. If the scheduler
//      turns out to have no timers, the nearest scheduler of those tasks that has timers is used.
//   4. A task or io::run passes a timer on: starts_on(pool, timeout(...)) in a task.
//
// Under rules 3 and 4 it may turn out only at run time that there is no timer; asking for one then
// ends the process.
struct get_timed_scheduler_t {
    template <class Env>
    static consteval auto find() noexcept {
        if constexpr (has_query<Env, get_timed_scheduler_t>) {
            return get_timed_scheduler_t();
        } else if constexpr (names_certain<get_start_scheduler_t, Env>()) {
            return get_start_scheduler_t();
        } else if constexpr (names_certain<get_scheduler_t, Env>()) {
            return get_scheduler_t();
        } else if constexpr (names_certain<get_delegation_scheduler_t, Env>()) {
            return get_delegation_scheduler_t();
        } else if constexpr (names_timed<get_start_scheduler_t, Env>()) {
            return get_start_scheduler_t();
        } else if constexpr (names_timed<get_scheduler_t, Env>()) {
            return get_scheduler_t();
        } else if constexpr (has_query<Env, internal::get_inherited_timer_t>) {
            return internal::get_inherited_timer_t();
        }
    }
    template <class Env>
        requires(!std::is_void_v<decltype(find<Env>())>)
    constexpr auto operator()(const Env& env) const noexcept {
        if constexpr (has_query<Env, get_timed_scheduler_t>) {
            return env.query(*this);
        } else {
            return choose(find<Env>()(env), internal::get_inherited_timer(env));
        }
    }
    static constexpr bool query(forwarding_query_t) noexcept { return true; }

private:
    template <class Sch>
    static constexpr auto choose(Sch sch,
                                 [[maybe_unused]] internal::inherited_timer inherited) noexcept {
        if constexpr (std::is_same_v<Sch, internal::inherited_timer>) {
            return sch.required();
        } else if constexpr (std::is_same_v<Sch, any_scheduler>) {
            return inherited.is_before(sch) ? *inherited.scheduler() : sch;
        } else {
            return sch;
        }
    }
    template <class Query, class Env>
    static consteval bool names_timed() noexcept {
        if constexpr (internal::callable<Query, const Env&>) {
            return timed_scheduler<std::remove_cvref_t<internal::call_result_t<Query, const Env&>>>;
        } else {
            return false;
        }
    }
    template <class Query, class Env>
    static consteval bool names_certain() noexcept {
        if constexpr (internal::callable<Query, const Env&>) {
            return certainly_timed_scheduler<
                std::remove_cvref_t<internal::call_result_t<Query, const Env&>>>;
        } else {
            return false;
        }
    }
};
inline constexpr get_timed_scheduler_t get_timed_scheduler{};

}  // namespace coppice::execution
