// Calls anything callable, including members, without <functional>; used by then, let, and others.
#pragma once

#include <coppice/base/internal/namespaces.hpp>

#include <type_traits>
#include <utility>

namespace coppice::execution::internal {

// Returns the object for a member pointer's first argument: an object, a reference_wrapper, or a
// pointer.
template <class Class, class Object>
constexpr decltype(auto) invoke_target(Object&& object) noexcept {
    using Plain = std::remove_cvref_t<Object>;
    if constexpr (std::is_base_of_v<Class, Plain>) {
        return static_cast<Object&&>(object);
    } else if constexpr (requires {
                             object.get();
                             typename Plain::type;
                         }) {
        return (object.get());
    } else {
        return *static_cast<Object&&>(object);
    }
}

// INVOKE of the standard, for a pointer to member.
template <class Class, class Member, class Object, class... Args>
constexpr decltype(auto) invoke_member(Member Class::* member, Object&& object, Args&&... args) {
    if constexpr (std::is_function_v<Member>) {
        return (invoke_target<Class>(static_cast<Object&&>(object)).*
                member)(static_cast<Args&&>(args)...);
    } else {
        return (invoke_target<Class>(static_cast<Object&&>(object)).*member);
    }
}

// As std::invoke: calls f(args...), or the member that f points to.
template <class F, class... Args>
constexpr std::invoke_result_t<F, Args...> invoke(F&& f, Args&&... args) noexcept(
    std::is_nothrow_invocable_v<F, Args...>) {
    if constexpr (std::is_member_pointer_v<std::decay_t<F>>) {
        return invoke_member(f, static_cast<Args&&>(args)...);
    } else {
        return static_cast<F&&>(f)(static_cast<Args&&>(args)...);
    }
}

}  // namespace coppice::execution::internal
