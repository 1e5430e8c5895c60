// copy_if, remove, remove_if, unique: keep some of the elements, in their order.
#pragma once
// Common to all. Threads: any; several threads call the function at the same time, once for each
// element, or for each two neighbors. Errors: the first exception in the order of the elements, of
// those that were thrown; the values of the elements are then unspecified. std::system_error with
// operation_canceled if a stop request left elements out; std::bad_alloc. Cost: that of the walk in
// order while no other worker is idle. Otherwise some elements are moved twice, and what is to be
// copied is kept as a bit for each element of a small part.

#include <coppice/parallel/internal/filter_engine.hpp>
#include <coppice/parallel/on.hpp>

namespace coppice::parallel {

// copy_if(first, last, out, predicate) copies the elements that satisfy the predicate, and returns
// the position behind the output. copy_if(range, out, predicate), with a projection behind, returns
// both positions. `out` is an iterator with enough space behind it, or a range. If the range has no
// room for an element that satisfies the predicate, that is the position in the input. `out` must
// not overlap the input. Source: [alg.copy].
inline constexpr internal::algorithm<internal::copy_if_description> copy_if{};

// remove_if(first, last, predicate) and remove(first, last, value) move the other elements to the
// front, and return the position behind them. Of a range they return what is left behind them, as
// in std::ranges. With a projection behind. Source: [alg.remove].
inline constexpr internal::algorithm<internal::remove_if_description> remove_if{};
inline constexpr internal::algorithm<internal::with_value<internal::remove_if_description>>
    remove{};

// unique(first, last, equal = equal_to) and unique(range, equal = equal_to), with a projection
// behind, keep the first of each group of equal neighbors, and return likewise. equal is an
// equivalence. Source: [alg.unique].
inline constexpr internal::algorithm<internal::unique_description> unique{};

namespace async {

inline constexpr internal::async_algorithm<internal::copy_if_description> copy_if{};
inline constexpr internal::async_algorithm<internal::remove_if_description> remove_if{};
inline constexpr internal::async_algorithm<internal::with_value<internal::remove_if_description>>
    remove{};
inline constexpr internal::async_algorithm<internal::unique_description> unique{};

}  // namespace async

}  // namespace coppice::parallel
