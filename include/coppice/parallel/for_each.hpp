// for_each, for_each_n: call a function for each element, side by side.
#pragma once

#include <coppice/parallel/internal/for_each_engine.hpp>
#include <coppice/parallel/on.hpp>

namespace coppice::parallel {

// for_each(first, last, f) and for_each(range, f), each with a projection behind f, call f for each
// element, in any order. Returns true; false if a stop request left elements out. Threads: any;
// several threads call f at the same time. Errors: the first exception of f in the order of the
// elements, of those that were thrown; further calls do not begin. Cost: no allocation; that of a
// plain loop while no other worker is idle. Source: [alg.foreach].
inline constexpr internal::algorithm<internal::for_each_description> for_each{};

// for_each_n(first, n, f) does so for n elements, and returns first + n. Errors: also
// std::system_error with operation_canceled if a stop request left elements out.
inline constexpr internal::algorithm<internal::for_each_n_description> for_each_n{};

namespace async {

inline constexpr internal::async_algorithm<internal::for_each_description> for_each{};
inline constexpr internal::async_algorithm<internal::for_each_n_description> for_each_n{};

}  // namespace async

}  // namespace coppice::parallel
