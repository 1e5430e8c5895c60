// transform, copy, fill, generate, adjacent_difference: write each element of an output once.
#pragma once
// Common to all. Threads: any; several threads call the function, and write, at the same time.
// Errors: the first exception in the order of the elements, of those that were thrown; no further
// calls begin then. Elements that were written stay written. What returns a position throws
// std::system_error with operation_canceled if a stop request left elements out; what returns
// nothing in std returns false then, and otherwise true. Cost: no allocation; that of a plain loop
// while no other worker is idle.
//
// `out` is an iterator with enough space behind it, or a range, whose size limits how many elements
// are written. It must not overlap the input unless both begin at the same element.

#include <coppice/parallel/internal/transform_engine.hpp>
#include <coppice/parallel/on.hpp>

namespace coppice::parallel {

// transform(first, last, out, f) and transform(first, last, first2, out, f) write f(x) or f(x, y),
// and return the position behind the output. transform(range, out, f) and transform(range, range2,
// out, f), each with a projection per range behind f, return all positions, as in std::ranges.
// Source: [alg.transform].
inline constexpr internal::algorithm<internal::transform_description> transform{};

// copy(first, last, out) and copy(range, out) return as transform does. Source: [alg.copy].
inline constexpr internal::algorithm<internal::copy_description> copy{};

// fill(first, last, value) and fill(range, value). Source: [alg.fill].
inline constexpr internal::algorithm<internal::fill_description> fill{};

// generate(first, last, f) and generate(range, f) write what f() returns. Source: [alg.generate].
inline constexpr internal::algorithm<internal::generate_description> generate{};

// adjacent_difference(first, last, out, f = minus) and adjacent_difference(range, out, f = minus)
// write the first element, then f(x, element before x), and return as transform does. `out` must
// not overlap the input. Source: [adjacent.difference].
inline constexpr internal::algorithm<internal::adjacent_difference_description>
    adjacent_difference{};

namespace async {

inline constexpr internal::async_algorithm<internal::transform_description> transform{};
inline constexpr internal::async_algorithm<internal::copy_description> copy{};
inline constexpr internal::async_algorithm<internal::fill_description> fill{};
inline constexpr internal::async_algorithm<internal::generate_description> generate{};
inline constexpr internal::async_algorithm<internal::adjacent_difference_description>
    adjacent_difference{};

}  // namespace async

}  // namespace coppice::parallel
