// find, find_if, any_of, all_of, none_of: searches that end early, at the first match in order.
#pragma once
// Common to all. The result is that of the search in order: the first match; and the exception of
// the predicate if the predicate throws before the first match. Elements behind that may have been
// looked at too. Threads: any; several threads call the predicate at the same time. Errors: also
// std::system_error with operation_canceled if a stop request left out what the result depends on.
// Cost: no allocation; that of a plain loop while no other worker is idle.
//
// Each takes (first, last, predicate) or (range, predicate), with a projection behind it.

#include <coppice/parallel/internal/find_engine.hpp>
#include <coppice/parallel/internal/reduce_engine.hpp>
#include <coppice/parallel/on.hpp>

namespace coppice::parallel {

// Return the position of the first element that satisfies the predicate, or equals the value, and
// the end if there is none. Source: [alg.find].
inline constexpr internal::algorithm<internal::find_if_description> find_if{};
inline constexpr internal::algorithm<internal::with_value<internal::find_if_description>> find{};

// Return true if an element, all elements, or no element satisfies the predicate. Source:
// [alg.any.of], [alg.all.of], [alg.none.of].
inline constexpr internal::algorithm<internal::any_description<false, true>> any_of{};
inline constexpr internal::algorithm<internal::any_description<true, false>> all_of{};
inline constexpr internal::algorithm<internal::any_description<false, false>> none_of{};

namespace async {

inline constexpr internal::async_algorithm<internal::find_if_description> find_if{};
inline constexpr internal::async_algorithm<internal::with_value<internal::find_if_description>>
    find{};
inline constexpr internal::async_algorithm<internal::any_description<false, true>> any_of{};
inline constexpr internal::async_algorithm<internal::any_description<true, false>> all_of{};
inline constexpr internal::async_algorithm<internal::any_description<false, false>> none_of{};

}  // namespace async

}  // namespace coppice::parallel
