// The engines of reduce, transform_reduce, count, and the search for extreme elements.
#pragma once

#include <coppice/parallel/internal/algorithm.hpp>
#include <coppice/parallel/internal/functions.hpp>
#include <coppice/parallel/internal/loops.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>

namespace coppice::parallel::internal {

// The number of partial sums of floating-point numbers. They are independent, so that additions
// overlap, and are added at the end. The compiler may split only sums of integers by itself.
template <class T>
inline constexpr std::ptrdiff_t sums_at_once = std::floating_point<T> ? 16 : 1;

// Adds count elements, at least one, to an optional sum. at(i) gives the element at i.
template <class T, class Index, class At, class Op>
void add_elements(std::optional<T>& sum, Index i, std::ptrdiff_t count, At at, Op& op) {
    constexpr std::ptrdiff_t width = sums_at_once<T>;
    T total = sum ? T(*std::move(sum)) : T(at(i));
    if (!sum) {
        ++i;
        --count;
    }
    if constexpr (width > 1 && random_access<Index>) {
        if (count >= 4 * width) {
            std::array<T, static_cast<std::size_t>(width)> sums;
            for (std::ptrdiff_t k = 0; k != width; ++k)
                sums[static_cast<std::size_t>(k)] = at(i + k);
            for (i += width, count -= width; count >= width; i += width, count -= width) {
                for (std::ptrdiff_t k = 0; k != width; ++k) {
                    T& each = sums[static_cast<std::size_t>(k)];
                    each = op(each, at(i + k));
                }
            }
            for (const T& each : sums) total = op(total, each);
        }
    }
    for (; count > 0; --count, ++i) total = op(std::move(total), at(i));
    sum.emplace(std::move(total));
}

// The functions that a loop calls with an element, or with the elements of two ranges at an index.
// They refer to f unless a copy is cheap.
template <class F, class It>
struct element_function {
    loop_function<F, std::iter_reference_t<It>> f;
    lasting_result_t<F, std::iter_reference_t<It>> operator()(It i) { return f(*i); }
};
template <class F, class It, class It2>
struct element_pair_function {
    loop_function<F, std::iter_reference_t<It>, std::iter_reference_t<It2>> f;
    It first;
    It2 first2;
    lasting_result_t<F, std::iter_reference_t<It>, std::iter_reference_t<It2>> operator()(
        std::ptrdiff_t i) {
        return f(*internal::behind(first, i), *internal::behind(first2, i));
    }
};

// Returns op(init, sum of op over at(0) ... at(count - 1)), or nothing if it is not complete.
template <class T, class Index, class At, class Op>
std::optional<T> reduce_all(Index first, std::iter_difference_t<Index> count, T init, At at,
                            Op& op) {
    fold_result<T> result = internal::fold<T>(
        first, count,
        [&at, &op](std::optional<T>& sum, Index i, const Index last) {
            loop_function<Op, T, T> call = op;
            internal::add_elements(sum, i, internal::part_size(i, last), at, call);
        },
        [&op](T&& left, T&& right) -> T { return op(std::move(left), std::move(right)); });
    if (!result.complete) return std::nullopt;
    if (!result.sum) return std::optional<T>(std::move(init));
    return std::optional<T>(op(std::move(init), *std::move(result.sum)));
}

template <class Op, class T, class U>
concept reduces = std::is_invocable_r_v<T, Op&, T, T> && std::is_invocable_r_v<T, Op&, T, U> &&
                  std::constructible_from<T, U>;

struct transform_reduce_description {
    // Reduces one range.
    template <std::forward_iterator It, std::sentinel_for<It> End, class T, class Op, class F>
        requires reduces<Op, T, std::invoke_result_t<F&, std::iter_reference_t<It>>>
    static auto bind(It first, End last, T init, Op op, F f) {
        const auto count = std::ranges::distance(first, last);
        return [first, count, init = std::move(init), op = projected_function<Op>{std::move(op)},
                f = projected_function<F>{std::move(f)}]() mutable {
            return internal::reduce_all(first, count, std::move(init),
                                        element_function<projected_function<F>, It>{f}, op);
        };
    }
    template <std::ranges::forward_range R, class T, class Op, class F>
        requires reduces<Op, T, std::invoke_result_t<F&, std::ranges::range_reference_t<R>>>
    static auto bind(R&& r, T init, Op op, F f) {
        return bind(std::ranges::begin(r), std::ranges::end(r), std::move(init), std::move(op),
                    std::move(f));
    }
    // Reduces the pairs of two ranges.
    template <std::forward_iterator It, std::sentinel_for<It> End, std::forward_iterator It2,
              class T, class Op = std::plus<>, class F = std::multiplies<>>
        requires reduces<
            Op, T, std::invoke_result_t<F&, std::iter_reference_t<It>, std::iter_reference_t<It2>>>
    static auto bind(It first, End last, It2 first2, T init, Op op = {}, F f = {}) {
        const auto count = std::ranges::distance(first, last);
        return [first, first2, count, init = std::move(init),
                op = projected_function<Op>{std::move(op)},
                f = projected_function<F>{std::move(f)}]() mutable {
            return of_two(first, count, first2, std::move(init), op, f);
        };
    }
    template <std::ranges::forward_range R, std::ranges::forward_range R2, class T,
              class Op = std::plus<>, class F = std::multiplies<>>
        requires reduces<Op, T,
                         std::invoke_result_t<F&, std::ranges::range_reference_t<R>,
                                              std::ranges::range_reference_t<R2>>>
    static auto bind(R&& r, R2&& r2, T init, Op op = {}, F f = {}) {
        const auto first = std::ranges::begin(r);
        const auto count = std::min(internal::size_of(r), internal::size_of(r2));
        return bind(
            first, std::ranges::next(first, static_cast<std::ranges::range_difference_t<R>>(count)),
            std::ranges::begin(r2), std::move(init), std::move(op), std::move(f));
    }

private:
    template <class It, class It2, class T, class Op, class F>
    static std::optional<T> of_two(It first, std::iter_difference_t<It> count, It2 first2, T init,
                                   Op& op, F& f) {
        if constexpr (random_access<It, It2>) {
            return internal::reduce_all(std::ptrdiff_t{0}, static_cast<std::ptrdiff_t>(count),
                                        std::move(init),
                                        element_pair_function<F, It, It2>{f, first, first2}, op);
        } else {
            if (count != 0 && internal::leaves_out()) return std::nullopt;
            for (; count != 0; --count, ++first, ++first2) {
                init = op(std::move(init), f(*first, *first2));
            }
            return std::optional<T>(std::move(init));
        }
    }
};

struct reduce_description {
    static constexpr std::size_t ranges_max = 1;

    template <std::forward_iterator It, std::sentinel_for<It> End, class T = std::iter_value_t<It>,
              class Op = std::plus<>>
        requires reduces<Op, T, std::iter_reference_t<It>>
    static auto bind(It first, End last, T init = T(), Op op = {}) {
        return transform_reduce_description::bind(first, last, std::move(init), std::move(op),
                                                  std::identity());
    }
    template <std::ranges::forward_range R, class T = std::ranges::range_value_t<R>,
              class Op = std::plus<>>
        requires reduces<Op, T, std::ranges::range_reference_t<R>>
    static auto bind(R&& r, T init = T(), Op op = {}) {
        return bind(std::ranges::begin(r), std::ranges::end(r), std::move(init), std::move(op));
    }
};

struct count_if_description {
    template <std::forward_iterator It, std::sentinel_for<It> End, class F,
              class Proj = std::identity>
        requires projected_predicate<F, Proj, It>
    static auto bind(It first, End last, F f, Proj proj = {}) {
        using difference = std::iter_difference_t<It>;
        return transform_reduce_description::bind(
            first, last, difference(0), std::plus<>(),
            counted_function<projected_function<F, Proj>, difference>{
                {std::move(f), std::move(proj)}});
    }
    template <std::ranges::forward_range R, class F, class Proj = std::identity>
        requires projected_predicate<F, Proj, std::ranges::iterator_t<R>>
    static auto bind(R&& r, F f, Proj proj = {}) {
        return bind(std::ranges::begin(r), std::ranges::end(r), std::move(f), std::move(proj));
    }
};

// A predicate: returns true for elements equal to a value.
template <class T>
struct equal_to_value {
    T value;
    template <class U>
    constexpr bool operator()(U&& x) const {
        return static_cast<U&&>(x) == value;
    }
};

// The description of an algorithm that takes a value, made from the one that takes a predicate.
template <class Description>
struct with_value {
    static constexpr std::size_t ranges_max = 1;

    template <std::forward_iterator It, std::sentinel_for<It> End, class T,
              class Proj = std::identity>
        requires projected_predicate<equal_to_value<T>, Proj, It>
    static auto bind(It first, End last, T value, Proj proj = {}) {
        return Description::bind(first, last, equal_to_value<T>{std::move(value)}, std::move(proj));
    }
    template <std::ranges::forward_range R, class T, class Proj = std::identity>
        requires projected_predicate<equal_to_value<T>, Proj, std::ranges::iterator_t<R>>
    static auto bind(R&& r, T value, Proj proj = {}) {
        return Description::bind(static_cast<R&&>(r), equal_to_value<T>{std::move(value)},
                                 std::move(proj));
    }
};
struct count_description : with_value<count_if_description> {};

}  // namespace coppice::parallel::internal
