// The sender of let_async_scope: opens a scope, runs the body, and joins.
#pragma once
// The algorithm is a let_value, which keeps the values, of this sender:
//
//   actor               action
//   a requester         passes the stop to the scope, and holds the scope meanwhile
//   nested work         stores its error if it is the first, and stops the scope; leaves
//   the body            stores its result; an error stops the scope; joins
//   the last to leave   completes the receiver, on its own thread

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/internal/invoke.hpp>
#include <coppice/exec/internal/nested_scope.hpp>
#include <coppice/exec/just.hpp>

namespace coppice::execution {
template <class... Errors>
struct let_async_scope_with_error_t;
}

namespace coppice::execution::internal {

struct noexcept_function {};  // the function must be noexcept if Errors has no exception_ptr

// Calls the function to get the body. A function that returns nothing has the body just().
template <class F, class Token, class... Vs>
    requires std::invocable<F, Token, Vs&...>
constexpr sender auto call_for_body(F&& f, Token token, Vs&... values) noexcept(
    std::is_nothrow_invocable_v<F, Token, Vs&...>) {
    if constexpr (std::is_void_v<std::invoke_result_t<F, Token, Vs&...>>) {
        internal::invoke(static_cast<F&&>(f), token, values...);
        return just();
    } else {
        return internal::invoke(static_cast<F&&>(f), token, values...);
    }
}
template <class F, class Token, class... Vs>
using scope_body_t = decltype(internal::call_for_body(std::declval<F>(), std::declval<Token>(),
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

    open_scope_operation(F&& function, product<Vs*...> values,
                         Rcvr rcvr) noexcept(std::is_nothrow_move_constructible_v<F>)
        : rcvr_(static_cast<Rcvr&&>(rcvr)),
          nested_(internal::child_env(std::as_const(rcvr_))),
          function_(static_cast<F&&>(function)),
          values_(values) {}
    ~open_scope_operation() {
        COPPICE_CHECK(phase_ != phase::open,
                      "an operation of let_async_scope was destroyed while it was running: keep it "
                      "until it completes");
    }

    void start() & noexcept {
        COPPICE_CHECK(
            phase_ == phase::idle,
            "an operation of let_async_scope was started twice: connect its sender again");
        phase_ = phase::open;
        on_stop_.engage(get_stop_token(execution::get_env(rcvr_)), request_stop_of(nested_.scope));
        const auto make = [this]() noexcept(nothrow) {
            return values_.apply([this](Vs*... values) noexcept(nothrow) {
                return execution::connect(internal::call_for_body(static_cast<F&&>(function_),
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
    product<Vs*...> values_;
    alternatives<body_operation> body_;
    completion_store<kept_signatures> result_;  // the body's result
    [[no_unique_address]] stop_registration<stop_token_of_t<Env>, request_stop_of<counting_scope>>
        on_stop_;
    phase phase_ = phase::idle;
};

// Opens a scope and runs the body. Made by let_async_scope for the values of its first sender.
template <class ErrorList, class F, class... Vs>
class open_scope_sender;
template <class... Errors, class F, class... Vs>
class open_scope_sender<type_list<Errors...>, F, Vs...> {
    using Tag = let_async_scope_with_error_t<Errors...>;

public:
    using sender_concept = sender_tag;

    explicit open_scope_sender(F&& function,
                               Vs&... values) noexcept(std::is_nothrow_move_constructible_v<F>)
        : function_(static_cast<F&&>(function)), values_(construct_each(), &values...) {}

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
        } else if constexpr (!calls_nothrow && !one_of<std::exception_ptr, Errors...>) {
            return pipeline_error<in_algorithm<Tag>, got<F>, wanted<noexcept_function>>();
        } else {
            using body = scope_body_t<F, Token, Vs...>;
            using Sigs = signatures_of<body, scope_body_env_t<Env>>;
            return signatures_union_t<
                decltype(internal::transform_if_valid<delivered_signatures, Sigs>()),
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
    product<Vs*...> values_;
};

// The function, given to let_value, that opens the scope.
template <class ErrorList, class F>
class scope_opener {
public:
    template <class Init>
    explicit scope_opener(construct_each,
                          Init&& f) noexcept(std::is_nothrow_constructible_v<F, Init>)
        : function_(static_cast<Init&&>(f)) {}
    template <class... Vs>
    auto operator()(Vs&... values) && noexcept(std::is_nothrow_move_constructible_v<F>) {
        return open_scope_sender<ErrorList, F, Vs...>(static_cast<F&&>(function_), values...);
    }

private:
    [[no_unique_address]] F function_;
};

}  // namespace coppice::execution::internal
