// copy_if, remove, remove_if, unique: keep some of the elements, in their order.
#pragma once
// Common to all. Threads: any; several threads call the function at the same time, once for each
// element, or for each pair of neighbors. Errors: if functions throw, the exception of the first
// element among those that threw; std::system_error with operation_canceled if a stop request left
// elements out; std::bad_alloc. The values of the elements are then unspecified. Cost: that of a
// sequential loop while no other worker is idle. When another worker takes part, some elements are
// moved twice, and copy_if remembers its decisions as one bit per element of a small part.

#include <coppice/parallel/internal/filter_engine.hpp>
#include <coppice/parallel/on.hpp>

namespace coppice::parallel {

// copy_if(first, last, out, predicate) copies the elements that satisfy the predicate, and returns
// the end of the output. copy_if(range, out, predicate, projection = {}) and
// copy_if(first, last, out, out_last, predicate) (P3179) return the ends of input and output. `out`
// is an iterator with enough space behind it, or a range. If the range is full, the end of the
// input is the first element that satisfies the predicate and does not fit. `out` must not overlap
// the input. Source: [alg.copy].
inline constexpr internal::algorithm<internal::copy_if_description> copy_if{};

// remove_if(first, last, predicate) and remove(first, last, value) move the elements that stay to
// the front, and return the position behind them. For a range they return the subrange behind them,
// as std::ranges does. A projection may follow the last argument. Source: [alg.remove].
inline constexpr internal::algorithm<internal::remove_if_description> remove_if{};
inline constexpr internal::algorithm<internal::with_value<internal::remove_if_description>>
    remove{};

// unique(first, last, equal = equal_to) and unique(range, equal = equal_to, projection = {}) keep
// the first of each group of equal neighbors, and return the same as remove_if. `equal` is an
// equivalence relation. Source: [alg.unique].
inline constexpr internal::algorithm<internal::unique_description> unique{};

namespace async {

inline constexpr internal::async_algorithm<internal::copy_if_description> copy_if{};
inline constexpr internal::async_algorithm<internal::remove_if_description> remove_if{};
inline constexpr internal::async_algorithm<internal::with_value<internal::remove_if_description>>
    remove{};
inline constexpr internal::async_algorithm<internal::unique_description> unique{};

}  // namespace async

}  // namespace coppice::parallel
