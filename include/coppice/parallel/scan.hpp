// inclusive_scan, exclusive_scan, transform_inclusive_scan, transform_exclusive_scan.
#pragma once
// Common to all. A scan writes the sum of the elements up to each element: with it (inclusive) or
// without it (exclusive), and with init. op is associative; its operands keep their order. `out` is
// an iterator with enough space behind it, or a range, whose size limits how many elements are
// written. It may be the input itself.
//
// Returns the position behind the output; of ranges, both positions, as in std::ranges. Threads:
// any; several threads call the functions at the same time. Errors: the first exception in the
// order of the elements, of those that were thrown; std::system_error with operation_canceled if a
// stop request left elements out; std::bad_alloc. Cost: one call of op for each element while no
// other worker is idle, otherwise two, and two of f; an allocation of some values if another worker
// takes part. Source: [inclusive.scan], [exclusive.scan], [transform.inclusive.scan],
// [transform.exclusive.scan].

#include <coppice/parallel/internal/scan_engine.hpp>
#include <coppice/parallel/on.hpp>

namespace coppice::parallel {

// inclusive_scan(first, last, out, op = plus), and with (op, init); the same of (range, out).
inline constexpr internal::algorithm<internal::inclusive_scan_description> inclusive_scan{};
// exclusive_scan(first, last, out, init, op = plus); the same of (range, out).
inline constexpr internal::algorithm<internal::exclusive_scan_description> exclusive_scan{};
// transform_inclusive_scan(first, last, out, op, f), and with (op, f, init); of (range, out). Scans
// f of the elements.
inline constexpr internal::algorithm<internal::transform_inclusive_scan_description>
    transform_inclusive_scan{};
// transform_exclusive_scan(first, last, out, init, op, f); the same of (range, out).
inline constexpr internal::algorithm<internal::transform_exclusive_scan_description>
    transform_exclusive_scan{};

namespace async {

inline constexpr internal::async_algorithm<internal::inclusive_scan_description> inclusive_scan{};
inline constexpr internal::async_algorithm<internal::exclusive_scan_description> exclusive_scan{};
inline constexpr internal::async_algorithm<internal::transform_inclusive_scan_description>
    transform_inclusive_scan{};
inline constexpr internal::async_algorithm<internal::transform_exclusive_scan_description>
    transform_exclusive_scan{};

}  // namespace async

}  // namespace coppice::parallel
