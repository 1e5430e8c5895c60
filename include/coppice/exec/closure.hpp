// Sender adaptor closures, which stand on the right of `|`; every adaptor uses them.
#pragma once
// `sender | closure` is closure(sender), and `closure | closure` is a closure. A user's closure
// derives from sender_adaptor_closure and can be called with a sender. An adaptor without arguments
// is itself a closure: `sender | into_variant` equals `sender | into_variant()`.
// Source: [exec.adapt.obj].

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/exec/sender.hpp>

namespace coppice::execution {

// The base of a closure type D.
template <internal::class_type D>
struct sender_adaptor_closure {};

namespace internal {

template <class T>
concept is_closure =
    std::derived_from<std::remove_cvref_t<T>, sender_adaptor_closure<std::remove_cvref_t<T>>> &&
    (!sender<T>) && std::constructible_from<std::remove_cvref_t<T>, T>;

}  // namespace internal

// An adaptor and all its arguments except the sender, decayed and stored.
template <class Adaptor, class... Args>
struct bound_adaptor : sender_adaptor_closure<bound_adaptor<Adaptor, Args...>> {
    template <class... Inits>
    constexpr explicit bound_adaptor(internal::construct_each, Inits&&... inits) noexcept(
        (std::is_nothrow_constructible_v<Args, Inits> && ...))
        : args_(internal::construct_each(), static_cast<Inits&&>(inits)...) {}

    template <sender Sndr>
        requires internal::callable<Adaptor, Sndr, Args...>
    constexpr auto operator()(Sndr&& sndr) && {
        return std::move(args_).apply([&sndr](Args&&... args) {
            return Adaptor()(static_cast<Sndr&&>(sndr), static_cast<Args&&>(args)...);
        });
    }
    template <sender Sndr>
        requires internal::callable<Adaptor, Sndr, const Args&...>
    constexpr auto operator()(Sndr&& sndr) const& {
        return args_.apply(
            [&sndr](const Args&... args) { return Adaptor()(static_cast<Sndr&&>(sndr), args...); });
    }

private:
    [[no_unique_address]] internal::product<Args...> args_;
};

// Returns the closure for adaptor(args...) without a sender.
template <class Adaptor, class... Args>
constexpr auto bind_adaptor(Adaptor,
                            Args&&... args) noexcept(internal::nothrow_decay_copyable<Args...>) {
    return bound_adaptor<Adaptor, std::decay_t<Args>...>(internal::construct_each(),
                                                         static_cast<Args&&>(args)...);
}

namespace internal {

// Applies First, then Second.
template <class First, class Second>
struct closure_pair : sender_adaptor_closure<closure_pair<First, Second>> {
    template <class A, class B>
    constexpr closure_pair(A&& first,
                           B&& second) noexcept(std::is_nothrow_constructible_v<First, A> &&
                                                std::is_nothrow_constructible_v<Second, B>)
        : first_(static_cast<A&&>(first)), second_(static_cast<B&&>(second)) {}

    template <sender Sndr>
        requires callable<First, Sndr> && callable<Second, call_result_t<First, Sndr>>
    constexpr auto operator()(Sndr&& sndr) && {
        return static_cast<Second&&>(second_)(
            static_cast<First&&>(first_)(static_cast<Sndr&&>(sndr)));
    }
    template <sender Sndr>
        requires callable<const First&, Sndr> &&
                 callable<const Second&, call_result_t<const First&, Sndr>>
    constexpr auto operator()(Sndr&& sndr) const& {
        return second_(first_(static_cast<Sndr&&>(sndr)));
    }

private:
    [[no_unique_address]] First first_;
    [[no_unique_address]] Second second_;
};

}  // namespace internal

// Returns closure(sndr).
template <sender Sndr, internal::is_closure Closure>
    requires internal::callable<Closure, Sndr>
constexpr auto operator|(Sndr&& sndr, Closure&& closure) {
    return static_cast<Closure&&>(closure)(static_cast<Sndr&&>(sndr));
}
// Returns the closure that applies `first`, then `second`.
template <internal::is_closure First, internal::is_closure Second>
constexpr auto operator|(First&& first, Second&& second) {
    return internal::closure_pair<std::decay_t<First>, std::decay_t<Second>>(
        static_cast<First&&>(first), static_cast<Second&&>(second));
}

}  // namespace coppice::execution
