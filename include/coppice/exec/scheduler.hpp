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

template <class Sch>
concept scheduler = declares_scheduler<Sch> && internal::queryable<Sch> && requires(Sch&& sch) {
    { schedule(static_cast<Sch&&>(sch)) } -> sender;
    { get_forward_progress_guarantee(sch) } -> std::same_as<forward_progress_guarantee>;
} && std::equality_comparable<std::remove_cvref_t<Sch>> && std::copyable<std::remove_cvref_t<Sch>>;

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

// The attributes of a sender whose completions with Tags happen where it is started.
template <class... Tags>
struct inline_attrs {
    constexpr inline_attrs() noexcept = default;
    template <class Tag, class Env>
        requires internal::one_of<Tag, Tags...> &&
                 internal::callable<get_start_scheduler_t, const Env&>
    constexpr auto query(get_completion_scheduler_t<Tag>, const Env& env) const noexcept {
        return get_start_scheduler(env);
    }
    template <class Tag, class Env>
        requires internal::one_of<Tag, Tags...> &&
                 (!internal::callable<get_start_scheduler_t, const Env&>) &&
                 internal::callable<get_scheduler_t, const Env&>
    constexpr auto query(get_completion_scheduler_t<Tag>, const Env& env) const noexcept {
        return get_scheduler(env);
    }
    template <class Tag, class Env>
        requires internal::one_of<Tag, Tags...>
    constexpr auto query(get_completion_domain_t<Tag>, const Env& env) const noexcept {
        return get_domain(env);
    }
};

template <class Query>
inline constexpr bool says_where = false;  // true if the query asks where a sender completes
template <class Tag>
inline constexpr bool says_where<get_completion_scheduler_t<Tag>> = true;
template <class Tag>
inline constexpr bool says_where<get_completion_domain_t<Tag>> = true;

// Asks a sender's attributes. If get_env() returns them by value, they do not outlive the question,
// and an answer by reference is copied.
template <class Sndr, class Query, class... Args>
constexpr decltype(auto) query_attrs(const Sndr& sndr, Query tag, Args&&... args) noexcept {
    using Attrs = env_of_t<const Sndr&>;
    using Result = decltype(std::declval<Attrs>().query(tag, static_cast<Args&&>(args)...));
    if constexpr (std::is_lvalue_reference_v<Attrs>) {
        return execution::get_env(sndr).query(tag, static_cast<Args&&>(args)...);
    } else {
        return std::decay_t<Result>(
            execution::get_env(sndr).query(tag, static_cast<Args&&>(args)...));
    }
}

// An adaptor's attributes: those of its child, but of the completion queries only those for Tags.
template <class Child, class... Tags>
class child_attrs {
public:
    constexpr explicit child_attrs(const Child& child) noexcept : child_(&child) {}

    template <class Query, class... Args>
        requires is_forwarding_query<Query> && has_query<env_of_t<const Child&>, Query, Args...> &&
                 (!says_where<Query>)
    constexpr decltype(auto) query(Query tag, Args&&... args) const noexcept {
        return execution::query_attrs(*child_, tag, static_cast<Args&&>(args)...);
    }
    template <class Tag, class... Env>
        requires internal::one_of<Tag, Tags...> &&
                 internal::callable<get_completion_scheduler_t<Tag>, env_of_t<const Child&>,
                                    const Env&...>
    constexpr auto query(get_completion_scheduler_t<Tag> ask, const Env&... env) const noexcept {
        return ask(execution::get_env(*child_), env...);
    }
    template <class Tag, class... Env>
        requires internal::one_of<Tag, Tags...> &&
                 internal::callable<get_completion_domain_t<Tag>, env_of_t<const Child&>,
                                    const Env&...>
    constexpr auto query(get_completion_domain_t<Tag> ask, const Env&... env) const noexcept {
        return ask(execution::get_env(*child_), env...);
    }

private:
    const Child* child_;
};

}  // namespace coppice::execution
