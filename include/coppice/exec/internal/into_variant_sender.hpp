// The sender of into_variant.
#pragma once

#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/adaptor.hpp>
#include <coppice/exec/internal/attrs.hpp>
#include <coppice/exec/value_types.hpp>

namespace coppice::execution {
struct into_variant_t;
}

namespace coppice::execution::internal {

template <class Sigs>
using variant_of_values = gather_signatures<set_value_t, Sigs, decayed_tuple, variant_or_empty>;

template <class Fn>
inline constexpr bool value_store_throws = false;
template <class... Args>
inline constexpr bool value_store_throws<set_value_t(Args...)> = !nothrow_decay_copyable<Args...>;

template <class Sigs>
struct into_variant_signatures;
template <class... Fns>
struct into_variant_signatures<completion_signatures<Fns...>> {
    using variant = variant_of_values<completion_signatures<Fns...>>;
    template <class Fn>
    struct other {
        using type = completion_signatures<Fn>;
    };
    template <class... Args>
    struct other<set_value_t(Args...)> {
        using type = completion_signatures<>;
    };
    using sent =
        std::conditional_t<completion_signatures<Fns...>::count_of(set_value_t()) == 0,
                           completion_signatures<>, completion_signatures<set_value_t(variant)>>;
    using complete = set_union_t<sent, exception_signature<(value_store_throws<Fns> || ...)>,
                                 typename other<Fns>::type...>;
    using type = std::conditional_t<
        (stores_results<Fns> && ...), complete,
        pipeline_error<in_algorithm<into_variant_t>, got<Fns...>, wanted<decay_copyable_results>>>;
};

// Maps the child's completions: a value completion may become an exception.
struct into_variant_map {
    template <class... Fns>
    static consteval bool throws(completion_signatures<Fns...>) noexcept {
        return (value_store_throws<Fns> || ...);
    }
    template <class From, class To, class Sigs>
    static constexpr bool leads =
        std::is_same_v<From, To> ||
        (std::is_same_v<From, set_value_t> && std::is_same_v<To, set_error_t> && throws(Sigs()));
    template <class To>
    static constexpr bool always = !std::is_same_v<To, set_error_t>;
};

template <class Variant, class Rcvr>
class into_variant_receiver : public passing_receiver<receiver_state<Rcvr>, Rcvr> {
public:
    using passing_receiver<receiver_state<Rcvr>, Rcvr>::passing_receiver;

    template <class... Args>
    void set_value(Args&&... args) && noexcept {
        using Tuple = decayed_tuple<Args...>;
        Rcvr& rcvr = this->state_->rcvr;
        if constexpr (nothrow_decay_copyable<Args...>) {
            execution::set_value(static_cast<Rcvr&&>(rcvr),
                                 Variant(Tuple(static_cast<Args&&>(args)...)));
        } else {
            try {
                execution::set_value(static_cast<Rcvr&&>(rcvr),
                                     Variant(Tuple(static_cast<Args&&>(args)...)));
            } catch (...) {
                execution::set_error(static_cast<Rcvr&&>(rcvr), std::current_exception());
            }
        }
    }
};

struct into_variant_algorithm {
    using tag_type = into_variant_t;
    template <class Child, class Rcvr>
    using operation = adaptor_operation<
        Child, receiver_state<Rcvr>,
        into_variant_receiver<
            variant_of_values<completion_signatures_of_t<Child, child_env_t<Rcvr>>>, Rcvr>>;

    template <class Sndr>
    static constexpr auto attrs(const Sndr& sndr) noexcept {
        return mapped_attrs<decltype(sndr.child), into_variant_map>(sndr.child);
    }
    template <class Child, class... Env>
    static consteval auto signatures() noexcept {
        return internal::transform_if_valid<into_variant_signatures,
                                            signatures_of<Child, fwd_env_t<Env>...>>();
    }
};
template <class Child>
using into_variant_sender =
    adaptor_sender<into_variant_algorithm, no_data<into_variant_algorithm>, Child>;

}  // namespace coppice::execution::internal
