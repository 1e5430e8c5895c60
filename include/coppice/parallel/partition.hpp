// partition, stable_partition: put the elements for which a predicate is true first.
#pragma once
// Each takes (first, last, predicate) and returns the position of the first false element, or takes
// (range, predicate, projection = {}) and returns the false elements as a subrange. Iterators
// without random access are partitioned sequentially. Threads: any; several threads call the
// predicate at the same time. Errors, of both: one exception of the predicate or of a move, after
// all parts have ended; std::system_error with operation_canceled if a stop request left elements
// out. The range then has all its elements, in any order, unless a move threw.

#include <coppice/parallel/internal/partition_descriptions.hpp>
#include <coppice/parallel/on.hpp>

namespace coppice::parallel {

// Partitions without keeping the order. Cost: O(n); no allocation. Source: [alg.partitions].
inline constexpr internal::algorithm<internal::partition_description<internal::run_partition>>
    partition{};

// Partitions and keeps the order among the true elements, and among the false ones. Cost: O(n) with
// a buffer as large as the range; O(n log n) moves if there is no memory for it, or moves may
// throw. Source: [alg.partitions].
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
