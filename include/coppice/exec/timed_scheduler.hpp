// Timed schedulers: those that can run something later. What timeout needs.
#pragma once
// A scheduler is timed if it has
//   now()                    an instant (or a <chrono> time point of its clock)
//   schedule_after(span)     a sender that completes on the scheduler, at least span after its
//   start
// and may have schedule_at(instant); it takes time_span or std::chrono::nanoseconds. A stop request
// ends the wait with set_stopped. run_loop and io::context have timed schedulers. One that may have
// no timers says so by has_timers(): any_scheduler, which a task's scheduler is.

#include <coppice/exec/deadline.hpp>
#include <coppice/exec/scheduler.hpp>

namespace coppice::execution {

// Waits on a timed scheduler.
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

// The time of a timed scheduler's own clock.
struct now_t {
    template <class Sch>
        requires requires(const Sch& sch) { instant(sch.now()); }
    constexpr instant operator()(const Sch& sch) const noexcept {
        return instant(sch.now());
    }
};
inline constexpr now_t now{};

// Waits until a time of the scheduler's clock; at once if it has passed.
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

template <class Sch>
concept timed_scheduler = scheduler<Sch> && requires(const Sch& sch, time_span span) {
    { now(sch) } -> std::same_as<instant>;
    { schedule_after(sch, span) } -> sender;
};

// One that is timed for certain, and need not be asked.
template <class Sch>
concept certainly_timed_scheduler =
    timed_scheduler<Sch> && !requires(const Sch& sch) { sch.has_timers(); };

class any_scheduler;

// What tasks hand down to what they await, since their environment's type cannot say it.
class inherited_timer {
public:
    constexpr inherited_timer() noexcept = default;
    // `sch` has timers; is_named: an environment above names it, it is not only where a task runs.
    constexpr inherited_timer(const any_scheduler& sch, bool is_named) noexcept
        : scheduler_(&sch), is_named_(is_named) {}

    // nullptr: there is none. Lifetime: of the task that hands it down.
    constexpr const any_scheduler* scheduler() const noexcept { return scheduler_; }
    // The same, where there has to be one; else the process is stopped with advice.
    const any_scheduler& required() const noexcept;
    constexpr bool is_named() const noexcept { return is_named_; }
    // Whether it is used in place of a scheduler that may have no timers.
    template <class Sch>
    constexpr bool is_before(const Sch& sch) const noexcept {
        return is_named_ || (scheduler_ != nullptr && !sch.has_timers());
    }

private:
    const any_scheduler* scheduler_ = nullptr;
    bool is_named_ = false;
};
struct get_inherited_timer_t {
    template <class Env>
    constexpr inherited_timer operator()(const Env& env) const noexcept {
        if constexpr (has_query<Env, get_inherited_timer_t>) {
            return env.query(*this);
        } else {
            return {};
        }
    }
    static constexpr bool query(forwarding_query_t) noexcept { return true; }
};
inline constexpr get_inherited_timer_t get_inherited_timer{};

// The timed scheduler of an environment: the one it names, or else its start scheduler, its own
// scheduler or its delegation scheduler, the first of them that is timed for certain. Or else the
// first that may be, as a task's: before it comes one that was named around the task, or around
// those that await it; behind it, if it has no timers, the nearest of those tasks' that has. So it
// is, too, where the environment's own scheduler has no timers, but a task, or io::run, is around
// it: starts_on(pool, timeout(...)) in a task. If there is none, that is known only when a timer is
// asked for, and stops the process.
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
        } else if constexpr (has_query<Env, get_inherited_timer_t>) {
            return get_inherited_timer_t();
        }
    }
    template <class Env>
        requires(!std::is_void_v<decltype(find<Env>())>)
    constexpr auto operator()(const Env& env) const noexcept {
        if constexpr (has_query<Env, get_timed_scheduler_t>) {
            return env.query(*this);
        } else {
            return choose(find<Env>()(env), get_inherited_timer(env));
        }
    }
    static constexpr bool query(forwarding_query_t) noexcept { return true; }

private:
    template <class Sch>
    static constexpr auto choose(Sch sch, [[maybe_unused]] inherited_timer inherited) noexcept {
        if constexpr (std::is_same_v<Sch, inherited_timer>) {
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
