// then, upon_error, upon_stopped: apply a function to one kind of completion; pass the others on.
#pragma once
// Source: [exec.then].

#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/adaptor.hpp>
#include <coppice/exec/internal/invoke.hpp>
#include <coppice/exec/internal/mapped_attrs.hpp>

namespace coppice::execution {

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
            internal::set_insert_t<exception_signature<!std::is_nothrow_invocable_v<F, Args...>>,
                                   value>;
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
        (std::is_same_v<Handled, set_value_t> || !internal::one_of<Tag, Handled, set_value_t>);
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
            execution::internal::invoke(static_cast<F&&>(this->state_->data),
                                        static_cast<Args&&>(args)...);
            execution::set_value(static_cast<Rcvr&&>(this->state_->rcvr));
        } else {
            execution::set_value(static_cast<Rcvr&&>(this->state_->rcvr),
                                 execution::internal::invoke(static_cast<F&&>(this->state_->data),
                                                             static_cast<Args&&>(args)...));
        }
    }
};

template <class Child, class Handled, class F, class Rcvr>
using then_operation =
    adaptor_operation<Child, data_state<F, Rcvr>, then_receiver<Handled, F, Rcvr>>;

// Decomposes as [tag, data, child].
template <class Tag, class Handled, class F, class Child>
struct then_sender {
    using sender_concept = sender_tag;
    using tag_type = Tag;
    using decomposable = void;

    [[no_unique_address]] F data;
    [[no_unique_address]] Child child;

    template <class FInit, class ChildInit>
    constexpr then_sender(FInit&& f,
                          ChildInit&& c) noexcept(std::is_nothrow_constructible_v<F, FInit> &&
                                                  std::is_nothrow_constructible_v<Child, ChildInit>)
        : data(static_cast<FInit&&>(f)), child(static_cast<ChildInit&&>(c)) {}

    constexpr auto get_env() const noexcept {
        return mapped_attrs<Child, then_map<Handled, F>>(child);
    }
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        using Sigs = signatures_of<internal::like_t<Self, Child>, fwd_env_t<Env>...>;
        return execution::transform_if_valid<then_signatures, Sigs, Tag, Handled, F>();
    }
    template <receiver Rcvr>
    constexpr auto connect(Rcvr rcvr) && noexcept(
        std::is_nothrow_constructible_v<then_operation<Child, Handled, F, Rcvr>, Child, F, Rcvr>)
        -> then_operation<Child, Handled, F, Rcvr> {
        return {static_cast<Child&&>(child), static_cast<F&&>(data), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
        requires std::copy_constructible<F> && std::copy_constructible<Child>
    constexpr auto connect(Rcvr rcvr) const& noexcept(
        std::is_nothrow_constructible_v<then_operation<const Child&, Handled, F, Rcvr>,
                                        const Child&, const F&, Rcvr>)
        -> then_operation<const Child&, Handled, F, Rcvr> {
        return {child, data, static_cast<Rcvr&&>(rcvr)};
    }
};

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

// Calls f with the values; sends f's result, or its exception as an error.
struct then_t : then_adaptor<then_t, set_value_t> {};
// Calls f with the error; sends f's result as a value.
struct upon_error_t : then_adaptor<upon_error_t, set_error_t> {};
// Calls f if the child was stopped; sends f's result as a value.
struct upon_stopped_t : then_adaptor<upon_stopped_t, set_stopped_t> {};
inline constexpr then_t then{};
inline constexpr upon_error_t upon_error{};
inline constexpr upon_stopped_t upon_stopped{};

}  // namespace coppice::execution
