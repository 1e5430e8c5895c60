// The senders of bulk, bulk_chunked, and bulk_unchunked; used by bulk.hpp and by customizations.
#pragma once
// Without customization they call the function where the child completes, one index after another.
// Source: [exec.bulk].

#include <coppice/exec/internal/adaptor.hpp>
#include <coppice/exec/internal/mapped_attrs.hpp>

#include <concepts>
#include <type_traits>

namespace coppice::execution {

struct bulk_t;
struct bulk_chunked_t;
struct bulk_unchunked_t;

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
    constexpr explicit call_each(internal::construct_each,
                                 Init&& init) noexcept(std::is_nothrow_constructible_v<F, Init>)
        : f_(static_cast<Init&&>(init)) {}
    template <class Shape, class... Args>
        requires std::invocable<F&, Shape, Args&...>
    constexpr void operator()(Shape begin, Shape end, Args&... args) noexcept(
        std::is_nothrow_invocable_v<F&, Shape, Args&...>) {
        execution::call_indices(f_, begin, end, args...);
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
        using type =
            internal::set_union_t<completion_signatures<set_value_t(Args...)>,
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
            execution::call_indices(f, Shape(0), shape, args...);
        }
    }
};

// Decomposes as [tag, data, child]; data as [policy, shape, f].
template <class Tag, class Data, class Child>
struct bulk_sender {
    using sender_concept = sender_tag;
    using tag_type = Tag;
    using decomposable = void;
    using shape_type = decltype(std::declval<Data&>().shape);
    using function_type = decltype(std::declval<Data&>().f);
    template <class Sndr, class Rcvr>
    using operation =
        adaptor_operation<Sndr, data_state<Data, Rcvr>, bulk_receiver<Tag, Data, Rcvr>>;

    Data data;
    [[no_unique_address]] Child child;

    template <class DataInit, class ChildInit>
    constexpr bulk_sender(DataInit&& d,
                          ChildInit&& c) noexcept(std::is_nothrow_constructible_v<Data, DataInit> &&
                                                  std::is_nothrow_constructible_v<Child, ChildInit>)
        : data(static_cast<DataInit&&>(d)), child(static_cast<ChildInit&&>(c)) {}

    constexpr auto get_env() const noexcept {
        return mapped_attrs<Child, bulk_map<Tag, function_type, shape_type>>(child);
    }
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        using Sigs = signatures_of<internal::like_t<Self, Child>, fwd_env_t<Env>...>;
        return execution::transform_if_valid<bulk_signatures, Sigs, Tag, function_type,
                                             shape_type>();
    }
    template <receiver Rcvr>
    constexpr auto connect(Rcvr rcvr) && noexcept(
        std::is_nothrow_constructible_v<operation<Child, Rcvr>, Child, Data, Rcvr>)
        -> operation<Child, Rcvr> {
        return {static_cast<Child&&>(child), static_cast<Data&&>(data), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
        requires std::copy_constructible<Data> && std::copy_constructible<Child>
    constexpr auto connect(Rcvr rcvr) const& noexcept(
        std::is_nothrow_constructible_v<operation<const Child&, Rcvr>, const Child&, const Data&,
                                        Rcvr>) -> operation<const Child&, Rcvr> {
        return {child, data, static_cast<Rcvr&&>(rcvr)};
    }
};

// True if the function and the child can be taken out of a bulk sender of this type. A const
// sender, which algorithms inspect before they connect, allows it only if both can be copied. A
// sender for which this is false is not transformed.
template <class Sndr>
concept bulk_movable = requires {
    requires std::constructible_from<
        decltype(std::remove_cvref_t<Sndr>::data),
        internal::like_t<Sndr, decltype(std::remove_cvref_t<Sndr>::data)>>;
    requires std::constructible_from<
        decltype(std::remove_cvref_t<Sndr>::child),
        internal::like_t<Sndr, decltype(std::remove_cvref_t<Sndr>::child)>>;
};

}  // namespace coppice::execution
