// sort, stable_sort, partial_sort, nth_element: order the elements of a range, side by side.
#pragma once
// Each takes random access iterators or a range, a comparator (by default <), and a projection. The
// iterators refer to elements, not to proxies of them as those of std::vector<bool> do. Each
// returns true, or false if a stop request left work out. The range then has all its elements, in
// any order. Threads: any; several threads call comparators and projections at the same time.
//
// Errors, of all: the exception of a comparator, a projection, or a move, after all parts have
// ended. Unless a move threw, the range then has all its elements, in any order. A comparator that
// contradicts itself leaves the elements in an unspecified order. It causes no loss of an element,
// and no access outside the range.

#include <coppice/parallel/internal/sort_descriptions.hpp>
#include <coppice/parallel/on.hpp>

namespace coppice::parallel {

// sort(first, last), sort(range): elements that compare equal end in any order. Cost: O(n log n)
// for any input; O(n log k) for k different values, and for k <= 16 sorted or reversed runs. An
// input of few runs allocates a buffer as large as the range, if there is memory for it. Any other
// input allocates nothing. Source: [sort].
inline constexpr internal::algorithm<internal::sort_description<internal::run_sort>> sort{};

// stable_sort(first, last), stable_sort(range): elements that compare equal keep their order. Cost:
// O(n log n) with a buffer as large as the range; O(n log(n)^2) if there is no memory for it, or
// moves may throw. Source: [stable.sort].
inline constexpr internal::algorithm<internal::sort_description<internal::run_stable_sort>>
    stable_sort{};

// partial_sort(first, middle, last), partial_sort(range, middle): the elements before `middle` are
// the least ones, in order; the rest are in any order. Cost: O(n + k log k) on average for k
// elements before `middle`, O(n log n) at worst. Source: [partial.sort].
inline constexpr internal::algorithm<internal::select_description<internal::run_partial_sort>>
    partial_sort{};

// nth_element(first, nth, last), nth_element(range, nth): the element at `nth` is the one that
// sorting would put there. The elements before it are not greater, and those behind it are not
// less. Cost: O(n) on average, O(n log n) at worst. Source: [alg.nth.element].
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
