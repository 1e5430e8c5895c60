// task_context: the scheduler, stop token, timer, and environment that a task inherits, by its Env.
#pragma once
// One context serves a task that is connected or awaited by another coroutine, and all tasks of the
// same Env that this task awaits. They hold its address, so that an awaited task pays for one
// pointer. task_root.hpp makes it.
//
// A timed scheduler that is named around a task reaches everything that the task awaits. So does a
// deadline, unless a timeout has set it. The deadline of a timeout would put a timer into the loop
// for each operation below it, although the stop when it expires serves all of them. And an
// operation that is made unstoppable in order to finish after that stop would end at once.

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/completion_signatures.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/stop/inplace.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <utility>

namespace coppice::execution::internal {

// The members of Env, or their defaults. Source: [task.class], [task.members].
template <class Env>
struct task_allocator {
    using type = std::allocator<std::byte>;
};
template <class Env>
    requires requires { typename Env::allocator_type; }
struct task_allocator<Env> {
    using type = typename Env::allocator_type;
};
template <class Env>
struct task_start_scheduler {
    using type = task_scheduler;
};
template <class Env>
    requires requires { typename Env::scheduler_type; }
struct task_start_scheduler<Env> {
    using type = typename Env::scheduler_type;
};
template <class Env>
    requires requires { typename Env::start_scheduler_type; }
struct task_start_scheduler<Env> {
    using type = typename Env::start_scheduler_type;
};
template <class Env>
struct task_stop_source {
    using type = inplace_stop_source;
};
template <class Env>
    requires requires { typename Env::stop_source_type; }
struct task_stop_source<Env> {
    using type = typename Env::stop_source_type;
};
template <class Source>
using task_token_t = decltype(std::declval<Source&>().get_token());
template <class Env>
struct task_errors {
    using type = completion_signatures<set_error_t(std::exception_ptr)>;
};
template <class Env>
    requires requires { typename Env::error_types; }
struct task_errors<Env> {
    using type = typename Env::error_types;
};
template <class Env, class Outer>
struct task_own_env {
    using type = env<>;
};
template <class Env, class Outer>
    requires requires { typename Env::template env_type<Outer>; }
struct task_own_env<Env, Outer> {
    using type = typename Env::template env_type<Outer>;
};

// The allocator that a task inherits from the environment around it, if Env's allocator_type can be
// made from it. The task_root keeps it. All objects of plain std::allocator are equal, so none is
// kept.
template <class Allocator>
class inherited_allocator {
public:
    constexpr inherited_allocator() noexcept = default;
    explicit inherited_allocator(const Allocator& from) noexcept : allocator_(&from) {}
    const Allocator& or_else(const Allocator& own) const noexcept {
        return allocator_ == nullptr ? own : *allocator_;
    }

private:
    const Allocator* allocator_ = nullptr;
};
template <>
class inherited_allocator<std::allocator<std::byte>> {
public:
    static std::allocator<std::byte> or_else(std::allocator<std::byte>) noexcept { return {}; }
};

template <class Env>
class task_context : immovable {
public:
    using allocator_type = typename task_allocator<Env>::type;
    using scheduler_type = typename task_start_scheduler<Env>::type;
    using stop_token_type = task_token_t<typename task_stop_source<Env>::type>;

    task_context(scheduler_type sch, stop_token_type token, const Env& environment,
                 inherited_timer inherited, inherited_allocator<allocator_type> allocator,
                 const fork_team* given_to = nullptr) noexcept
        : scheduler(static_cast<scheduler_type&&>(sch)),
          stop_token(static_cast<stop_token_type&&>(token)),
          environment_(&environment),
          team_(internal::team_of(scheduler)),
          is_inline_(runs_inline(scheduler)),
          inherited_(inherited),
          allocator_(allocator) {
        if (is_inline_) team_ = given_to;
    }

    scheduler_type scheduler;  // changed by change_scheduler()
    stop_token_type stop_token;
    instant deadline = instant::never();  // that of the waiter; written before the task starts
    void change_scheduler(scheduler_type sch) noexcept {
        scheduler = static_cast<scheduler_type&&>(sch);
        team_ = internal::team_of(scheduler);
        is_inline_ = runs_inline(scheduler);
    }
    const Env& environment() const noexcept { return *environment_; }
    inherited_allocator<allocator_type> allocator() const noexcept { return allocator_; }
    // True if the task has no scheduler to come back to after an await.
    bool is_inline() const noexcept { return is_inline_; }
    // Returns the workers that may run tasks for which a task of this scheduler waits. Returns
    // nullptr if only the current thread may run them. A task without a scheduler has the team of
    // the pool to which it was submitted, which the environment around it names by get_fork_team_t.
    // Such a task forks while it is on one of those workers.
    const fork_team* team() const noexcept { return team_; }
    // Returns the team that awaited tasks inherit. A task below that has a scheduler has its own
    // team.
    const fork_team* given_to() const noexcept { return is_inline_ ? team_ : nullptr; }
    // Returns the timer that awaited operations inherit: the timer that the environment names;
    // otherwise this scheduler, if it has timers; otherwise the timer of a task above. A scheduler
    // of a type other than any_scheduler is not passed on.
    inherited_timer timer() const noexcept {
        if constexpr (std::same_as<scheduler_type, any_scheduler>) {
            if (!inherited_.is_named() && scheduler.has_timers()) {
                return inherited_timer(scheduler, false);
            }
        }
        return inherited_;
    }

private:
    static bool runs_inline(const scheduler_type& sch) noexcept {
        if constexpr (requires { static_cast<bool>(sch == inline_scheduler()); }) {
            return sch == inline_scheduler();
        } else {
            return false;
        }
    }
    const Env* environment_;
    const fork_team* team_;
    bool is_inline_;
    const inherited_timer inherited_;
    [[no_unique_address]] const inherited_allocator<allocator_type> allocator_;
};

// The environment of the operations that a task awaits. Source: [task.promise], get_env.
template <class Env>
class task_env {
    using context_type = task_context<Env>;
    using allocator_type = typename task_allocator<Env>::type;

public:
    // `own` is the allocator that the coroutine was given.
    task_env(const context_type* context, const allocator_type& own) noexcept
        : context_(context), allocator_(context->allocator().or_else(own)) {}

    typename context_type::scheduler_type query(get_start_scheduler_t) const noexcept {
        return context_->scheduler;
    }
    typename context_type::scheduler_type query(get_scheduler_t) const noexcept {
        return context_->scheduler;
    }
    typename context_type::stop_token_type query(get_stop_token_t) const noexcept {
        return context_->stop_token;
    }
    allocator_type query(get_allocator_t) const noexcept { return allocator_; }
    inherited_timer query(get_inherited_timer_t) const noexcept { return context_->timer(); }
    const fork_team* query(get_fork_team_t) const noexcept { return context_->given_to(); }
    // Returns when an operation may give up. The answer of Env has priority over the inherited one.
    instant query(get_deadline_t) const noexcept
        requires(!unstoppable_token<typename context_type::stop_token_type> ||
                 has_query<Env, get_deadline_t>)
    {
        if constexpr (has_query<Env, get_deadline_t>) {
            return get_deadline(context_->environment());
        } else {
            return context_->deadline;
        }
    }
    template <class Query, class... Args>
        requires(!one_of<Query, get_start_scheduler_t, get_scheduler_t, get_stop_token_t,
                         get_allocator_t, get_inherited_timer_t, get_fork_team_t,
                         get_deadline_t>) &&
                is_forwarding_query<Query> && has_query<Env, Query, Args...>
    decltype(auto) query(Query tag, Args&&... args) const noexcept {
        return context_->environment().query(tag, static_cast<Args&&>(args)...);
    }

private:
    const context_type* context_;
    [[no_unique_address]] allocator_type allocator_;
};

}  // namespace coppice::execution::internal
