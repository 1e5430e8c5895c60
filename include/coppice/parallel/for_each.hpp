// for_each, for_each_n: call a function for each element, side by side.
#pragma once

#include <coppice/parallel/internal/for_each_engine.hpp>
#include <coppice/parallel/on.hpp>

namespace coppice::parallel {

// for_each(first, last, f) and for_each(range, f, projection = {}) call f for each element, in any
// order. Returns true, or false if a stop request left elements out. Threads: any; several threads
// call f at the same time. Errors: if calls of f throw, the exception of the first element among
// those that threw; calls that have not begun are left out. Cost: no allocation; that of a plain
// loop while no other worker is idle. Source: [alg.foreach].
inline constexpr internal::algorithm<internal::for_each_description> for_each{};

// for_each_n(first, n, f) calls f for n elements, and returns first + n. Threads and Cost: those of
// for_each. Errors: those of for_each, and std::system_error with operation_canceled if a stop
// request left elements out. Source: [alg.foreach].
inline constexpr internal::algorithm<internal::for_each_n_description> for_each_n{};

namespace async {

inline constexpr internal::async_algorithm<internal::for_each_description> for_each{};
inline constexpr internal::async_algorithm<internal::for_each_n_description> for_each_n{};

}  // namespace async

}  // namespace coppice::parallel
