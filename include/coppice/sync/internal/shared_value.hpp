// shared_value: how receivers copy a value out of an object while other threads replace it.
#pragma once
// A copy inside a queue_lock must not throw, and must not take long. If copying T may throw, which
// includes all copies that allocate, the object keeps a shared pointer to the value. Then only the
// pointer is copied inside, and each receiver copies the value when it has left the lock.

#include <coppice/token/callback.hpp>

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace coppice::internal {

template <class T>
inline constexpr bool is_copied_inside = std::is_nothrow_copy_constructible_v<T>;

// What the object keeps; copying and moving it do not throw.
template <class T>
using shared_value = std::conditional_t<is_copied_inside<T>, T, std::shared_ptr<const T>>;

// Returns what the object keeps for `value`. Called outside the lock. Errors: std::bad_alloc. Cost:
// for a pointer, recycled memory.
template <class T>
shared_value<T> share_value(T&& value) {
    if constexpr (is_copied_inside<T>) {
        return std::move(value);
    } else {
        return std::allocate_shared<const T>(recycling_allocator<T>(), std::move(value));
    }
}
// Returns a copy of the value. Errors: what copying T throws.
template <class T>
T copy_of_value(shared_value<T>&& value) noexcept(is_copied_inside<T>) {
    if constexpr (is_copied_inside<T>) {
        return std::move(value);
    } else {
        return *value;
    }
}

template <class T>
inline constexpr bool can_be_shared =
    std::is_object_v<T> && !std::is_const_v<T> && std::is_copy_constructible_v<T> &&
    std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>;

}  // namespace coppice::internal
