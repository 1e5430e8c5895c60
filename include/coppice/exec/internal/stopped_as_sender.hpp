// The senders of stopped_as_optional and stopped_as_error.
#pragma once

#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/adaptor.hpp>
#include <coppice/exec/internal/attrs.hpp>
#include <coppice/exec/value_types.hpp>

#include <optional>

namespace coppice::execution {
struct stopped_as_optional_t;
struct stopped_as_error_t;
}  // namespace coppice::execution

namespace coppice::execution::internal {

template <class Sigs>
using single_value_of = single_value<gather_signatures<set_value_t, Sigs, type_list, type_list>>;

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
    using type = set_union_t<completion_signatures<set_value_t(std::optional<value>)>,
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

struct stopped_as_optional_algorithm {
    using tag_type = stopped_as_optional_t;
    template <class Child, class Rcvr>
    using operation = adaptor_operation<
        Child, receiver_state<Rcvr>,
        stopped_as_optional_receiver<
            typename single_value_of<completion_signatures_of_t<Child, child_env_t<Rcvr>>>::type,
            Rcvr>>;

    template <class Sndr>
    static constexpr auto attrs(const Sndr& sndr) noexcept {
        return mapped_attrs<decltype(sndr.child), stopped_as_map<set_value_t>>(sndr.child);
    }
    template <class Child, class... Env>
    static consteval auto signatures() noexcept {
        return internal::transform_if_valid<stopped_as_optional_signatures,
                                            signatures_of<Child, fwd_env_t<Env>...>>();
    }
};
template <class Child>
using stopped_as_optional_sender =
    adaptor_sender<stopped_as_optional_algorithm, no_data<stopped_as_optional_algorithm>, Child>;

template <class Sigs, class Error>
struct stopped_as_error_signatures;
template <class... Fns, class Error>
struct stopped_as_error_signatures<completion_signatures<Fns...>, Error> {
    using stopped = completion_signatures<set_error_t(Error)>;
    using type = set_union_t<completion_signatures<>,
                             std::conditional_t<std::is_same_v<Fns, set_stopped_t()>, stopped,
                                                completion_signatures<Fns>>...>;
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

template <class Error>
struct stopped_as_error_algorithm {
    using tag_type = stopped_as_error_t;
    template <class Child, class Rcvr>
    using operation =
        adaptor_operation<Child, data_state<Error, Rcvr>, stopped_as_error_receiver<Error, Rcvr>>;

    template <class Sndr>
    static constexpr auto attrs(const Sndr& sndr) noexcept {
        return mapped_attrs<decltype(sndr.child), stopped_as_map<set_error_t>>(sndr.child);
    }
    template <class Child, class... Env>
    static consteval auto signatures() noexcept {
        return internal::transform_if_valid<stopped_as_error_signatures,
                                            signatures_of<Child, fwd_env_t<Env>...>, Error>();
    }
};
template <class Error, class Child>
using stopped_as_error_sender = adaptor_sender<stopped_as_error_algorithm<Error>, Error, Child>;

}  // namespace coppice::execution::internal
