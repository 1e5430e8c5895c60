// find, find_if, find_if_not, any_of, all_of, none_of: searches that end at the first match.
#pragma once
// Common to all. The result is that of a sequential search: the first match, or the predicate's
// exception if the predicate throws before the first match. The predicate may also be called for
// elements behind that place. Threads: any; several threads call the predicate at the same time.
// Errors: that exception; std::system_error with operation_canceled if a stop request left out
// elements that the result depends on. Cost: no allocation; that of a plain loop while no other
// worker is idle.
//
// Each takes (first, last, predicate) or (range, predicate, projection = {}).

#include <coppice/parallel/internal/find_engine.hpp>
#include <coppice/parallel/internal/reduce_engine.hpp>
#include <coppice/parallel/on.hpp>

namespace coppice::parallel {

// find_if returns the position of the first element that satisfies the predicate, and find_if_not
// that of the first element that does not. find takes a value instead, and returns the position of
// the first element that equals it. All return the end if there is none. Source: [alg.find].
inline constexpr internal::algorithm<internal::find_if_description> find_if{};
inline constexpr internal::algorithm<internal::find_if_not_description> find_if_not{};
inline constexpr internal::algorithm<internal::with_value<internal::find_if_description>> find{};

// Return true if an element, all elements, or no element satisfies the predicate. Source:
// [alg.any.of], [alg.all.of], [alg.none.of].
inline constexpr internal::algorithm<internal::any_description<false, true>> any_of{};
inline constexpr internal::algorithm<internal::any_description<true, false>> all_of{};
inline constexpr internal::algorithm<internal::any_description<false, false>> none_of{};

namespace async {

inline constexpr internal::async_algorithm<internal::find_if_description> find_if{};
inline constexpr internal::async_algorithm<internal::find_if_not_description> find_if_not{};
inline constexpr internal::async_algorithm<internal::with_value<internal::find_if_description>>
    find{};
inline constexpr internal::async_algorithm<internal::any_description<false, true>> any_of{};
inline constexpr internal::async_algorithm<internal::any_description<true, false>> all_of{};
inline constexpr internal::async_algorithm<internal::any_description<false, false>> none_of{};

}  // namespace async

}  // namespace coppice::parallel
