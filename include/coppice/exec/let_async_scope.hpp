// let_async_scope, scoped: a scope for nested work that is joined on every path.
#pragma once
// The function is called with a scope token, and with lvalues of the first sender's values. It
// returns a sender, the body, or nothing. The whole completes with the body's result, but not
// before everything that was spawned into the scope has ended, whether the function throws, the
// body fails, or a stop comes. The first error, of the function, of the body or of what was
// spawned, stops the rest and is the result.
//
//   who                          does
//   the first sender             hears of stops through the receiver's token; its errors and stops
//                                are the result, no scope was opened
//   a stop, from here on         is passed to the scope, which is held meanwhile
//   nested work                  keeps its error if it is the first, stops the scope, leaves
//   the body                     keeps its result; an error stops the scope; joins
//   the last to leave            completes, where it is
//
// The token is a scope_token that adds two things for spawn: the receiver's environment, behind the
// one that spawn is given, and that errors are taken. spawn_future and associate leave the errors
// to their consumers.
// Source: P3296R3; scoped is ours. Cost: no allocation; one callback on the receiver's stop token.

#include <coppice/base/atomic.hpp>
#include <coppice/base/check.hpp>
#include <coppice/exec/adaptor.hpp>
#include <coppice/exec/alternatives.hpp>
#include <coppice/exec/as_exception.hpp>
#include <coppice/exec/closure.hpp>
#include <coppice/exec/invoke.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let_attrs.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/then.hpp>

namespace coppice::execution {

template <class... Errors>
struct let_async_scope_with_error_t;

// Wanted of the function of a scope whose errors have no exception_ptr.
struct noexcept_function {};

// The scope, and the first error in it. Threads: any that run nested work, and the body's.
template <class... Errors>
class nested_failure : immovable {
    static constexpr bool converts = std::is_same_v<type_list<Errors...>,  //
                                                    type_list<std::exception_ptr>>;

public:
    using signatures = delivered_signatures_t<completion_signatures<set_error_t(Errors)...>>;

    // Whether an Error is one of Errors, or becomes one.
    template <class Error>
    static constexpr bool takes = converts || one_of<std::decay_t<Error>, Errors...>;

    // True for the first error of all, by whoever has it.
    [[nodiscard]] bool claim() noexcept {
        // relaxed: only decides who stores; leaving the scope orders the store before the delivery
        return !claimed_.exchange(true, relaxed) || planted("let_async_scope.no_claim");
    }
    // Of nested work, which leaves the scope afterwards. Stops the rest.
    template <class Error>
    void fail(Error&& error) noexcept {
        if (!claim()) return;
        if constexpr (converts) {
            first_.keep(set_error_t(), execution::as_exception(static_cast<Error&&>(error)));
        } else {
            first_.keep(set_error_t(), static_cast<Error&&>(error));
        }
        scope.request_stop();
    }
    // After the join.
    bool has_error() const noexcept { return !first_.empty(); }
    template <class Rcvr>
    void deliver(Rcvr& rcvr) noexcept {
        first_.deliver(rcvr);
    }

    counting_scope scope;

private:
    completion_store<completion_signatures<set_error_t(Errors)...>> first_;  // of who claimed
    atomic<bool> claimed_{false};
};

// The same, and the environment of the receiver. Env: of the receiver.
template <class Env, class... Errors>
class nested_scope : public nested_failure<Errors...> {
public:
    explicit nested_scope(fwd_env_t<Env>&& base) noexcept
        : env(static_cast<fwd_env_t<Env>&&>(base)) {}
    const fwd_env_t<Env> env;
};

// What spawned work can ask the receiver of the whole, but for its stop token: the scope's comes
// with the scope.
template <class Env>
class nested_env {
    using base_type = std::remove_cvref_t<fwd_env_t<Env>>;

public:
    explicit nested_env(const base_type& base) noexcept : base_(&base) {}
    template <class Query, class... Args>
        requires(!std::is_same_v<Query, get_stop_token_t>) && has_query<base_type, Query, Args...>
    constexpr decltype(auto) query(Query tag, Args&&... args) const
        noexcept(noexcept(base_->query(tag, static_cast<Args&&>(args)...))) {
        return base_->query(tag, static_cast<Args&&>(args)...);
    }

private:
    const base_type* base_;
};

// Takes the error of spawned work. Called with other errors, the program is refused.
template <class... Errors>
class takes_only {
public:
    explicit takes_only(nested_failure<Errors...>& failure) noexcept : failure_(&failure) {}
    template <class Error>
        requires(nested_failure<Errors...>::template takes<Error>)
    void operator()(Error&& error) noexcept {
        failure_->fail(static_cast<Error&&>(error));
    }

private:
    nested_failure<Errors...>* failure_;
};

// Associates nested work with the scope. Copied freely. Lifetime: until the last work of the scope
// has ended; so work in the scope may spawn more of it, from any thread.
template <class Env, class... Errors>
class let_async_scope_token {
public:
    explicit let_async_scope_token(nested_scope<Env, Errors...>& scope) noexcept : scope_(&scope) {}

    template <sender Sndr>
    sender auto wrap(Sndr&& sndr) const
        noexcept(std::is_nothrow_constructible_v<std::remove_cvref_t<Sndr>, Sndr>) {
        return scope_->scope.get_token().wrap(static_cast<Sndr&&>(sndr));
    }
    counting_scope::association try_associate() const noexcept {
        return scope_->scope.get_token().try_associate();
    }
    // For spawn: what it connects, and the environment behind the one that it is given.
    template <sender Sndr>
    sender auto wrap_spawned(Sndr&& sndr) const {
        return wrap(upon_error(static_cast<Sndr&&>(sndr), takes_only<Errors...>(*scope_)));
    }
    nested_env<Env> get_env() const noexcept { return nested_env<Env>(scope_->env); }

private:
    nested_scope<Env, Errors...>* scope_;
};

// What the body sees: the scope's stop token, and where the first sender completed.
template <class Child, class Env>
using scope_body_env_t =
    stop_token_env<inplace_stop_token, let_joined_env_t<let_env_t<set_value_t, Child, Env>, Env>>;

// What the function returns, as it completes: nothing is a value of nothing.
template <class Body, class... Env>
struct scope_body {
    using signatures = signatures_of<Body, Env...>;
    template <class E>
    static consteval bool connects_nothrow() noexcept {
        if constexpr (is_completion_signatures<signatures>) {
            return nothrow_connectable<Body, probe_receiver<E>>;
        } else {
            return true;
        }
    }
    static constexpr bool nothrow = (connects_nothrow<Env>() && ...);
};
template <class Body, class... Env>
    requires std::is_void_v<Body>
struct scope_body<Body, Env...> {
    using signatures = completion_signatures<set_value_t()>;
    static constexpr bool nothrow = true;
};
template <class Body>
concept scope_body_result = std::is_void_v<Body> || sender<Body>;

// The completions of the body for one of the first sender's; Token is the scope's.
template <class Tag, class F, class Token, class Signature, class... Env>
struct scope_signature {
    using type = completion_signatures<Signature>;  // no value: passed on
    using body = completion_signatures<>;
};
template <class Tag, class F, class Token, class... Args, class... Env>
struct scope_signature<Tag, F, Token, set_value_t(Args...), Env...> {
    using type = pipeline_error<
        in_algorithm<Tag>, got<F>,
        wanted<callable_returning_a_sender_with_arguments<Token, std::decay_t<Args>&...>>>;
};
template <class... Errors, class F, class Token, class... Args, class... Env>
    requires(std::is_constructible_v<std::decay_t<Args>, Args> && ...) &&
            std::is_invocable_v<F, Token, std::decay_t<Args>&...> &&
            scope_body_result<std::invoke_result_t<F, Token, std::decay_t<Args>&...>>
struct scope_signature<let_async_scope_with_error_t<Errors...>, F, Token, set_value_t(Args...),
                       Env...> {
    using result = std::invoke_result_t<F, Token, std::decay_t<Args>&...>;
    static constexpr bool calls_nothrow =
        std::is_nothrow_invocable_v<F, Token, std::decay_t<Args>&...>;
    static constexpr bool nothrow =
        nothrow_decay_copyable<Args...> && calls_nothrow && scope_body<result, Env...>::nothrow;
    // What is kept until the join.
    using body = signatures_union_t<typename scope_body<result, Env...>::signatures,
                                    exception_signature<!nothrow>>;
    using type = std::conditional_t<
        calls_nothrow || one_of<std::exception_ptr, Errors...>,
        signatures_union_t<decltype(transform_if_valid<delivered_signatures, body>()),
                           typename nested_failure<Errors...>::signatures>,
        pipeline_error<in_algorithm<let_async_scope_with_error_t<Errors...>>, got<F>,
                       wanted<noexcept_function>>>;
};
template <class Sigs, class Tag, class F, class Token, class... Env>
struct scope_signatures;
template <class... Fns, class Tag, class F, class Token, class... Env>
struct scope_signatures<completion_signatures<Fns...>, Tag, F, Token, Env...> {
    using type = signatures_union_t<typename scope_signature<Tag, F, Token, Fns, Env...>::type...>;
    using body = signatures_union_t<typename scope_signature<Tag, F, Token, Fns, Env...>::body...>;
};

template <class Child, class F, class Rcvr, class... Errors>
class let_async_scope_operation final : scope_base::joiner {
    using Tag = let_async_scope_with_error_t<Errors...>;
    using Env = env_of_t<const Rcvr&>;
    using token_type = let_async_scope_token<Env, Errors...>;
    using let_env_type = let_env_t<set_value_t, Child, Env>;
    using body_env = scope_body_env_t<Child, Env>;

    class first_receiver {
    public:
        using receiver_concept = receiver_tag;
        explicit first_receiver(let_async_scope_operation& op) noexcept : op_(&op) {}
        template <class... Args>
        void set_value(Args&&... args) && noexcept {
            op_->open(static_cast<Args&&>(args)...);
        }
        template <class Error>
        void set_error(Error&& error) && noexcept {
            execution::set_error(static_cast<Rcvr&&>(op_->rcvr_), static_cast<Error&&>(error));
        }
        void set_stopped() && noexcept { execution::set_stopped(static_cast<Rcvr&&>(op_->rcvr_)); }
        child_env_t<Rcvr> get_env() const noexcept { return execution::child_env(op_->rcvr_); }

    private:
        let_async_scope_operation* op_;
    };
    class body_receiver {
    public:
        using receiver_concept = receiver_tag;
        explicit body_receiver(let_async_scope_operation& op) noexcept : op_(&op) {}
        template <class... Args>
        void set_value(Args&&... args) && noexcept {
            op_->body_ended(set_value_t(), static_cast<Args&&>(args)...);
        }
        template <class Error>
        void set_error(Error&& error) && noexcept {
            op_->body_failed(static_cast<Error&&>(error));
        }
        void set_stopped() && noexcept { op_->body_ended(set_stopped_t()); }
        body_env get_env() const noexcept { return op_->get_body_env(); }

    private:
        let_async_scope_operation* op_;
    };
    // Passes a stop on. The scope is held meanwhile: it may end this in the end.
    using pass_stop = request_stop_of<counting_scope>;

public:
    using operation_state_concept = operation_state_tag;

    template <class Init>
    let_async_scope_operation(Child&& child, Init&& function,
                              Rcvr rcvr) noexcept(std::is_nothrow_constructible_v<F, Init> &&
                                                  nothrow_connectable<Child, first_receiver>)
        : rcvr_(static_cast<Rcvr&&>(rcvr)),
          let_env_(execution::let_env<set_value_t>(execution::get_env(child),
                                                   execution::child_env(rcvr_))),
          nested_(execution::child_env(std::as_const(rcvr_))),
          function_(static_cast<Init&&>(function)) {
        operations_.template emplace_with<first_operation>(
            [&] { return execution::connect(static_cast<Child&&>(child), first_receiver(*this)); });
    }
    ~let_async_scope_operation() {
        COPPICE_CHECK(phase_ != phase::open,
                      "an operation of let_async_scope was destroyed while it was running");
    }

    void start() & noexcept {
        COPPICE_CHECK(phase_ == phase::idle, "an operation of let_async_scope was started twice");
        phase_ = phase::started;
        execution::start(operations_.template get<first_operation>());
    }

private:
    enum class phase : unsigned char { idle, started, open, over };

    template <class Signature>
    struct step {
        using kept = type_list<>;
        using operations = type_list<>;
    };
    template <class... Args>
    struct step<set_value_t(Args...)> {
        using result = std::invoke_result_t<F, token_type, std::decay_t<Args>&...>;
        template <class Body>
        struct operation_of {
            using type = type_list<connect_result_t<Body, body_receiver>>;
        };
        template <class Body>
            requires std::is_void_v<Body>
        struct operation_of<Body> {
            using type = type_list<>;
        };
        using kept = type_list<product<std::decay_t<Args>...>>;
        using operations = typename operation_of<result>::type;
    };
    template <class Sigs>
    struct steps;
    template <class... Fns>
    struct steps<completion_signatures<Fns...>> {
        using kept = set_union_t<alternatives<>, typename step<Fns>::kept...>;
        template <class First>
        using operations = set_union_t<alternatives<First>, typename step<Fns>::operations...>;
    };
    using first_operation = connect_result_t<Child, first_receiver>;
    using first_signatures = completion_signatures_of_t<Child, child_env_t<Rcvr>>;
    using all_steps = steps<first_signatures>;
    using body_signatures =
        typename scope_signatures<first_signatures, Tag, F, token_type, body_env>::body;

    body_env get_body_env() const noexcept {
        return body_env(nested_.scope.get_stop_token(),
                        let_joined_env_t<let_env_type, Env>(let_env_, execution::child_env(rcvr_)));
    }
    // The first sender's values have come.
    template <class... Args>
    void open(Args&&... args) noexcept {
        phase_ = phase::open;
        on_stop_.engage(get_stop_token(execution::get_env(rcvr_)), pass_stop(nested_.scope));
        if constexpr (scope_signature<Tag, F, token_type, set_value_t(Args...),
                                      body_env>::nothrow) {
            run_body(static_cast<Args&&>(args)...);
        } else {
            try {
                run_body(static_cast<Args&&>(args)...);
            } catch (...) {
                body_failed(std::current_exception());
            }
        }
    }
    // What throws does so before the body's start.
    template <class... Args>
    void run_body(Args&&... args) {
        using result = typename step<set_value_t(Args...)>::result;
        auto& kept = kept_.template emplace<product<std::decay_t<Args>...>>(
            construct_each(), static_cast<Args&&>(args)...);
        operations_.clear();  // the arguments may have lived in the first operation
        const auto call = [&]() -> result {
            return kept.apply([&](auto&... values) -> result {
                return execution::invoke(static_cast<F&&>(function_), token_type(nested_),
                                         values...);
            });
        };
        if constexpr (std::is_void_v<result>) {
            call();
            body_ended(set_value_t());
        } else {
            using operation = connect_result_t<result, body_receiver>;
            operation& body = operations_.template emplace_with<operation>(
                [&] { return execution::connect(call(), body_receiver(*this)); });
            execution::start(body);
        }
    }
    template <class Error>
    void body_failed(Error&& error) noexcept {
        result_.keep(set_error_t(), static_cast<Error&&>(error));
        if (nested_.claim()) nested_.scope.request_stop();
        join();
    }
    template <class T, class... Args>
    void body_ended(T tag, Args&&... args) noexcept {
        result_.keep(tag, static_cast<Args&&>(args)...);
        join();
    }
    void join() noexcept {
        if (nested_.scope.start_join(*this)) complete();  // else it may be gone
    }
    // The scope has ended.
    void complete() noexcept override {
        on_stop_.reset();
        phase_ = phase::over;
        if constexpr (first_signatures::count_of(set_value) != 0) {
            if (nested_.has_error()) return nested_.deliver(rcvr_);
        }
        result_.deliver(rcvr_);
    }

    [[no_unique_address]] Rcvr rcvr_;
    [[no_unique_address]] let_env_type let_env_;
    nested_scope<Env, Errors...> nested_;
    [[no_unique_address]] F function_;
    typename all_steps::kept kept_;
    typename all_steps::template operations<first_operation> operations_;
    completion_store<body_signatures> result_;  // the body's
    [[no_unique_address]] stop_registration<stop_token_of_t<Env>, pass_stop> on_stop_;
    phase phase_ = phase::idle;
};

// Decomposes as [tag, data, child]: data is the function.
template <class F, class Child, class... Errors>
struct let_async_scope_sender {
    using sender_concept = sender_tag;
    using tag_type = let_async_scope_with_error_t<Errors...>;
    using decomposable = void;
    template <class Sndr, class Rcvr>
    using operation = let_async_scope_operation<Sndr, F, Rcvr, Errors...>;

    [[no_unique_address]] F data;
    [[no_unique_address]] Child child;

    template <class FInit, class ChildInit>
    constexpr let_async_scope_sender(FInit&& f, ChildInit&& c) noexcept(
        std::is_nothrow_constructible_v<F, FInit> &&
        std::is_nothrow_constructible_v<Child, ChildInit>)
        : data(static_cast<FInit&&>(f)), child(static_cast<ChildInit&&>(c)) {}

    // Completes where the last of the nested work ends: nobody can say where.
    constexpr auto get_env() const noexcept { return child_attrs<Child>(child); }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return signatures<Self, Env...>();
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && noexcept(
        std::is_nothrow_constructible_v<operation<Child, Rcvr>, Child, F, Rcvr>)
        -> operation<Child, Rcvr> {
        return {static_cast<Child&&>(child), static_cast<F&&>(data), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
        requires std::copy_constructible<F> && std::copy_constructible<Child>
    auto connect(Rcvr rcvr) const& noexcept(
        std::is_nothrow_constructible_v<operation<const Child&, Rcvr>, const Child&, const F&,
                                        Rcvr>) -> operation<const Child&, Rcvr> {
        return {child, data, static_cast<Rcvr&&>(rcvr)};
    }

private:
    // The token's type, and with it the body's, depends on the environment.
    template <class Self, class... None>
        requires(sizeof...(None) == 0)
    static consteval dependent_signatures signatures() noexcept {
        return {};
    }
    template <class Self, class Env>
    static consteval auto signatures() noexcept {
        using Sigs = signatures_of<like_t<Self, Child>, fwd_env_t<Env>>;
        return execution::transform_if_valid<scope_signatures, Sigs, tag_type, F,
                                             let_async_scope_token<Env, Errors...>,
                                             scope_body_env_t<like_t<Self, Child>, Env>>();
    }
};

// What let_async_scope_with_error<Errors...> is.
template <class... Errors>
struct let_async_scope_with_error_t {
    template <sender Sndr, movable_value F>
    constexpr auto operator()(Sndr&& sndr, F&& f) const {
        using result = let_async_scope_sender<std::decay_t<F>, std::decay_t<Sndr>, Errors...>;
        static_assert(pipeline_check<result>::done);
        return result(static_cast<F&&>(f), static_cast<Sndr&&>(sndr));
    }
    template <movable_value F>
    constexpr auto operator()(F&& f) const noexcept(nothrow_decay_copyable<F>) {
        return execution::bind_adaptor(*this, static_cast<F&&>(f));
    }
};
// let_async_scope where nested work may end with Errors and no other error.
template <class... Errors>
inline constexpr let_async_scope_with_error_t<Errors...> let_async_scope_with_error{};

// Calls f with a scope token and lvalues of the values, runs the sender that it returns, if it
// returns one, and completes when all work in the scope has ended. Errors of any type become an
// exception_ptr.
inline constexpr let_async_scope_with_error_t<std::exception_ptr> let_async_scope{};

// The same for coroutines, after no sender: `co_await scoped([&](auto scope) -> task<int> {...})`.
// The function is kept until the scope has ended, so a coroutine lambda may capture.
struct scoped_t {
    template <movable_value F>
    constexpr auto operator()(F&& f) const {
        return let_async_scope(just(), static_cast<F&&>(f));
    }
};
inline constexpr scoped_t scoped{};

}  // namespace coppice::execution
