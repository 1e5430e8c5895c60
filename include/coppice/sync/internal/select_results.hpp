// select_results: what the branches of a select see, and what they end with.
#pragma once

#include <coppice/exec/deadline.hpp>
#include <coppice/exec/internal/alternatives.hpp>
#include <coppice/exec/value_types.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/sync/internal/wait.hpp>

#include <exception>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

namespace coppice::internal {

template <class T>
using filled_t = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

// The results of a branch of this room.
template <class Request>
struct room_results {
    using result = filled_t<typename Request::result>;
    using errors = execution::internal::signatures_union_t<
        execution::completion_signatures<execution::set_error_t(std::error_code)>,
        execution::internal::exception_signature<take_may_throw<Request>>>;
    static constexpr bool may_stop = false;
};

// The deadline of a select, as its children see it: it arrives as a stop.
class select_deadline {
public:
    explicit select_deadline(execution::instant when) noexcept : when_(when) {}
    operator execution::instant() const noexcept { return when_; }
    static execution::instant unwatched() noexcept { return execution::instant::never(); }

private:
    execution::instant when_;
};

// What the child of a select can ask: the stop of the select, then the environment of its waiter.
template <class Env>
class select_child_env {
public:
    select_child_env(inplace_stop_token stop, Env&& base) noexcept
        : stop_(stop), base_(static_cast<Env&&>(base)) {}
    inplace_stop_token query(get_stop_token_t) const noexcept { return stop_; }
    select_deadline query(execution::get_deadline_t) const noexcept
        requires execution::has_query<Env, execution::get_deadline_t>
    {
        return select_deadline(execution::get_deadline(base_));
    }
    template <class Query, class... Args>
        requires(!execution::internal::one_of<Query, get_stop_token_t,
                                              execution::get_deadline_t>) &&
                execution::is_forwarding_query<Query> && execution::has_query<Env, Query, Args...>
    decltype(auto) query(Query tag, Args&&... args) const noexcept {
        return static_cast<const Env&>(base_).query(tag, static_cast<Args&&>(args)...);
    }

private:
    inplace_stop_token stop_;
    [[no_unique_address]] Env base_;
};

// The errors of a set of signatures, decayed, as signatures and as a place for one of them. Keeping
// a result or an error may throw.
template <class... Errors>
struct child_errors {
    using signatures =
        execution::internal::set_insert_t<execution::completion_signatures<>,
                                          execution::set_error_t(Errors)...,
                                          execution::set_error_t(std::exception_ptr)>;
    using stored = execution::internal::set_insert_t<execution::internal::alternatives<>, Errors...,
                                                     std::exception_ptr>;
};
template <class... Errors>
using decayed_child_errors = child_errors<std::decay_t<Errors>...>;

// The results of a sender in the environment Env of a child.
template <class Sndr, class... Env>
struct child_results {
    using signatures = execution::completion_signatures_of_t<Sndr, Env...>;
    static_assert(execution::single_sender<Sndr, Env...>,
                  "a branch of select sends one kind of result; into_variant makes it one");
    using result = filled_t<execution::single_sender_value_type<Sndr, Env...>>;
    using of_errors = execution::gather_signatures<execution::set_error_t, signatures,
                                                   std::type_identity_t, decayed_child_errors>;
    using errors = typename of_errors::signatures;
    using kept_error = typename of_errors::stored;
    static constexpr bool may_stop = signatures::count_of(execution::set_stopped) != 0;
};

}  // namespace coppice::internal
