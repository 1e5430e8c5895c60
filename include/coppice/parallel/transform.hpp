// transform, copy, fill, generate, and adjacent_difference write each element of an output once.
#pragma once
// Common to all. Threads: any; several threads call the function, and write, at the same time.
// Errors: if calls throw, the exception of the first element among those that threw. Calls that
// have not begun are left out, and elements that were written stay written. If a stop request left
// elements out, algorithms that return a position throw std::system_error with operation_canceled.
// Algorithms that return void in std return false then, and otherwise true. Cost: no allocation;
// that of a plain loop while no other worker is idle.
//
// `out` is an iterator with enough space behind it, or a range, whose size limits how many elements
// are written. In the place of a range there may be its begin and end, as (first, last, out,
// out_last); then all positions are returned, as of ranges (P3179). It must not overlap the input
// unless both begin at the same element.

#include <coppice/parallel/internal/transform_engine.hpp>
#include <coppice/parallel/on.hpp>

namespace coppice::parallel {

// transform(first, last, out, f) and transform(first, last, first2, out, f) write f(x) or f(x, y),
// and return the end of the output. transform(range, out, f) and transform(range, range2, out, f),
// each with an optional projection per range behind f, return the ends of inputs and output, as
// std::ranges does. Source: [alg.transform].
inline constexpr internal::algorithm<internal::transform_description> transform{};

// copy(first, last, out) and copy(range, out) copy each element, and return the same as transform.
// copy_n(first, n, out) is copy(first, first + n, out). Source: [alg.copy].
inline constexpr internal::algorithm<internal::copy_description> copy{};
inline constexpr internal::algorithm<internal::copy_n_description> copy_n{};

// fill(first, last, value) and fill(range, value) assign the value to each element.
// fill_n(first, n, value) does so for n elements, and returns first + n. Source: [alg.fill].
inline constexpr internal::algorithm<internal::fill_description> fill{};
inline constexpr internal::algorithm<internal::fill_n_description> fill_n{};

// generate(first, last, f) and generate(range, f) write what f() returns; generate_n(first, n, f)
// returns first + n. Source: [alg.generate].
inline constexpr internal::algorithm<internal::generate_description> generate{};
inline constexpr internal::algorithm<internal::generate_n_description> generate_n{};

// adjacent_difference(first, last, out, f = minus) and adjacent_difference(range, out, f = minus)
// write the first element, then f(x, element before x) for each further element x. They return the
// same as transform. `out` must not overlap the input. Source: [adjacent.difference].
inline constexpr internal::algorithm<internal::adjacent_difference_description>
    adjacent_difference{};

namespace async {

inline constexpr internal::async_algorithm<internal::transform_description> transform{};
inline constexpr internal::async_algorithm<internal::copy_description> copy{};
inline constexpr internal::async_algorithm<internal::copy_n_description> copy_n{};
inline constexpr internal::async_algorithm<internal::fill_description> fill{};
inline constexpr internal::async_algorithm<internal::fill_n_description> fill_n{};
inline constexpr internal::async_algorithm<internal::generate_description> generate{};
inline constexpr internal::async_algorithm<internal::generate_n_description> generate_n{};
inline constexpr internal::async_algorithm<internal::adjacent_difference_description>
    adjacent_difference{};

}  // namespace async

}  // namespace coppice::parallel
