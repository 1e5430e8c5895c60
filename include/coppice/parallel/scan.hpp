// inclusive_scan, exclusive_scan, transform_inclusive_scan, transform_exclusive_scan.
#pragma once
// Common to all. For each element, a scan writes the sum of init and the elements before it. An
// inclusive scan adds the element itself. op is associative; its operands keep their order. `out`
// is an iterator with enough space behind it, or a range, whose size limits how many elements are
// written. It may be the input itself.
//
// Returns the end of the output; for ranges, the ends of input and output, as std::ranges does.
// Threads: any; several threads call the functions at the same time. Errors: if functions throw,
// the exception of the first element among those that threw; std::system_error with
// operation_canceled if a stop request left elements out; std::bad_alloc. Some elements of the
// output are then not written. Cost: one call of op for each element while no other worker is idle.
// When another worker takes part, op and f are called up to twice for an element, and a few values
// are allocated. Source: [inclusive.scan], [exclusive.scan], [transform.inclusive.scan],
// [transform.exclusive.scan].

#include <coppice/parallel/internal/scan_engine.hpp>
#include <coppice/parallel/on.hpp>

namespace coppice::parallel {

// inclusive_scan(first, last, out, op = plus) and inclusive_scan(first, last, out, op, init). A
// range may replace (first, last).
inline constexpr internal::algorithm<internal::inclusive_scan_description> inclusive_scan{};
// exclusive_scan(first, last, out, init, op = plus). A range may replace (first, last).
inline constexpr internal::algorithm<internal::exclusive_scan_description> exclusive_scan{};
// transform_inclusive_scan(first, last, out, op, f) and (first, last, out, op, f, init) scan f(x)
// instead of each element x. A range may replace (first, last).
inline constexpr internal::algorithm<internal::transform_inclusive_scan_description>
    transform_inclusive_scan{};
// transform_exclusive_scan(first, last, out, init, op, f) scans f(x) instead of each element x. A
// range may replace (first, last).
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
