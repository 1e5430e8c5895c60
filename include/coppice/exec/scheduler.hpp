// Schedulers are handles to an execution resource; schedule makes a sender that runs there.
#pragma once
// Source: [exec.sched], [exec.schedule].

#include <coppice/exec/connect.hpp>

namespace coppice::execution {

// Returns a sender that completes on an agent of the scheduler's resource. Source: [exec.schedule].
struct schedule_t {
    template <class Sch>
        requires requires(Sch&& sch) { static_cast<Sch&&>(sch).schedule(); }
    constexpr auto operator()(Sch&& sch) const
        noexcept(noexcept(static_cast<Sch&&>(sch).schedule()))
            -> decltype(static_cast<Sch&&>(sch).schedule()) {
        static_assert(sender<decltype(static_cast<Sch&&>(sch).schedule())>,
                      "a scheduler's schedule must return a sender");
        return static_cast<Sch&&>(sch).schedule();
    }
};
inline constexpr schedule_t schedule{};

// A handle to an execution resource: copyable, equality-comparable, with a schedule() that returns
// a sender. Source: [exec.sched].
template <class Sch>
concept scheduler =
    internal::declares_scheduler<Sch> &&
    requires(Sch&& sch) {
        { schedule(static_cast<Sch&&>(sch)) } -> sender;
        { get_forward_progress_guarantee(sch) } -> std::same_as<forward_progress_guarantee>;
    } && internal::queryable<Sch> && std::equality_comparable<std::remove_cvref_t<Sch>> &&
    std::copyable<std::remove_cvref_t<Sch>>;

// The sender that schedule() returns.
template <scheduler Sch>
using schedule_result_t = decltype(schedule(std::declval<Sch>()));

// A scheduler whose schedule operation can be stopped but not fail. Source: [exec.sched] p11.
template <class Sch, class Env>
concept infallible_scheduler =
    scheduler<Sch> && (std::same_as<completion_signatures<set_value_t()>,
                                    completion_signatures_of_t<schedule_result_t<Sch>, Env>> ||
                       (!unstoppable_token<stop_token_of_t<Env>> &&
                        (std::same_as<completion_signatures<set_value_t(), set_stopped_t()>,
                                      completion_signatures_of_t<schedule_result_t<Sch>, Env>> ||
                         std::same_as<completion_signatures<set_stopped_t(), set_value_t()>,
                                      completion_signatures_of_t<schedule_result_t<Sch>, Env>>)));

// The environment of an operation that is started on a scheduler. SCHED-ENV of the draft. It also
// answers get_scheduler, so that read_env(get_scheduler) says where the operation runs.
template <class Sch>
class scheduler_env {
public:
    constexpr explicit scheduler_env(Sch sch) noexcept : sch_(static_cast<Sch&&>(sch)) {}
    constexpr Sch query(get_start_scheduler_t) const noexcept { return sch_; }
    constexpr Sch query(get_scheduler_t) const noexcept { return sch_; }
    constexpr auto query(get_domain_t) const noexcept
        requires has_query<Sch, get_domain_t>
    {
        return sch_.query(get_domain);
    }

private:
    [[no_unique_address]] Sch sch_;
};

}  // namespace coppice::execution
