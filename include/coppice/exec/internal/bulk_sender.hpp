// The senders of bulk, bulk_chunked, and bulk_unchunked; used by bulk.hpp and by customizations.
#pragma once
// Without customization they call the function where the child completes, one index after another.
// Source: [exec.bulk].

#include <coppice/exec/closure.hpp>
#include <coppice/exec/execution_policy.hpp>
#include <coppice/exec/internal/adaptor.hpp>
#include <coppice/exec/internal/attrs.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace coppice::execution {
struct bulk_t;
struct bulk_chunked_t;
struct bulk_unchunked_t;
}  // namespace coppice::execution

namespace coppice::execution::internal {

template <class Policy, class Shape, class F>
struct bulk_data {
    template <class P, class FInit>
    constexpr bulk_data(P&& p, Shape s,
                        FInit&& function) noexcept(std::is_nothrow_constructible_v<F, FInit>)
        : policy(static_cast<P&&>(p)), shape(s), f(static_cast<FInit&&>(function)) {}
    [[no_unique_address]] Policy policy;
    Shape shape;
    [[no_unique_address]] F f;
};

// The type of a loop counter over Shape. bool is an integral type that cannot be incremented.
template <class Shape>
using bulk_counter = std::conditional_t<std::is_same_v<Shape, bool>, unsigned char, Shape>;

// Calls f(i, args...) for each i of [first, last), in order.
template <class Shape, class F, class... Args>
constexpr void call_indices(F& f, std::type_identity_t<Shape> first, Shape last, Args&... args) {
    for (bulk_counter<Shape> i = first; i < last; ++i) f(static_cast<Shape>(i), args...);
}

// Adapts bulk's function to bulk_chunked: calls it once per index.
template <class F>
class call_each {
public:
    template <class Init>
    constexpr explicit call_each(construct_each,
                                 Init&& init) noexcept(std::is_nothrow_constructible_v<F, Init>)
        : f_(static_cast<Init&&>(init)) {}
    template <class Shape, class... Args>
        requires std::invocable<F&, Shape, Args&...>
    constexpr void operator()(Shape begin, Shape end, Args&... args) noexcept(
        std::is_nothrow_invocable_v<F&, Shape, Args&...>) {
        internal::call_indices(f_, begin, end, args...);
    }

private:
    [[no_unique_address]] F f_;
};

// True if the function can be called as the algorithm calls it.
template <class Tag, class F, class Shape, class... Args>
inline constexpr bool bulk_callable = std::is_invocable_v<F&, Shape, Shape, Args&...>;
template <class F, class Shape, class... Args>
inline constexpr bool bulk_callable<bulk_unchunked_t, F, Shape, Args...> =
    std::is_invocable_v<F&, Shape, Args&...>;
template <class F, class Shape, class... Args>
inline constexpr bool bulk_callable<bulk_t, F, Shape, Args...> =
    std::is_invocable_v<F&, Shape, Args&...>;
template <class Tag, class F, class Shape, class... Args>
inline constexpr bool bulk_nothrow = std::is_nothrow_invocable_v<F&, Shape, Shape, Args&...>;
template <class F, class Shape, class... Args>
inline constexpr bool bulk_nothrow<bulk_unchunked_t, F, Shape, Args...> =
    std::is_nothrow_invocable_v<F&, Shape, Args&...>;
template <class F, class Shape, class... Args>
inline constexpr bool bulk_nothrow<bulk_t, F, Shape, Args...> =
    std::is_nothrow_invocable_v<F&, Shape, Args&...>;

template <class Sigs, class Tag, class F, class Shape>
struct bulk_signatures;
template <class... Fns, class Tag, class F, class Shape>
struct bulk_signatures<completion_signatures<Fns...>, Tag, F, Shape> {
    template <class Fn>
    struct of {
        using type = completion_signatures<Fn>;
    };
    template <class... Args>
    struct of<set_value_t(Args...)> {
        using type = pipeline_error<in_algorithm<Tag>, got<F>,
                                    wanted<callable_with_arguments<Shape, Args&...>>>;
    };
    template <class... Args>
        requires bulk_callable<Tag, F, Shape, Args...>
    struct of<set_value_t(Args...)> {
        using type = set_union_t<completion_signatures<set_value_t(Args...)>,
                                 exception_signature<!bulk_nothrow<Tag, F, Shape, Args...>>>;
    };
    using type = signatures_union_t<typename of<Fns>::type...>;
};

// Maps the child's completions: a value completion may become an exception.
template <class Tag, class F, class Shape>
struct bulk_map {
    template <class Fn>
    static constexpr bool call_throws(Fn*) noexcept {
        return false;
    }
    template <class... Args>
    static constexpr bool call_throws(set_value_t (*)(Args...)) noexcept {
        return !bulk_nothrow<Tag, F, Shape, Args...>;
    }
    template <class... Fns>
    static consteval bool throws(completion_signatures<Fns...>) noexcept {
        return (call_throws(static_cast<Fns*>(nullptr)) || ...);
    }
    template <class From, class To, class Sigs>
    static constexpr bool leads =
        std::is_same_v<From, To> ||
        (std::is_same_v<From, set_value_t> && std::is_same_v<To, set_error_t> && throws(Sigs()));
    template <class To>
    static constexpr bool always = !std::is_same_v<To, set_error_t>;
};

template <class Tag, class Data, class Rcvr>
class bulk_receiver : public passing_receiver<data_state<Data, Rcvr>, Rcvr> {
public:
    using passing_receiver<data_state<Data, Rcvr>, Rcvr>::passing_receiver;

    template <class... Args>
    constexpr void set_value(Args&&... args) && noexcept {
        using F = decltype(this->state_->data.f);
        using Shape = decltype(this->state_->data.shape);
        if constexpr (bulk_nothrow<Tag, F, Shape, Args...>) {
            call(args...);
            execution::set_value(static_cast<Rcvr&&>(this->state_->rcvr),
                                 static_cast<Args&&>(args)...);
        } else {
            try {
                call(args...);
            } catch (...) {
                execution::set_error(static_cast<Rcvr&&>(this->state_->rcvr),
                                     std::current_exception());
                return;
            }
            execution::set_value(static_cast<Rcvr&&>(this->state_->rcvr),
                                 static_cast<Args&&>(args)...);
        }
    }

private:
    template <class... Args>
    constexpr void call(Args&... args) {
        auto& [policy, shape, f] = this->state_->data;
        using Shape = std::remove_cvref_t<decltype(shape)>;
        if constexpr (std::is_same_v<Tag, bulk_chunked_t>) {
            if (Shape(0) < shape) f(Shape(0), Shape(shape), args...);
        } else {
            internal::call_indices(f, Shape(0), shape, args...);
        }
    }
};

template <class Tag, class Data>
struct bulk_algorithm {
    using tag_type = Tag;
    using shape_type = decltype(std::declval<Data&>().shape);
    using function_type = decltype(std::declval<Data&>().f);
    template <class Child, class Rcvr>
    using operation =
        adaptor_operation<Child, data_state<Data, Rcvr>, bulk_receiver<Tag, Data, Rcvr>>;

    template <class Sndr>
    static constexpr auto attrs(const Sndr& sndr) noexcept {
        return mapped_attrs<decltype(sndr.child), bulk_map<Tag, function_type, shape_type>>(
            sndr.child);
    }
    template <class Child, class... Env>
    static consteval auto signatures() noexcept {
        return internal::transform_if_valid<bulk_signatures,
                                            signatures_of<Child, fwd_env_t<Env>...>, Tag,
                                            function_type, shape_type>();
    }
};
// The data decomposes as [policy, shape, f].
template <class Tag, class Data, class Child>
using bulk_sender = adaptor_sender<bulk_algorithm<Tag, Data>, Data, Child>;

// True if the function and the child can be taken out of a bulk sender of this type. A const
// sender, which algorithms inspect before they connect, allows it only if both can be copied. A
// sender for which this is false is not transformed.
template <class Sndr>
concept bulk_movable = requires {
    requires std::constructible_from<decltype(std::remove_cvref_t<Sndr>::data),
                                     like_t<Sndr, decltype(std::remove_cvref_t<Sndr>::data)>>;
    requires std::constructible_from<decltype(std::remove_cvref_t<Sndr>::child),
                                     like_t<Sndr, decltype(std::remove_cvref_t<Sndr>::child)>>;
};

// Never satisfied: its name is the compiler's message for `bulk(shape, f)`. P2300 had that form;
// P3481 put an execution policy before the shape.
template <class Tag>
concept policy_comes_first_as_in_bulk_of_par_shape_f = always_false<Tag>;

// A policy that cannot be copied is held by reference.
template <class Policy>
using bulk_policy_t = std::conditional_t<std::copy_constructible<Policy>, Policy, const Policy&>;

// The number of calls: an integer of up to 64 bits, because schedulers count in 64 bits.
template <class Shape>
concept bulk_shape = std::integral<Shape> && sizeof(Shape) <= sizeof(std::uint64_t);

template <class Tag>
struct bulk_adaptor {
    // Returns the sender. The overload without a sender returns a closure.
    template <sender Sndr, class Policy, bulk_shape Shape, class F>
        requires is_execution_policy_v<std::remove_cvref_t<Policy>> &&
                 std::copy_constructible<std::decay_t<F>>
    constexpr auto operator()(Sndr&& sndr, Policy&& policy, Shape shape, F&& f) const {
        using Data = bulk_data<bulk_policy_t<std::remove_cvref_t<Policy>>, Shape, std::decay_t<F>>;
        using result = bulk_sender<Tag, Data, std::decay_t<Sndr>>;
        static_assert(pipeline_check<result>::done);
        return result(Data(static_cast<Policy&&>(policy), shape, static_cast<F&&>(f)),
                      static_cast<Sndr&&>(sndr));
    }
    template <class Policy, bulk_shape Shape, class F>
        requires is_execution_policy_v<std::remove_cvref_t<Policy>> &&
                 std::copy_constructible<std::decay_t<F>>
    constexpr auto operator()(Policy&& policy, Shape shape, F&& f) const {
        return execution::bind_adaptor(Tag(), static_cast<Policy&&>(policy), shape,
                                       static_cast<F&&>(f));
    }
    // Calls without a policy are rejected, with a reason.
    template <class Sndr, std::integral Shape, class F>
        requires(!is_execution_policy_v<std::remove_cvref_t<Sndr>>) &&
                    policy_comes_first_as_in_bulk_of_par_shape_f<Tag>
    void operator()(Sndr&& sndr, Shape shape, F&& f) const = delete;
    template <std::integral Shape, class F>
        requires policy_comes_first_as_in_bulk_of_par_shape_f<Tag>
    void operator()(Shape shape, F&& f) const = delete;
};

}  // namespace coppice::execution::internal
