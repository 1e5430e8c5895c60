// reduce, transform_reduce, count, count_if, min_element, max_element, minmax_element, histogram.
#pragma once
// Common to all, unless stated otherwise. Threads: any; several threads call the functions at the
// same time. Errors: if functions throw, the exception of the first element among those that threw;
// std::system_error with operation_canceled if a stop request left elements out, so a partial sum
// is never returned as the sum. Cost: no allocation; that of a plain loop while no other worker is
// idle.

#include <coppice/parallel/internal/extremes_engine.hpp>
#include <coppice/parallel/internal/histogram_engine.hpp>
#include <coppice/parallel/internal/reduce_engine.hpp>
#include <coppice/parallel/on.hpp>

namespace coppice::parallel {

// reduce(first, last, init = {}, op = plus) and reduce(range, init = {}, op = plus) return the sum
// of init and all elements. op is associative. Its operands keep their order, except that
// floating-point numbers are added in any order, as std allows. An element converts to the type of
// init. Source: [reduce].
inline constexpr internal::algorithm<internal::reduce_description> reduce{};

// transform_reduce(first, last, init, op, f) and transform_reduce(range, init, op, f) return the
// sum of init and f of all elements. With two ranges, (first, last, first2, init, op = plus, f =
// multiplies) and (range, range2, init, op = plus, f = multiplies), f takes an element of each.
// The rules for op are those of reduce. Source: [transform.reduce].
inline constexpr internal::algorithm<internal::transform_reduce_description> transform_reduce{};

// count(first, last, value) and count(range, value) return the number of elements equal to the
// value. count_if(first, last, predicate) and count_if(range, predicate) return the number of
// elements that satisfy the predicate. A projection may follow the last argument. Source:
// [alg.count].
inline constexpr internal::algorithm<internal::count_description> count{};
inline constexpr internal::algorithm<internal::count_if_description> count_if{};

// min_element and max_element return the position of the first of the least or greatest elements.
// minmax_element returns the positions of the first of the least and the last of the greatest. They
// return the end for an empty range. All take (first, last, less = {}) or (range, less = {},
// projection = {}). Source: [alg.min.max].
inline constexpr internal::algorithm<internal::extremes_description<internal::choose_least>>
    min_element{};
inline constexpr internal::algorithm<internal::extremes_description<internal::choose_greatest>>
    max_element{};
inline constexpr internal::algorithm<internal::extremes_description<internal::choose_both>>
    minmax_element{};

// histogram(first, last, bins, key = identity) and histogram(range, bins, key = identity) add 1 to
// bins[key(x)] for each element x whose key is an index of `bins`. `bins` is a random-access range
// of integers, whose former values are kept and added to. Returns true, or false if a stop request
// left elements out. Errors: the exception of key; std::bad_alloc. After an error or a stop, `bins`
// has counted some of the elements. Cost: one allocation as large as `bins` for each part of the
// range that another worker takes. Source: ours.
inline constexpr internal::algorithm<internal::histogram_description> histogram{};

namespace async {

inline constexpr internal::async_algorithm<internal::reduce_description> reduce{};
inline constexpr internal::async_algorithm<internal::transform_reduce_description>
    transform_reduce{};
inline constexpr internal::async_algorithm<internal::count_description> count{};
inline constexpr internal::async_algorithm<internal::count_if_description> count_if{};
inline constexpr internal::async_algorithm<internal::extremes_description<internal::choose_least>>
    min_element{};
inline constexpr internal::async_algorithm<
    internal::extremes_description<internal::choose_greatest>>
    max_element{};
inline constexpr internal::async_algorithm<internal::extremes_description<internal::choose_both>>
    minmax_element{};
inline constexpr internal::async_algorithm<internal::histogram_description> histogram{};

}  // namespace async

}  // namespace coppice::parallel
