// into_variant: turns several value completions into one, a variant of tuples.
#pragma once
// Source: [exec.into.variant].

#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/adaptor.hpp>
#include <coppice/exec/internal/mapped_attrs.hpp>
#include <coppice/exec/value_types.hpp>

namespace coppice::execution {

struct into_variant_t;

template <class Sigs>
using variant_of_values =
    gather_signatures<set_value_t, Sigs, internal::decayed_tuple, variant_or_empty>;

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
    using complete =
        internal::set_union_t<sent, exception_signature<(value_store_throws<Fns> || ...)>,
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
        using Tuple = internal::decayed_tuple<Args...>;
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

template <class Child, class Rcvr>
using into_variant_operation = adaptor_operation<
    Child, receiver_state<Rcvr>,
    into_variant_receiver<variant_of_values<completion_signatures_of_t<Child, child_env_t<Rcvr>>>,
                          Rcvr>>;

// Sends one value: a variant of a tuple for each of the child's value completions.
struct into_variant_t : sender_adaptor_closure<into_variant_t> {
    template <sender Sndr>
    constexpr auto operator()(Sndr&& sndr) const;
    constexpr auto operator()() const noexcept { return bind_adaptor(*this); }
};

// Decomposes as [tag, data, child].
template <class Child>
struct into_variant_sender {
    using sender_concept = sender_tag;
    using tag_type = into_variant_t;
    using decomposable = void;

    [[no_unique_address]] Child child;

    template <class Init>
    constexpr explicit into_variant_sender(internal::construct_each, Init&& init) noexcept(
        std::is_nothrow_constructible_v<Child, Init>)
        : child(static_cast<Init&&>(init)) {}

    constexpr auto get_env() const noexcept { return mapped_attrs<Child, into_variant_map>(child); }
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        using Sigs = signatures_of<internal::like_t<Self, Child>, fwd_env_t<Env>...>;
        return execution::transform_if_valid<into_variant_signatures, Sigs>();
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && noexcept(
        std::is_nothrow_constructible_v<into_variant_operation<Child, Rcvr>, Child, Rcvr>)
        -> into_variant_operation<Child, Rcvr> {
        return {static_cast<Child&&>(child), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
        requires std::copy_constructible<Child>
    auto connect(Rcvr rcvr) const& noexcept(
        std::is_nothrow_constructible_v<into_variant_operation<const Child&, Rcvr>, const Child&,
                                        Rcvr>) -> into_variant_operation<const Child&, Rcvr> {
        return {child, static_cast<Rcvr&&>(rcvr)};
    }
};

template <sender Sndr>
constexpr auto into_variant_t::operator()(Sndr&& sndr) const {
    using result = into_variant_sender<std::decay_t<Sndr>>;
    static_assert(pipeline_check<result>::done);
    return result(internal::construct_each(), static_cast<Sndr&&>(sndr));
}
inline constexpr into_variant_t into_variant{};

}  // namespace coppice::execution
