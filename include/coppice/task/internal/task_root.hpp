// task_root: makes a task's context from the environment around the task, and keeps its parts.
#pragma once
// Made once for a task that is connected, or that is awaited by a coroutine other than a task of
// the same Env. Each part that refers to something kept is a class here: the stop token and its
// source, the timer, the allocator, the environment.

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/internal/linked_stop.hpp>
#include <coppice/task/internal/task_context.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>

namespace coppice::execution::internal {

// Tokens that take one callback at a time, and for which there is a source that takes several.
template <class Token>
concept strict_token = requires { typename tolerance<Token>::tolerant; };

// The source that a task owns if Env names Source. All children of one wait_for_tasks listen to its
// token. If Source takes one callback, it is therefore the tolerant source with the same token.
template <class Source>
struct task_owned_source {
    using type = Source;
};
template <class Source>
    requires strict_token<task_token_t<Source>> &&
             std::same_as<Source, typename tolerance<task_token_t<Source>>::strict>
struct task_owned_source<Source> {
    using type = typename tolerance<task_token_t<Source>>::tolerant;
};

// True if the token that tasks get, where Env names Source, takes several callbacks.
template <class Source>
concept takes_several_callbacks = !takes_one_callback<task_token_t<Source>> ||
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
    linked_stop<typename task_owned_source<Source>::type, Outer> linked_;
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
    linked_stop<typename tolerance::tolerant, Outer> linked_;
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

// The timed scheduler that a task gets from the environment around it: the scheduler that the
// environment names, of which this keeps a copy; otherwise the timer of the tasks above.
template <class Outer>
class outer_timer {
public:
    explicit outer_timer(const Outer&) noexcept {}
    static inherited_timer get(const Outer& outer) noexcept { return get_inherited_timer(outer); }
};
template <class Outer>
    requires has_query<Outer, get_timed_scheduler_t> &&
             std::constructible_from<any_scheduler,
                                     call_result_t<get_timed_scheduler_t, const Outer&>>
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
            std::constructible_from<Allocator, call_result_t<get_allocator_t, const Outer&>>
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

}  // namespace coppice::execution::internal
