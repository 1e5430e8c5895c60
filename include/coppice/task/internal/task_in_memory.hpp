// task_in_memory: whether compilers pass a task in memory or in a register.
#pragma once

#include <coppice/base/internal/namespaces.hpp>

#include <type_traits>

namespace coppice::execution::internal {

// Base class of a task. Its destructor is not trivial, so that every compiler passes a task in
// memory. This matters where the library takes or returns tasks, because a program may be built
// with either compiler. The library has no tasks of numbers. clang passes those in a register,
// which saves a seventh of the instructions of a call.
template <class T>
struct task_in_memory {
    ~task_in_memory() {}  // not `= default`, which would be trivial
};
template <class T>
    requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
struct task_in_memory<T> {};

}  // namespace coppice::execution::internal
