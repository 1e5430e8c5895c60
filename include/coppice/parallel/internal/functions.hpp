// functions: a function and its projections as one function; outputs, as iterators or ranges.
#pragma once

#include <coppice/exec/internal/invoke.hpp>
#include <coppice/parallel/internal/namespaces.hpp>
#include <coppice/pool/internal/loop_walks.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <limits>
#include <ranges>
#include <type_traits>
#include <utility>

namespace coppice::parallel::internal {

template <class Proj, class It>
using projected_t = std::invoke_result_t<Proj&, std::iter_reference_t<It>>;

// The type of what f returns for arguments of these types. A returned reference may refer to a part
// of an argument. So if an argument is a temporary, the type is a value.
template <class F, class... Args>
using lasting_result_t =
    std::conditional_t<(std::is_reference_v<Args> && ...), std::invoke_result_t<F&, Args...>,
                       std::remove_cvref_t<std::invoke_result_t<F&, Args...>>>;

// A function, or a pointer to member, that is called with the projections of its arguments.
template <class F, class Proj = std::identity, class Proj2 = Proj>
struct projected_function {
    [[no_unique_address]] F f;
    [[no_unique_address]] Proj proj{};
    [[no_unique_address]] Proj2 proj2{};

    template <class T>
    constexpr lasting_result_t<F, std::invoke_result_t<Proj&, T>> operator()(T&& x) {
        return execution::internal::invoke(f,
                                           execution::internal::invoke(proj, static_cast<T&&>(x)));
    }
    template <class T, class U>
    constexpr lasting_result_t<F, std::invoke_result_t<Proj&, T>, std::invoke_result_t<Proj2&, U>>
    operator()(T&& x, U&& y) {
        return execution::internal::invoke(f,
                                           execution::internal::invoke(proj, static_cast<T&&>(x)),
                                           execution::internal::invoke(proj2, static_cast<U&&>(y)));
    }
};

// A predicate's negation, and a predicate as a number: 1 for true.
template <class F>
struct negated_function {
    F f;
    template <class T>
    constexpr bool operator()(T&& x) {
        return !f(static_cast<T&&>(x));
    }
};
template <class F, class Number>
struct counted_function {
    F f;
    template <class T>
    constexpr Number operator()(T&& x) {
        return f(static_cast<T&&>(x)) ? 1 : 0;
    }
};

template <class F, class Proj, class It>
concept projected_callable = std::invocable<F&, projected_t<Proj, It>>;
template <class F, class Proj, class It>
concept projected_predicate = std::predicate<F&, projected_t<Proj, It>>;

// The output of an algorithm: an iterator, or a range, whose size limits how much is written.
template <class T>
concept output =
    std::ranges::forward_range<T> || std::input_or_output_iterator<std::remove_cvref_t<T>>;

template <output Out>
constexpr auto output_begin(Out&& out) {
    if constexpr (std::ranges::range<Out>) {
        return std::ranges::begin(out);
    } else {
        return out;
    }
}
template <class Out>
using output_iterator_t = decltype(internal::output_begin(std::declval<Out>()));

// Returns the end of a range as an iterator; an iterator's end is never reached.
template <output Out>
constexpr auto output_end(Out&& out) {
    if constexpr (std::ranges::range<Out>) {
        return std::ranges::next(std::ranges::begin(out), std::ranges::end(out));
    } else {
        return std::unreachable_sentinel;
    }
}

template <class R>
constexpr std::ptrdiff_t size_of(R& r) {
    return static_cast<std::ptrdiff_t>(std::ranges::distance(r));
}
// Returns the smaller one of `count` and the size of a range; `count` for an iterator.
template <class Difference, class Out>
constexpr Difference output_count(Difference count, Out&& out) {
    if constexpr (std::ranges::range<Out>) {
        return static_cast<Difference>(
            std::min(static_cast<std::ptrdiff_t>(count), internal::size_of(out)));
    } else {
        return count;
    }
}

}  // namespace coppice::parallel::internal

namespace coppice::internal {

// A function made of functions changes only if a call of one of these changes it.
template <class F, class Proj, class Proj2, class T>
    requires std::is_invocable_v<Proj&, T>
inline constexpr bool
    call_leaves_function<parallel::internal::projected_function<F, Proj, Proj2>, T> =
        call_leaves_function<Proj, T> && call_leaves_function<F, std::invoke_result_t<Proj&, T>>;
template <class F, class Proj, class Proj2, class T, class U>
    requires std::is_invocable_v<Proj&, T> && std::is_invocable_v<Proj2&, U>
inline constexpr bool
    call_leaves_function<parallel::internal::projected_function<F, Proj, Proj2>, T, U> =
        call_leaves_function<Proj, T> && call_leaves_function<Proj2, U> &&
        call_leaves_function<F, std::invoke_result_t<Proj&, T>, std::invoke_result_t<Proj2&, U>>;
template <class F, class T>
inline constexpr bool call_leaves_function<parallel::internal::negated_function<F>, T> =
    call_leaves_function<F, T>;
template <class F, class Number, class T>
inline constexpr bool call_leaves_function<parallel::internal::counted_function<F, Number>, T> =
    call_leaves_function<F, T>;

}  // namespace coppice::internal
