// sort, stable_sort, partial_sort, nth_element: order the elements of a range, side by side.
#pragma once
// Each takes random access iterators or a range, a comparator (by default <), and a projection.
// Comparators and projections are called by several threads at the same time. Each returns true; or
// false if a stop request left work out: the range then has all its elements, in any order.
//
// Errors, of all: the exception of a comparator, a projection, or a move, after all parts have
// ended. If it was not a move that threw, the range has all its elements, in any order. A
// comparator that contradicts itself leaves an order that means nothing; no element is lost or read
// outside the range.

#include <coppice/parallel/internal/sort_descriptions.hpp>
#include <coppice/parallel/on.hpp>

namespace coppice::parallel {

// sort(first, last), sort(range): elements that compare equal end in any order. Cost: O(n log n)
// for any input; O(n log k) for k different values, and for up to 16 sorted or reversed runs, which
// take memory for a second range if there is any. Otherwise no allocation. Source: [sort].
inline constexpr internal::algorithm<internal::sort_description<internal::run_sort>> sort{};

// stable_sort(first, last), stable_sort(range): elements that compare equal keep their order. Cost:
// O(n log n), with memory for a second range; O(n log(n)^2) without it, if there is none or moves
// may throw. Source: [stable.sort].
inline constexpr internal::algorithm<internal::sort_description<internal::run_stable_sort>>
    stable_sort{};

// partial_sort(first, middle, last), partial_sort(range, middle): the elements before `middle` are
// the least ones, in order. Cost: O(n + k log k) for k of them, O(n log n) for any input. Source:
// [partial.sort].
inline constexpr internal::algorithm<internal::select_description<internal::run_partial_sort>>
    partial_sort{};

// nth_element(first, nth, last), nth_element(range, nth): the element at `nth` is the one that
// sorting would put there; those before it are not greater, those behind it not less. Cost: O(n),
// O(n log n) for any input. Source: [alg.nth.element].
inline constexpr internal::algorithm<internal::select_description<internal::run_nth_element>>
    nth_element{};

namespace async {

inline constexpr internal::async_algorithm<internal::sort_description<internal::run_sort>> sort{};
inline constexpr internal::async_algorithm<internal::sort_description<internal::run_stable_sort>>
    stable_sort{};
inline constexpr internal::async_algorithm<internal::select_description<internal::run_partial_sort>>
    partial_sort{};
inline constexpr internal::async_algorithm<internal::select_description<internal::run_nth_element>>
    nth_element{};

}  // namespace async

}  // namespace coppice::parallel
