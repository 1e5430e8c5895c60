// The sender of then, upon_error, and upon_stopped, which differ in the completion they handle.
#pragma once

#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/adaptor.hpp>
#include <coppice/exec/internal/attrs.hpp>
#include <coppice/exec/internal/invoke.hpp>

namespace coppice::execution::internal {

// The completions of `then`: a Handled completion becomes the function's result or its exception.
template <class Sigs, class Tag, class Handled, class F>
struct then_signatures;
template <class... Fns, class Tag, class Handled, class F>
struct then_signatures<completion_signatures<Fns...>, Tag, Handled, F> {
    template <class Fn>
    struct of {
        using type = completion_signatures<Fn>;
    };
    template <class... Args>
    struct of<Handled(Args...)> {
        using type =
            pipeline_error<in_algorithm<Tag>, got<F>, wanted<callable_with_arguments<Args...>>>;
    };
    template <class... Args>
        requires std::is_invocable_v<F, Args...>
    struct of<Handled(Args...)> {
        using value = value_signature_t<std::invoke_result_t<F, Args...>>;
        using type =
            set_insert_t<exception_signature<!std::is_nothrow_invocable_v<F, Args...>>, value>;
    };
    using type = signatures_union_t<typename of<Fns>::type...>;
};

// True if F, called with what Fn sends, may throw. False if Fn is not Handled: F is not meant for
// such arguments, and instantiating the call might not even compile.
template <class Handled, class F, class Fn>
inline constexpr bool then_throws = false;
template <class Handled, class F, class... Args>
inline constexpr bool then_throws<Handled, F, Handled(Args...)> =
    !std::is_nothrow_invocable_v<F, Args...>;

// Maps the child's completions.
template <class Handled, class F>
struct then_map {
    template <class... Fns>
    static consteval bool throws(completion_signatures<Fns...>) noexcept {
        return (then_throws<Handled, F, Fns> || ...);
    }
    template <class From, class To, class Sigs>
    static consteval bool find() noexcept {
        if constexpr (!std::is_same_v<From, Handled>) {
            return std::is_same_v<From, To>;
        } else if constexpr (std::is_same_v<To, set_error_t>) {
            return throws(Sigs());
        } else {
            return std::is_same_v<To, set_value_t>;
        }
    }
    template <class From, class To, class Sigs>
    static constexpr bool leads = find<From, To, Sigs>();
    template <class Tag>
    static constexpr bool always =
        !std::is_same_v<Tag, set_error_t> &&
        (std::is_same_v<Handled, set_value_t> || !one_of<Tag, Handled, set_value_t>);
};

template <class Handled, class F, class Rcvr>
class then_receiver : public passing_receiver<data_state<F, Rcvr>, Rcvr> {
public:
    using passing_receiver<data_state<F, Rcvr>, Rcvr>::passing_receiver;

    template <class... Args>
    constexpr void set_value(Args&&... args) && noexcept {
        complete<set_value_t>(static_cast<Args&&>(args)...);
    }
    template <class Error>
    constexpr void set_error(Error&& error) && noexcept {
        complete<set_error_t>(static_cast<Error&&>(error));
    }
    constexpr void set_stopped() && noexcept { complete<set_stopped_t>(); }

private:
    template <class Completion, class... Args>
    constexpr void complete(Args&&... args) noexcept {
        if constexpr (!std::is_same_v<Completion, Handled>) {
            Completion()(static_cast<Rcvr&&>(this->state_->rcvr), static_cast<Args&&>(args)...);
        } else if constexpr (std::is_nothrow_invocable_v<F, Args...>) {
            apply(static_cast<Args&&>(args)...);
        } else {
            // The receiver's set_value is noexcept, so only the function can throw here.
            try {
                apply(static_cast<Args&&>(args)...);
            } catch (...) {
                execution::set_error(static_cast<Rcvr&&>(this->state_->rcvr),
                                     std::current_exception());
            }
        }
    }
    template <class... Args>
    constexpr void apply(Args&&... args) {
        if constexpr (std::is_void_v<std::invoke_result_t<F, Args...>>) {
            internal::invoke(static_cast<F&&>(this->state_->data), static_cast<Args&&>(args)...);
            execution::set_value(static_cast<Rcvr&&>(this->state_->rcvr));
        } else {
            execution::set_value(static_cast<Rcvr&&>(this->state_->rcvr),
                                 internal::invoke(static_cast<F&&>(this->state_->data),
                                                  static_cast<Args&&>(args)...));
        }
    }
};

template <class Tag, class Handled, class F>
struct then_algorithm {
    using tag_type = Tag;
    template <class Child, class Rcvr>
    using operation =
        adaptor_operation<Child, data_state<F, Rcvr>, then_receiver<Handled, F, Rcvr>>;

    template <class Sndr>
    static constexpr auto attrs(const Sndr& sndr) noexcept {
        return mapped_attrs<decltype(sndr.child), then_map<Handled, F>>(sndr.child);
    }
    template <class Child, class... Env>
    static consteval auto signatures() noexcept {
        return internal::transform_if_valid<
            then_signatures, signatures_of<Child, fwd_env_t<Env>...>, Tag, Handled, F>();
    }
};
template <class Tag, class Handled, class F, class Child>
using then_sender = adaptor_sender<then_algorithm<Tag, Handled, F>, F, Child>;

template <class Tag, class Handled>
struct then_adaptor {
    template <sender Sndr, movable_value F>
    constexpr auto operator()(Sndr&& sndr, F&& f) const {
        using result = then_sender<Tag, Handled, std::decay_t<F>, std::decay_t<Sndr>>;
        static_assert(pipeline_check<result>::done);
        return result(static_cast<F&&>(f), static_cast<Sndr&&>(sndr));
    }
    template <movable_value F>
    constexpr auto operator()(F&& f) const noexcept(nothrow_decay_copyable<F>) {
        return execution::bind_adaptor(Tag(), static_cast<F&&>(f));
    }
};

}  // namespace coppice::execution::internal
