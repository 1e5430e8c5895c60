// stopped_as_optional, stopped_as_error: turn a stop into an empty optional, or into an error.
#pragma once
// The draft composes both from let_stopped and just; here they are receivers.
// Source: [exec.stopped.opt], [exec.stopped.err].

#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/adaptor.hpp>
#include <coppice/exec/internal/mapped_attrs.hpp>
#include <coppice/exec/value_types.hpp>

#include <optional>

namespace coppice::execution {

struct stopped_as_optional_t;
struct stopped_as_error_t;

template <class Sigs>
using single_value_of =
    single_value<gather_signatures<set_value_t, Sigs, internal::type_list, internal::type_list>>;

template <class Sigs>
struct stopped_as_optional_signatures {
    using type = pipeline_error<in_algorithm<stopped_as_optional_t>, got<Sigs>,
                                wanted<one_value_completion>>;
};
template <class... Fns>
    requires requires { typename single_value_of<completion_signatures<Fns...>>::type; } &&
             (!std::is_void_v<typename single_value_of<completion_signatures<Fns...>>::type>)
struct stopped_as_optional_signatures<completion_signatures<Fns...>> {
    using value = typename single_value_of<completion_signatures<Fns...>>::type;
    template <class Fn>
    struct of {
        using type = completion_signatures<>;
    };
    template <class... Args>
    struct of<set_value_t(Args...)> {
        using type = exception_signature<!std::is_nothrow_constructible_v<value, Args...>>;
    };
    template <class Error>
    struct of<set_error_t(Error)> {
        using type = completion_signatures<set_error_t(Error)>;
    };
    using type = internal::set_union_t<completion_signatures<set_value_t(std::optional<value>)>,
                                       typename of<Fns>::type...>;
};

// Maps the child's completions: a stop becomes Becomes, and a value may become an exception.
template <class Becomes>
struct stopped_as_map {
    template <class Value, class Fn>
    static constexpr bool store_throws(Fn*) noexcept {
        return false;
    }
    template <class Value, class... Args>
    static constexpr bool store_throws(set_value_t (*)(Args...)) noexcept {
        return !std::is_nothrow_constructible_v<Value, Args...>;
    }
    template <class... Fns>
    static consteval bool throws(completion_signatures<Fns...>) noexcept {
        using single = single_value_of<completion_signatures<Fns...>>;
        if constexpr (requires { typename single::type; }) {
            return (store_throws<typename single::type>(static_cast<Fns*>(nullptr)) || ...);
        } else {
            return false;
        }
    }
    template <class From, class To, class Sigs>
    static consteval bool find() noexcept {
        if constexpr (std::is_same_v<From, set_stopped_t>) {
            return std::is_same_v<To, Becomes>;
        } else if constexpr (std::is_same_v<From, To>) {
            return true;
        } else if constexpr (std::is_same_v<From, set_value_t> && std::is_same_v<To, set_error_t> &&
                             std::is_same_v<Becomes, set_value_t>) {
            return throws(Sigs());
        } else {
            return false;
        }
    }
    template <class From, class To, class Sigs>
    static constexpr bool leads = find<From, To, Sigs>();
    template <class To>
    static constexpr bool always =
        std::is_same_v<To, set_value_t> && std::is_same_v<Becomes, set_error_t>;
};

template <class Value, class Rcvr>
class stopped_as_optional_receiver : public passing_receiver<receiver_state<Rcvr>, Rcvr> {
public:
    using passing_receiver<receiver_state<Rcvr>, Rcvr>::passing_receiver;

    template <class... Args>
    constexpr void set_value(Args&&... args) && noexcept {
        Rcvr& rcvr = this->state_->rcvr;
        if constexpr (std::is_nothrow_constructible_v<Value, Args...>) {
            execution::set_value(static_cast<Rcvr&&>(rcvr),
                                 std::optional<Value>(std::in_place, static_cast<Args&&>(args)...));
        } else {
            try {
                execution::set_value(
                    static_cast<Rcvr&&>(rcvr),
                    std::optional<Value>(std::in_place, static_cast<Args&&>(args)...));
            } catch (...) {
                execution::set_error(static_cast<Rcvr&&>(rcvr), std::current_exception());
            }
        }
    }
    constexpr void set_stopped() && noexcept {
        execution::set_value(static_cast<Rcvr&&>(this->state_->rcvr), std::optional<Value>());
    }
};

template <class Child, class Rcvr>
using stopped_as_optional_operation = adaptor_operation<
    Child, receiver_state<Rcvr>,
    stopped_as_optional_receiver<
        typename single_value_of<completion_signatures_of_t<Child, child_env_t<Rcvr>>>::type,
        Rcvr>>;

// Sends the value as an optional, which is empty if the child was stopped.
struct stopped_as_optional_t : sender_adaptor_closure<stopped_as_optional_t> {
    template <sender Sndr>
    constexpr auto operator()(Sndr&& sndr) const;
    constexpr auto operator()() const noexcept { return execution::bind_adaptor(*this); }
};

// Decomposes as [tag, data, child].
template <class Child>
struct stopped_as_optional_sender {
    using sender_concept = sender_tag;
    using tag_type = stopped_as_optional_t;
    using decomposable = void;

    [[no_unique_address]] Child child;

    template <class Init>
    constexpr explicit stopped_as_optional_sender(internal::construct_each, Init&& init) noexcept(
        std::is_nothrow_constructible_v<Child, Init>)
        : child(static_cast<Init&&>(init)) {}

    constexpr auto get_env() const noexcept {
        return mapped_attrs<Child, stopped_as_map<set_value_t>>(child);
    }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        using Sigs = signatures_of<internal::like_t<Self, Child>, fwd_env_t<Env>...>;
        return execution::transform_if_valid<stopped_as_optional_signatures, Sigs>();
    }
    template <receiver Rcvr>
    constexpr auto connect(Rcvr rcvr) && noexcept(
        std::is_nothrow_constructible_v<stopped_as_optional_operation<Child, Rcvr>, Child, Rcvr>)
        -> stopped_as_optional_operation<Child, Rcvr> {
        return {static_cast<Child&&>(child), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
        requires std::copy_constructible<Child>
    constexpr auto connect(Rcvr rcvr) const& noexcept(
        std::is_nothrow_constructible_v<stopped_as_optional_operation<const Child&, Rcvr>,
                                        const Child&, Rcvr>)
        -> stopped_as_optional_operation<const Child&, Rcvr> {
        return {child, static_cast<Rcvr&&>(rcvr)};
    }
};

template <sender Sndr>
constexpr auto stopped_as_optional_t::operator()(Sndr&& sndr) const {
    using result = stopped_as_optional_sender<std::decay_t<Sndr>>;
    static_assert(pipeline_check<result>::done);
    return result(internal::construct_each(), static_cast<Sndr&&>(sndr));
}
inline constexpr stopped_as_optional_t stopped_as_optional{};

template <class Sigs, class Error>
struct stopped_as_error_signatures;
template <class... Fns, class Error>
struct stopped_as_error_signatures<completion_signatures<Fns...>, Error> {
    using stopped = completion_signatures<set_error_t(Error)>;
    using type = internal::set_union_t<completion_signatures<>,
                                       std::conditional_t<std::is_same_v<Fns, set_stopped_t()>,
                                                          stopped, completion_signatures<Fns>>...>;
};

template <class Error, class Rcvr>
class stopped_as_error_receiver : public passing_receiver<data_state<Error, Rcvr>, Rcvr> {
public:
    using passing_receiver<data_state<Error, Rcvr>, Rcvr>::passing_receiver;
    constexpr void set_stopped() && noexcept {
        execution::set_error(static_cast<Rcvr&&>(this->state_->rcvr),
                             static_cast<Error&&>(this->state_->data));
    }
};

template <class Child, class Error, class Rcvr>
using stopped_as_error_operation =
    adaptor_operation<Child, data_state<Error, Rcvr>, stopped_as_error_receiver<Error, Rcvr>>;

// Sends `error` if the child was stopped.
struct stopped_as_error_t {
    template <sender Sndr, movable_value Error>
    constexpr auto operator()(Sndr&& sndr, Error&& error) const;
    template <movable_value Error>
    constexpr auto operator()(Error&& error) const noexcept(nothrow_decay_copyable<Error>) {
        return execution::bind_adaptor(*this, static_cast<Error&&>(error));
    }
};

// Decomposes as [tag, data, child]: data is the error.
template <class Error, class Child>
struct stopped_as_error_sender {
    using sender_concept = sender_tag;
    using tag_type = stopped_as_error_t;
    using decomposable = void;

    [[no_unique_address]] Error data;
    [[no_unique_address]] Child child;

    template <class ErrorInit, class ChildInit>
    constexpr stopped_as_error_sender(ErrorInit&& e, ChildInit&& c) noexcept(
        std::is_nothrow_constructible_v<Error, ErrorInit> &&
        std::is_nothrow_constructible_v<Child, ChildInit>)
        : data(static_cast<ErrorInit&&>(e)), child(static_cast<ChildInit&&>(c)) {}

    constexpr auto get_env() const noexcept {
        return mapped_attrs<Child, stopped_as_map<set_error_t>>(child);
    }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        using Sigs = signatures_of<internal::like_t<Self, Child>, fwd_env_t<Env>...>;
        return execution::transform_if_valid<stopped_as_error_signatures, Sigs, Error>();
    }
    template <receiver Rcvr>
    constexpr auto connect(Rcvr rcvr) && noexcept(
        std::is_nothrow_constructible_v<stopped_as_error_operation<Child, Error, Rcvr>, Child,
                                        Error, Rcvr>)
        -> stopped_as_error_operation<Child, Error, Rcvr> {
        return {static_cast<Child&&>(child), static_cast<Error&&>(data), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
        requires std::copy_constructible<Error> && std::copy_constructible<Child>
    constexpr auto connect(Rcvr rcvr) const& noexcept(
        std::is_nothrow_constructible_v<stopped_as_error_operation<const Child&, Error, Rcvr>,
                                        const Child&, const Error&, Rcvr>)
        -> stopped_as_error_operation<const Child&, Error, Rcvr> {
        return {child, data, static_cast<Rcvr&&>(rcvr)};
    }
};

template <sender Sndr, movable_value Error>
constexpr auto stopped_as_error_t::operator()(Sndr&& sndr, Error&& error) const {
    using result = stopped_as_error_sender<std::decay_t<Error>, std::decay_t<Sndr>>;
    static_assert(pipeline_check<result>::done);
    return result(static_cast<Error&&>(error), static_cast<Sndr&&>(sndr));
}
inline constexpr stopped_as_error_t stopped_as_error{};

}  // namespace coppice::execution
