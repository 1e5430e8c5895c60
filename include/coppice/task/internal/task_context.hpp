// task_context: the scheduler, stop token, timer, and environment that a task inherits, by its Env.
#pragma once
// A context is made for a task that is connected, or that is awaited by a coroutine other than a
// task. It also serves all tasks of the same Env that this task awaits. They hold its address, so
// that an awaited task pays for one pointer.
//
// A timed scheduler that is named around a task reaches everything that the task awaits. So does a
// deadline, unless a timeout has set it. The deadline of a timeout would put a timer into the loop
// for each operation below it, although the stop when it expires serves all of them. And an
// operation that is made unstoppable in order to finish after that stop would end at once.

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/internal/linked_stop.hpp>
#include <coppice/stop/inplace.hpp>

#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace coppice::execution {

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
                 const internal::fork_team* given_to = nullptr) noexcept
        : scheduler(static_cast<scheduler_type&&>(sch)),
          stop_token(static_cast<stop_token_type&&>(token)),
          environment_(&environment),
          team_(execution::team_of(scheduler)),
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
        team_ = execution::team_of(scheduler);
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
    const internal::fork_team* team() const noexcept { return team_; }
    // Returns the team that awaited tasks inherit. A task below that has a scheduler has its own
    // team.
    const internal::fork_team* given_to() const noexcept { return is_inline_ ? team_ : nullptr; }
    // Returns the timer that awaited operations inherit: the one that is named; otherwise this
    // scheduler, if it has timers; otherwise that of a task above. A scheduler of a type other than
    // any_scheduler is not passed on.
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
    const internal::fork_team* team_;
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
    const internal::fork_team* query(get_fork_team_t) const noexcept {
        return context_->given_to();
    }
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
        requires(!internal::one_of<Query, get_start_scheduler_t, get_scheduler_t, get_stop_token_t,
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

// Tokens that take one callback at a time, and for which there is a source that takes several.
template <class Token>
concept strict_token = requires { typename internal::tolerance<Token>::tolerant; };

// The source that a task owns if Env names Source. All children of one wait_for_tasks listen to its
// token. If Source takes one callback, it is therefore the tolerant source with the same token.
template <class Source>
struct task_owned_source {
    using type = Source;
};
template <class Source>
    requires strict_token<task_token_t<Source>> &&
             std::same_as<Source, typename internal::tolerance<task_token_t<Source>>::strict>
struct task_owned_source<Source> {
    using type = typename internal::tolerance<task_token_t<Source>>::tolerant;
};

// True if the token that tasks get, where Env names Source, takes several callbacks.
template <class Source>
concept takes_several_callbacks = !internal::takes_one_callback<task_token_t<Source>> ||
                                  !std::same_as<Source, typename task_owned_source<Source>::type>;

// The stop token passed to awaited operations: the outer token if the types match, otherwise one
// from a source that the outer token stops.
template <class Source, class Outer>
class task_stop : immovable {
public:
    explicit task_stop(const Outer&) {}
    void listen(Outer outer) noexcept { linked_.engage(static_cast<Outer&&>(outer)); }
    void reset() noexcept { linked_.reset(); }
    auto token() noexcept { return linked_.token(); }

private:
    internal::linked_stop<typename task_owned_source<Source>::type, Outer> linked_;
};
template <class Source, class Outer>
    requires(std::same_as<Outer, task_token_t<Source>> && !strict_token<Outer>) ||
            (unstoppable_token<Outer> && std::default_initializable<task_token_t<Source>>)
class task_stop<Source, Outer> : immovable {
    using token_type = task_token_t<Source>;

public:
    explicit task_stop(Outer outer) : token_(from(static_cast<Outer&&>(outer))) {}
    void listen(const Outer&) noexcept {}
    void reset() noexcept {}
    token_type token() noexcept { return token_; }

private:
    static token_type from(Outer outer) {
        if constexpr (std::same_as<Outer, token_type>) {
            return outer;
        } else {
            return token_type();
        }
    }
    token_type token_;
};
// The types match, but only the token itself knows whether its source takes several callbacks. If
// it takes one, that is the callback of this task's own source, whose token is passed instead.
template <class Source, strict_token Outer>
    requires std::same_as<Outer, task_token_t<Source>>
class task_stop<Source, Outer> : immovable {
    using tolerance = internal::tolerance<Outer>;

public:
    explicit task_stop(const Outer& outer) noexcept
        : token_(tolerance::takes_several(outer) ? outer : linked_.token()) {}
    void listen(const Outer& outer) noexcept {
        if (!tolerance::takes_several(outer)) linked_.engage(outer);
    }
    void reset() noexcept { linked_.reset(); }
    Outer token() noexcept { return token_; }

private:
    internal::linked_stop<typename tolerance::tolerant, Outer> linked_;
    const Outer token_;
};

// Returns the scheduler that an outer environment names, or an inline one if it names none. Errors:
// what constructing a Sch throws. An any_scheduler allocates for a scheduler that is too large for
// its buffer.
template <class Sch, class Outer>
Sch task_scheduler_from(const Outer& outer) {
    if constexpr (requires { Sch(get_start_scheduler(outer)); }) {
        return Sch(get_start_scheduler(outer));
    } else if constexpr (requires { Sch(get_scheduler(outer)); }) {
        return Sch(get_scheduler(outer));
    } else if constexpr (std::constructible_from<Sch, inline_scheduler>) {
        return Sch(inline_scheduler());
    } else {
        static_assert(
            std::default_initializable<Sch>,
            "task: the outer environment names no scheduler, and Env's scheduler type has "
            "no default constructor");
        return Sch();
    }
}

// The timed scheduler that an outer environment has for a task: the one that the environment names,
// which is kept here; otherwise the one that the tasks above pass on.
template <class Outer>
class outer_timer {
public:
    explicit outer_timer(const Outer&) noexcept {}
    static inherited_timer get(const Outer& outer) noexcept { return get_inherited_timer(outer); }
};
template <class Outer>
    requires has_query<Outer, get_timed_scheduler_t> &&
             std::constructible_from<any_scheduler,
                                     internal::call_result_t<get_timed_scheduler_t, const Outer&>>
class outer_timer<Outer> : immovable {
public:
    explicit outer_timer(const Outer& outer) : named_(get_timed_scheduler(outer)) {}
    // any_scheduler cannot use a scheduler whose timers may fail.
    inherited_timer get(const Outer& outer) const noexcept {
        return named_.has_timers() ? inherited_timer(named_, true) : get_inherited_timer(outer);
    }

private:
    any_scheduler named_;
};

// Keeps the allocator that an outer environment has for a task. Source: [task.promise], get_env, as
// changed by P3980R0.
template <class Allocator, class Outer>
class outer_allocator {
public:
    explicit outer_allocator(const Outer&) noexcept {}
    static inherited_allocator<Allocator> get() noexcept { return {}; }
};
template <class Allocator, class Outer>
    requires(!std::same_as<Allocator, std::allocator<std::byte>>) &&
            has_query<Outer, get_allocator_t> &&
            std::constructible_from<Allocator,
                                    internal::call_result_t<get_allocator_t, const Outer&>>
class outer_allocator<Allocator, Outer> : immovable {
public:
    explicit outer_allocator(const Outer& outer) : allocator_(get_allocator(outer)) {}
    inherited_allocator<Allocator> get() const noexcept {
        return inherited_allocator<Allocator>(allocator_);
    }

private:
    Allocator allocator_;
};

// A context made from an outer environment, with everything to which the context refers.
template <class Env, class Outer>
class task_root : immovable {
    using source_type = typename task_stop_source<Env>::type;
    using own_env_type = typename task_own_env<Env, Outer>::type;
    using stop_type = task_stop<source_type, stop_token_of_t<Outer>>;

public:
    explicit task_root(const Outer& outer)
        : own_env_(make_own(outer)),
          environment_(make_environment(own_env_, outer)),
          stop_(get_stop_token(outer)),
          timer_(outer),
          allocator_(outer),
          context_(task_scheduler_from<typename task_context<Env>::scheduler_type>(outer),
                   stop_.token(), environment_, timer_.get(outer), allocator_.get(),
                   get_fork_team_t()(outer)) {
        context_.deadline = get_unwatched_deadline(outer);
    }

    task_context<Env>& context() noexcept { return context_; }
    // Called before the task starts; reset() is called when it has ended.
    void listen(const Outer& outer) noexcept { stop_.listen(get_stop_token(outer)); }
    void reset() noexcept { stop_.reset(); }

private:
    static own_env_type make_own(const Outer& outer) {
        if constexpr (std::constructible_from<own_env_type, const Outer&>) {
            return own_env_type(outer);
        } else {
            return own_env_type();
        }
    }
    static Env make_environment(const own_env_type& own, const Outer& outer) {
        if constexpr (std::constructible_from<Env, const own_env_type&>) {
            return Env(own);
        } else if constexpr (std::constructible_from<Env, const Outer&>) {
            return Env(outer);
        } else {
            return Env();
        }
    }
    [[no_unique_address]] own_env_type own_env_;
    [[no_unique_address]] Env environment_;
    stop_type stop_;
    [[no_unique_address]] outer_timer<Outer> timer_;
    [[no_unique_address]] outer_allocator<typename task_allocator<Env>::type, Outer> allocator_;
    task_context<Env> context_;
};

}  // namespace coppice::execution
