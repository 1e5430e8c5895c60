// inherited_timer: the timed scheduler that tasks pass to what they await.
#pragma once

#include <coppice/exec/env.hpp>

namespace coppice::execution {

class any_scheduler;

namespace internal {

// A timed scheduler that tasks pass to what they await, because the type of their environment
// cannot tell it.
class inherited_timer {
public:
    constexpr inherited_timer() noexcept = default;
    // `sch` has timers. `is_named`: an environment further out names it as its timed scheduler;
    // false if it is only the scheduler of a task.
    constexpr inherited_timer(const any_scheduler& sch, bool is_named) noexcept
        : scheduler_(&sch), is_named_(is_named) {}

    // Returns nullptr if there is none. Lifetime: that of the task that passes it on.
    constexpr const any_scheduler* scheduler() const noexcept { return scheduler_; }
    // Returns the scheduler. Ends the process, with advice, if there is none.
    const any_scheduler& required() const noexcept;
    constexpr bool is_named() const noexcept { return is_named_; }
    // Returns true if it is preferred to `sch`, a scheduler that may have no timers.
    template <class Sch>
    constexpr bool is_before(const Sch& sch) const noexcept {
        return is_named_ || (scheduler_ != nullptr && !sch.has_timers());
    }

private:
    const any_scheduler* scheduler_ = nullptr;
    bool is_named_ = false;
};
// Returns the timer that is passed on in an environment; one without a scheduler if there is none.
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

}  // namespace internal

}  // namespace coppice::execution
