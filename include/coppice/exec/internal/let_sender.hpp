// The sender of let_value, let_error, and let_stopped, which differ in the completion they handle.
#pragma once
// The operations of the first and of the second sender share their storage: the first is destroyed
// once its results are stored.

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/adaptor.hpp>
#include <coppice/exec/internal/alternatives.hpp>
#include <coppice/exec/internal/invoke.hpp>
#include <coppice/exec/internal/let_attrs.hpp>

namespace coppice::execution::internal {

template <class Tag, class F, class... Ts>
struct let_callable {
    using type = pipeline_error<in_algorithm<Tag>, got<F>,
                                wanted<callable_returning_a_sender_with_arguments<Ts&...>>>;
};
// The completions that one handled completion of the first sender leads to. Env is the second
// sender's environment.
template <class Tag, class F, class Signature, class... Env>
struct let_signature;
template <class Tag, class F, class Handled, class... Args, class... Env>
struct let_signature<Tag, F, Handled(Args...), Env...>
    : let_callable<Tag, F, std::decay_t<Args>...> {};
template <class Tag, class F, class Handled, class... Args, class... Env>
    requires(std::is_constructible_v<std::decay_t<Args>, Args> && ...) &&
            std::is_invocable_v<F, std::decay_t<Args>&...> &&
            sender<std::invoke_result_t<F, std::decay_t<Args>&...>>
struct let_signature<Tag, F, Handled(Args...), Env...> {
    using second = std::invoke_result_t<F, std::decay_t<Args>&...>;
    using second_sigs = signatures_of<second, Env...>;
    template <class... E>
    static consteval bool connects_nothrow() noexcept {
        if constexpr (is_completion_signatures<second_sigs> && sizeof...(E) != 0) {
            return (nothrow_connectable<second, probe_receiver<E>> && ...);
        } else {
            return true;
        }
    }
    static constexpr bool nothrow = nothrow_decay_copyable<Args...> &&
                                    std::is_nothrow_invocable_v<F, std::decay_t<Args>&...> &&
                                    connects_nothrow<Env...>();
    using type = signatures_union_t<second_sigs, exception_signature<!nothrow>>;
};

template <class Sigs, class Tag, class Handled, class F, class... Env>
struct let_signatures;
template <class... Fns, class Tag, class Handled, class F, class... Env>
struct let_signatures<completion_signatures<Fns...>, Tag, Handled, F, Env...> {
    template <class Fn>
    struct of {
        using type = completion_signatures<Fn>;
    };
    template <class... Args>
    struct of<Handled(Args...)> : let_signature<Tag, F, Handled(Args...), Env...> {};
    using type = signatures_union_t<typename of<Fns>::type...>;
};

template <class LetEnv, class Rcvr>
struct let_context {
    // make_env is called with the receiver, in its final place, and returns the environment.
    template <class MakeEnv>
    let_context(Rcvr r, MakeEnv make_env) noexcept
        : rcvr(static_cast<Rcvr&&>(r)), env(make_env(std::as_const(rcvr))) {}
    Rcvr rcvr;
    LetEnv env;
};

// Receives the completion of the second sender.
template <class LetEnv, class Rcvr>
class let_second_receiver : public passing_receiver<let_context<LetEnv, Rcvr>, Rcvr> {
public:
    using passing_receiver<let_context<LetEnv, Rcvr>, Rcvr>::passing_receiver;
    using env_type = let_joined_env_t<LetEnv, env_of_t<const Rcvr&>>;
    env_type get_env() const noexcept {
        return env_type(this->state_->env, internal::child_env(this->state_->rcvr));
    }
};

// The types for one handled completion: what is kept, and the operation that follows.
template <class F, class SecondRcvr, class Handled, class... Args>
struct let_step_of {
    using kept = type_list<product<std::decay_t<Args>...>>;
    using operations =
        type_list<connect_result_t<std::invoke_result_t<F, std::decay_t<Args>&...>, SecondRcvr>>;
};

template <class Child, class Handled, class F, class Rcvr>
class let_operation {
public:
    using operation_state_concept = operation_state_tag;
    using env_type = let_env_t<Handled, Child, env_of_t<const Rcvr&>>;
    using second_receiver = let_second_receiver<env_type, Rcvr>;

    class first_receiver {
    public:
        using receiver_concept = receiver_tag;
        explicit first_receiver(let_operation& op) noexcept : op_(&op) {}
        template <class... Args>
        void set_value(Args&&... args) && noexcept {
            op_->template complete<set_value_t>(static_cast<Args&&>(args)...);
        }
        template <class Error>
        void set_error(Error&& error) && noexcept {
            op_->template complete<set_error_t>(static_cast<Error&&>(error));
        }
        void set_stopped() && noexcept { op_->template complete<set_stopped_t>(); }
        child_env_t<Rcvr> get_env() const noexcept {
            return internal::child_env(op_->context_.rcvr);
        }

    private:
        let_operation* op_;
    };

    template <class Init>
    let_operation(Child&& child, Init&& function,
                  Rcvr rcvr) noexcept(std::is_nothrow_constructible_v<F, Init> &&
                                      nothrow_connectable<Child, first_receiver>)
        : context_(static_cast<Rcvr&&>(rcvr),
                   [&child](const Rcvr& r) noexcept -> env_type {
                       return internal::let_env<Handled>(execution::get_env(child),
                                                         internal::child_env(r));
                   }),
          function_(static_cast<Init&&>(function)) {
        operations_.template emplace_with<first_operation>([this, &child] {
            return execution::connect(static_cast<Child&&>(child), first_receiver(*this));
        });
    }
    let_operation(let_operation&&) = delete;

    void start() & noexcept {
        COPPICE_CHECK(!started_,
                      "an operation of let_value, _error or _stopped was started twice: connect "
                      "its sender again");
        started_ = true;
        execution::start(operations_.template get<first_operation>());
    }

private:
    template <class Signature>
    struct step {
        using kept = type_list<>;
        using operations = type_list<>;
    };
    template <class... Args>
    struct step<Handled(Args...)> : let_step_of<F, second_receiver, Handled, Args...> {};
    template <class Sigs>
    struct steps;
    template <class... Fns>
    struct steps<completion_signatures<Fns...>> {
        using kept = set_union_t<alternatives<>, typename step<Fns>::kept...>;
        template <class First>
        using operations = set_union_t<alternatives<First>, typename step<Fns>::operations...>;
    };

    using first_operation = connect_result_t<Child, first_receiver>;
    using all_steps = steps<completion_signatures_of_t<Child, child_env_t<Rcvr>>>;

    template <class Completion, class... Args>
    void complete(Args&&... args) noexcept {
        if constexpr (!std::is_same_v<Completion, Handled>) {
            Completion()(static_cast<Rcvr&&>(context_.rcvr), static_cast<Args&&>(args)...);
        } else {
            using second = std::invoke_result_t<F, std::decay_t<Args>&...>;
            constexpr bool nothrow = nothrow_decay_copyable<Args...> &&
                                     std::is_nothrow_invocable_v<F, std::decay_t<Args>&...> &&
                                     nothrow_connectable<second, second_receiver>;
            if constexpr (nothrow) {
                follow<second>(static_cast<Args&&>(args)...);
            } else {
                try {
                    follow<second>(static_cast<Args&&>(args)...);
                } catch (...) {
                    execution::set_error(static_cast<Rcvr&&>(context_.rcvr),
                                         std::current_exception());
                }
            }
        }
    }
    // Stores the results, makes the second operation in place of the first, and starts it. All that
    // may throw comes before the start.
    template <class Second, class... Args>
    void follow(Args&&... args) {
        using operation = connect_result_t<Second, second_receiver>;
        auto& kept = kept_.template emplace<product<std::decay_t<Args>...>>(
            construct_each(), static_cast<Args&&>(args)...);
        operations_.clear();  // after the store: the arguments may live in the first operation
        operation& second = operations_.template emplace_with<operation>([this, &kept] {
            return execution::connect(kept.apply([this](auto&... values) -> Second {
                return internal::invoke(static_cast<F&&>(function_), values...);
            }),
                                      second_receiver(context_));
        });
        execution::start(second);
    }

    let_context<env_type, Rcvr> context_;
    [[no_unique_address]] F function_;
    typename all_steps::kept kept_;
    typename all_steps::template operations<first_operation> operations_;
    bool started_ = false;
};

template <class Tag, class Handled, class F>
struct let_algorithm {
    using tag_type = Tag;
    template <class Child, class Rcvr>
    using operation = let_operation<Child, Handled, F, Rcvr>;

    template <class Sndr>
    static constexpr auto attrs(const Sndr& sndr) noexcept {
        return let_attrs<Handled, F, decltype(sndr.child)>(sndr.child);
    }
    template <class Child, class... Env>
    static consteval auto signatures() noexcept {
        return internal::transform_if_valid<
            let_signatures, signatures_of<Child, fwd_env_t<Env>...>, Tag, Handled, F,
            let_joined_env_t<let_env_t<Handled, Child, Env>, Env>...>();
    }
};
template <class Tag, class Handled, class F, class Child>
using let_sender = adaptor_sender<let_algorithm<Tag, Handled, F>, F, Child>;

// let_stopped takes only functions that can be called without arguments.
template <class F, class Handled>
concept let_function = movable_value<F> &&
                       (!std::is_same_v<Handled, set_stopped_t> || std::invocable<std::decay_t<F>>);

template <class Tag, class Handled>
struct let_adaptor {
    template <sender Sndr, let_function<Handled> F>
    constexpr auto operator()(Sndr&& sndr, F&& f) const {
        using result = let_sender<Tag, Handled, std::decay_t<F>, std::decay_t<Sndr>>;
        static_assert(pipeline_check<result>::done);
        return result(static_cast<F&&>(f), static_cast<Sndr&&>(sndr));
    }
    template <movable_value F>
    constexpr auto operator()(F&& f) const noexcept(nothrow_decay_copyable<F>) {
        return execution::bind_adaptor(Tag(), static_cast<F&&>(f));
    }
};

}  // namespace coppice::execution::internal
