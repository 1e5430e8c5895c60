// partition, stable_partition: put the elements for which a predicate is true first.
#pragma once
// Each takes (first, last, predicate) and returns the first of the other elements, or (range,
// predicate, projection) and returns these as a subrange. Iterators without random access are
// partitioned in order. Threads: any; several threads call the predicate at the same time. Errors,
// of both: the first exception of the predicate or of a move, after all parts have ended;
// std::system_error with operation_canceled if a stop request left elements out. The range then has
// all its elements, in any order, unless a move threw.

#include <coppice/parallel/internal/partition_descriptions.hpp>
#include <coppice/parallel/on.hpp>

namespace coppice::parallel {

// Keeps no order. Cost: O(n); no allocation. Source: [alg.partitions].
inline constexpr internal::algorithm<internal::partition_description<internal::run_partition>>
    partition{};

// Keeps the order among elements for which the predicate is true, and among the others. Cost: O(n)
// with memory for a second range; O(n log n) moves without it, if there is none or moves may throw.
// Source: [alg.partitions].
inline constexpr internal::algorithm<
    internal::partition_description<internal::run_stable_partition>>
    stable_partition{};

namespace async {

inline constexpr internal::async_algorithm<internal::partition_description<internal::run_partition>>
    partition{};
inline constexpr internal::async_algorithm<
    internal::partition_description<internal::run_stable_partition>>
    stable_partition{};

}  // namespace async

}  // namespace coppice::parallel
