// The scope of let_async_scope: its first error, its token, and the environment of nested work.
#pragma once
// The token is a scope_token that adds two things for spawn: the receiver's environment, which
// answers after the one given to spawn, and a consumer for errors. spawn_future and associate leave
// errors to their own consumers.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/internal/alternatives.hpp>
#include <coppice/exec/internal/as_exception.hpp>
#include <coppice/exec/internal/stop_registration.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/then.hpp>

namespace coppice::execution::internal {

// The scope, and the first error in it. Threads: those that run nested work or the body.
template <class... Errors>
class nested_failure : immovable {
public:
    using signatures = delivered_signatures_t<completion_signatures<set_error_t(Errors)...>>;
    // True if every error becomes an exception_ptr.
    static constexpr bool converts = std::is_same_v<void(Errors...), void(std::exception_ptr)>;

    // Returns true to the first caller, which has the first error.
    [[nodiscard]] bool claim() noexcept {
        // relaxed: only decides which thread stores; leaving the scope orders the store before the
        // delivery
        return !claimed_.exchange(true, relaxed) || planted("let_async_scope.no_claim");
    }
    // Called by failed nested work before it leaves the scope. Stops the rest.
    template <class Error>
    void fail(Error&& error) noexcept {
        if (!claim()) return;
        if constexpr (converts) {
            first_.keep(set_error_t(), internal::as_exception(static_cast<Error&&>(error)));
        } else {
            first_.keep(set_error_t(), static_cast<Error&&>(error));
        }
        scope.request_stop();
    }
    // Called after the join, as is deliver().
    bool has_error() const noexcept { return !first_.empty(); }
    template <class Rcvr>
    void deliver(Rcvr& rcvr) noexcept {
        first_.deliver(rcvr);
    }

    counting_scope scope;

private:
    completion_store<completion_signatures<set_error_t(Errors)...>>
        first_;  // written by the thread whose claim() succeeded
    atomic<bool> claimed_{false};
};
// A nested_failure that also answers nested work's queries. Env is the receiver's environment.
template <class Env, class... Errors>
struct nested_scope : nested_failure<Errors...> {
    explicit nested_scope(fwd_env_t<Env>&& base) noexcept
        : env(static_cast<fwd_env_t<Env>&&>(base)) {}
    const fwd_env_t<Env> env;
};

// Consumes the error of spawned work. An error of any other type does not compile.
template <class... Errors>
class takes_only {
public:
    explicit takes_only(nested_failure<Errors...>& failure) noexcept : failure_(&failure) {}
    template <class Error>
        requires nested_failure<Errors...>::converts || one_of<std::decay_t<Error>, Errors...>
    void operator()(Error&& error) noexcept {
        failure_->fail(static_cast<Error&&>(error));
    }

private:
    nested_failure<Errors...>* failure_;
};

// Associates nested work with the scope. Cheap to copy. Lifetime: until the last work of the scope
// has ended, so work in the scope may spawn more into it, from any thread.
template <class Env, class... Errors>
class let_async_scope_token {
public:
    explicit let_async_scope_token(nested_scope<Env, Errors...>& scope) noexcept : scope_(&scope) {}

    template <sender Sndr>
    sender auto wrap(Sndr&& sndr) const {
        return scope_->scope.get_token().wrap(static_cast<Sndr&&>(sndr));
    }
    counting_scope::association try_associate() const noexcept {
        return scope_->scope.get_token().try_associate();
    }
    // For spawn: what it connects, and an environment that answers after the one given to spawn.
    // The stop token is the scope's.
    template <sender Sndr>
    sender auto wrap_spawned(Sndr&& sndr) const {
        return wrap(upon_error(static_cast<Sndr&&>(sndr), takes_only<Errors...>(*scope_)));
    }
    auto get_env() const noexcept {
        return stop_token_env<never_stop_token, decltype((scope_->env))>(never_stop_token(),
                                                                         scope_->env);
    }

private:
    nested_scope<Env, Errors...>* scope_;
};

}  // namespace coppice::execution::internal
