// let_async_scope, scoped: a scope for nested work that is joined on every path.
#pragma once
// The function gets a scope token and lvalues of the first sender's values. It returns a sender,
// the body, or nothing. The operation completes with the body's result, but only after everything
// spawned into the scope has ended, whether the function throws, the body fails, or a stop arrives.
// The first error wins, whether it comes from the function, the body, or spawned work: it stops the
// rest and is the result. The implementation is a let_value, which keeps the values, of a sender
// that opens the scope:
//
//   actor               action
//   a requester         passes the stop to the scope, and holds the scope meanwhile
//   nested work         stores its error if it is the first, and stops the scope; leaves
//   the body            stores its result; an error stops the scope; joins
//   the last to leave   completes the receiver, on its own thread
//
// The token is a scope_token that adds two things for spawn: the receiver's environment, which
// answers after the one given to spawn, and a consumer for errors. spawn_future and associate leave
// errors to their own consumers.
// Source: P3296R3; scoped is ours. Cost: no allocation; one callback on the receiver's stop token.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/exec/internal/as_exception.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/then.hpp>

namespace coppice::execution {

template <class... Errors>
struct let_async_scope_with_error_t;
struct noexcept_function {};  // the function must be noexcept if Errors has no exception_ptr

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
        return !claimed_.exchange(true, internal::relaxed) ||
               internal::planted("let_async_scope.no_claim");
    }
    // Called by failed nested work before it leaves the scope. Stops the rest.
    template <class Error>
    void fail(Error&& error) noexcept {
        if (!claim()) return;
        if constexpr (converts) {
            first_.keep(set_error_t(),
                        execution::internal::as_exception(static_cast<Error&&>(error)));
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
    internal::atomic<bool> claimed_{false};
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
        requires nested_failure<Errors...>::converts ||
                 internal::one_of<std::decay_t<Error>, Errors...>
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

// Calls the function to get the body. A function that returns nothing has the body just().
template <class F, class Token, class... Vs>
    requires std::invocable<F, Token, Vs&...>
constexpr sender auto call_for_body(F&& f, Token token, Vs&... values) noexcept(
    std::is_nothrow_invocable_v<F, Token, Vs&...>) {
    if constexpr (std::is_void_v<std::invoke_result_t<F, Token, Vs&...>>) {
        execution::internal::invoke(static_cast<F&&>(f), token, values...);
        return just();
    } else {
        return execution::internal::invoke(static_cast<F&&>(f), token, values...);
    }
}
template <class F, class Token, class... Vs>
using scope_body_t = decltype(execution::call_for_body(std::declval<F>(), std::declval<Token>(),
                                                       std::declval<Vs&>()...));
template <class F, class Token, class... Vs>
inline constexpr bool returns_a_body = std::is_invocable_v<F, Token, Vs&...>;
template <class F, class Token, class... Vs>
    requires std::is_invocable_v<F, Token, Vs&...>
inline constexpr bool returns_a_body<F, Token, Vs...> =
    std::is_void_v<std::invoke_result_t<F, Token, Vs&...>> ||
    sender<std::invoke_result_t<F, Token, Vs&...>>;
template <class Env>
using scope_body_env_t = stop_token_env<inplace_stop_token, Env>;

template <class F, class Rcvr, class Token, class... Vs>
class open_scope_operation;
template <class F, class Rcvr, class... Errors, class... Vs>
class open_scope_operation<F, Rcvr, let_async_scope_token<env_of_t<const Rcvr&>, Errors...>, Vs...>
    final : scope_base::joiner {
    using Env = env_of_t<const Rcvr&>;
    using token_type = let_async_scope_token<Env, Errors...>;
    using body_type = scope_body_t<F, token_type, Vs...>;

    class body_receiver {
    public:
        using receiver_concept = receiver_tag;
        explicit body_receiver(open_scope_operation& op) noexcept : op_(&op) {}
        template <class... Args>
        void set_value(Args&&... args) && noexcept {
            op_->ended(set_value_t(), static_cast<Args&&>(args)...);
        }
        template <class Error>
        void set_error(Error&& error) && noexcept {
            op_->failed(static_cast<Error&&>(error));
        }
        void set_stopped() && noexcept { op_->ended(set_stopped_t()); }
        scope_body_env_t<Env> get_env() const noexcept {
            return scope_body_env_t<Env>(op_->nested_.scope.get_stop_token(),
                                         execution::get_env(std::as_const(op_->rcvr_)));
        }

    private:
        open_scope_operation* op_;
    };
    // What is kept until the join, including an exception thrown before the body starts.
    using kept_signatures =
        signatures_union_t<completion_signatures_of_t<body_type, scope_body_env_t<Env>>,
                           completion_signatures<set_error_t(std::exception_ptr)>>;

public:
    using operation_state_concept = operation_state_tag;
    static constexpr bool nothrow = std::is_nothrow_invocable_v<F, token_type, Vs&...> &&
                                    nothrow_connectable<body_type, body_receiver>;

    open_scope_operation(F&& function, internal::product<Vs*...> values,
                         Rcvr rcvr) noexcept(std::is_nothrow_move_constructible_v<F>)
        : rcvr_(static_cast<Rcvr&&>(rcvr)),
          nested_(execution::child_env(std::as_const(rcvr_))),
          function_(static_cast<F&&>(function)),
          values_(values) {}
    ~open_scope_operation() {
        COPPICE_CHECK(phase_ != phase::open,
                      "an operation of let_async_scope was destroyed while it was running");
    }

    void start() & noexcept {
        COPPICE_CHECK(phase_ == phase::idle, "an operation of let_async_scope was started twice");
        phase_ = phase::open;
        on_stop_.engage(get_stop_token(execution::get_env(rcvr_)), request_stop_of(nested_.scope));
        const auto make = [this]() noexcept(nothrow) {
            return values_.apply([this](Vs*... values) noexcept(nothrow) {
                return execution::connect(execution::call_for_body(static_cast<F&&>(function_),
                                                                   token_type(nested_), *values...),
                                          body_receiver(*this));
            });
        };
        if constexpr (nothrow) {
            execution::start(body_.template emplace_with<body_operation>(make));
        } else {
            try {
                body_.template emplace_with<body_operation>(make);
            } catch (...) {
                failed(std::current_exception());
                return;
            }
            execution::start(body_.template get<body_operation>());
        }
    }

private:
    using body_operation = connect_result_t<body_type, body_receiver>;
    enum class phase : unsigned char { idle, open, over };

    template <class Error>
    void failed(Error&& error) noexcept {
        if (nested_.claim()) nested_.scope.request_stop();
        ended(set_error_t(), static_cast<Error&&>(error));
    }
    template <class Tag, class... Args>
    void ended(Tag tag, Args&&... args) noexcept {
        result_.keep(tag, static_cast<Args&&>(args)...);
        body_.clear();  // the body may hold an association, for which the join would wait
        if (nested_.scope.start_join(*this)) complete();  // else *this may be gone
    }
    // Called when the scope has been joined.
    void complete() noexcept override {
        on_stop_.reset();
        phase_ = phase::over;
        nested_.has_error() ? nested_.deliver(rcvr_) : result_.deliver(rcvr_);
    }

    [[no_unique_address]] Rcvr rcvr_;
    nested_scope<Env, Errors...> nested_;
    [[no_unique_address]] F function_;
    internal::product<Vs*...> values_;
    internal::alternatives<body_operation> body_;
    completion_store<kept_signatures> result_;  // the body's result
    [[no_unique_address]] stop_registration<stop_token_of_t<Env>, request_stop_of<counting_scope>>
        on_stop_;
    phase phase_ = phase::idle;
};

// Opens a scope and runs the body. Made by let_async_scope for the values of its first sender.
template <class ErrorList, class F, class... Vs>
class open_scope_sender;
template <class... Errors, class F, class... Vs>
class open_scope_sender<internal::type_list<Errors...>, F, Vs...> {
    using Tag = let_async_scope_with_error_t<Errors...>;

public:
    using sender_concept = sender_tag;

    explicit open_scope_sender(F&& function,
                               Vs&... values) noexcept(std::is_nothrow_move_constructible_v<F>)
        : function_(static_cast<F&&>(function)), values_(internal::construct_each(), &values...) {}

    // Dependent: the token's type depends on the environment, and the body's on the token's.
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        if constexpr (sizeof...(Env) == 0) {
            return dependent_signatures();
        } else {
            return signatures<let_async_scope_token<Env, Errors...>..., Env...>();
        }
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && noexcept(std::is_nothrow_move_constructible_v<F>) {
        return open_scope_operation<F, Rcvr,
                                    let_async_scope_token<env_of_t<const Rcvr&>, Errors...>, Vs...>(
            static_cast<F&&>(function_), values_, static_cast<Rcvr&&>(rcvr));
    }

private:
    template <class Token, class Env>
    static consteval auto signatures() noexcept {
        constexpr bool calls_nothrow = std::is_nothrow_invocable_v<F, Token, Vs&...>;
        if constexpr (!returns_a_body<F, Token, Vs...>) {
            return pipeline_error<
                in_algorithm<Tag>, got<F>,
                wanted<callable_returning_a_sender_with_arguments<Token, Vs&...>>>();
        } else if constexpr (!calls_nothrow && !internal::one_of<std::exception_ptr, Errors...>) {
            return pipeline_error<in_algorithm<Tag>, got<F>, wanted<noexcept_function>>();
        } else {
            using body = scope_body_t<F, Token, Vs...>;
            using Sigs = signatures_of<body, scope_body_env_t<Env>>;
            return signatures_union_t<
                decltype(execution::transform_if_valid<delivered_signatures, Sigs>()),
                typename nested_failure<Errors...>::signatures,
                exception_signature<!calls_nothrow || throws<Sigs, body, Env>()>>();
        }
    }
    template <class Sigs, class Body, class Env>
    static consteval bool throws() noexcept {
        if constexpr (is_completion_signatures<Sigs>) {
            return !nothrow_connectable<Body, probe_receiver<scope_body_env_t<Env>>>;
        } else {
            return false;
        }
    }

    [[no_unique_address]] F function_;
    internal::product<Vs*...> values_;
};

// The function, given to let_value, that opens the scope.
template <class ErrorList, class F>
class scope_opener {
public:
    template <class Init>
    explicit scope_opener(internal::construct_each,
                          Init&& f) noexcept(std::is_nothrow_constructible_v<F, Init>)
        : function_(static_cast<Init&&>(f)) {}
    template <class... Vs>
    auto operator()(Vs&... values) && noexcept(std::is_nothrow_move_constructible_v<F>) {
        return open_scope_sender<ErrorList, F, Vs...>(static_cast<F&&>(function_), values...);
    }

private:
    [[no_unique_address]] F function_;
};

// The type of let_async_scope_with_error<Errors...>.
template <class... Errors>
struct let_async_scope_with_error_t {
    template <sender Sndr, movable_value F>
    constexpr auto operator()(Sndr&& sndr, F&& f) const {
        using opener = scope_opener<internal::type_list<Errors...>, std::decay_t<F>>;
        return let_value(static_cast<Sndr&&>(sndr),
                         opener(internal::construct_each(), static_cast<F&&>(f)));
    }
    template <movable_value F>
    constexpr auto operator()(F&& f) const noexcept(nothrow_decay_copyable<F>) {
        return execution::bind_adaptor(*this, static_cast<F&&>(f));
    }
};
// As let_async_scope, if nested work can fail only with Errors.
template <class... Errors>
inline constexpr let_async_scope_with_error_t<Errors...> let_async_scope_with_error{};

// Calls f with a scope token and lvalues of the values, and runs the sender that f returns, if it
// returns one. Completes when all work in the scope has ended. Errors of any type become an
// exception_ptr.
// Lifetime: the body's result is kept until the scope has ended, so it must not hold the scope. A
// future of spawn_future or an associated sender in the result is an association, and the join
// would wait for it forever. Let the body await the future and send its value instead.
inline constexpr let_async_scope_with_error_t<std::exception_ptr> let_async_scope{};

// As let_async_scope, without a first sender; for coroutines:
// `co_await scoped([&x](auto scope) -> task<int> {...})`. The function is kept until the scope has
// ended, so a coroutine lambda may capture.
struct scoped_t {
    template <movable_value F>
    constexpr auto operator()(F&& f) const {
        return let_async_scope(just(), static_cast<F&&>(f));
    }
};
inline constexpr scoped_t scoped{};

}  // namespace coppice::execution
