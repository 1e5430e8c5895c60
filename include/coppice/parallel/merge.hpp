// merge: copies two sorted ranges into one, side by side.
#pragma once

#include <coppice/parallel/internal/partition_descriptions.hpp>
#include <coppice/parallel/on.hpp>

namespace coppice::parallel {

// merge(first1, last1, first2, last2, out, less) and merge(range1, range2, out, less, projection1,
// projection2) copy the elements of both to `out`, in order. Among equal elements, those of the
// first range come first. Returns the end of the output, or for ranges std::ranges::merge_result.
// If `out` is a range, its size limits how many elements are written. Iterators without random
// access are merged sequentially. Threads: any; several threads call `less` at the same time.
// Errors: one exception of a comparison or a copy, after all parts have ended; std::system_error
// with operation_canceled if a stop request left elements out. Some places of the output are then
// not written. Cost: O(n); no allocation. Source: [alg.merge].
inline constexpr internal::algorithm<internal::merge_description> merge{};

namespace async {

inline constexpr internal::async_algorithm<internal::merge_description> merge{};

}  // namespace async

}  // namespace coppice::parallel
