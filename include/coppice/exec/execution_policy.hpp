// Execution policies for bulk: how much freedom the iterations have. Not those of <execution>.
#pragma once
// Source: [execpol].

#include <coppice/base/version.hpp>

#include <type_traits>

namespace coppice::execution {

// The types of seq, par, par_unseq, and unseq.
class sequenced_policy {
public:
    constexpr sequenced_policy() noexcept = default;
};
class parallel_policy {
public:
    constexpr parallel_policy() noexcept = default;
};
class parallel_unsequenced_policy {
public:
    constexpr parallel_unsequenced_policy() noexcept = default;
};
class unsequenced_policy {
public:
    constexpr unsequenced_policy() noexcept = default;
};

// In order on one thread; on several threads; interleaved on several; interleaved on one.
inline constexpr sequenced_policy seq{};
inline constexpr parallel_policy par{};
inline constexpr parallel_unsequenced_policy par_unseq{};
inline constexpr unsequenced_policy unseq{};

}  // namespace coppice::execution

namespace coppice {

// True if T is one of the four policies. Source: [execpol.type].
template <class T>
struct is_execution_policy : std::false_type {};
template <>
struct is_execution_policy<execution::sequenced_policy> : std::true_type {};
template <>
struct is_execution_policy<execution::parallel_policy> : std::true_type {};
template <>
struct is_execution_policy<execution::parallel_unsequenced_policy> : std::true_type {};
template <>
struct is_execution_policy<execution::unsequenced_policy> : std::true_type {};
// is_execution_policy as a value.
template <class T>
inline constexpr bool is_execution_policy_v = is_execution_policy<T>::value;

}  // namespace coppice
