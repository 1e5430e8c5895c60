// Allocates operations that outlive their caller: chooses the allocator, and applies it.
#pragma once
// For spawn, spawn_future, split, and others that keep a state of their own.

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/queries.hpp>

#include <cstddef>
#include <memory>

namespace coppice::execution::internal {

// Returns the environment's allocator, else the sender's, else std::allocator. spawned_env()
// returns an environment that names that allocator.
template <class Wrapped, class Env>
constexpr auto choose_allocator(const Wrapped& wrapped, const Env& env) noexcept {
    if constexpr (callable<get_allocator_t, const Env&>) {
        return get_allocator(env);
    } else if constexpr (callable<get_allocator_t, env_of_t<const Wrapped&>>) {
        return get_allocator(execution::get_env(wrapped));
    } else {
        return std::allocator<std::byte>();
    }
}
template <class Wrapped, class Env>
constexpr auto spawned_env(const Wrapped& wrapped, Env env) {
    if constexpr (!callable<get_allocator_t, const Env&> &&
                  callable<get_allocator_t, env_of_t<const Wrapped&>>) {
        return execution::env(prop(get_allocator, get_allocator(execution::get_env(wrapped))),
                              static_cast<Env&&>(env));
    } else {
        return env;
    }
}

// Destroys and frees an object that was allocated with a copy of `allocator`.
template <class Allocator, class T>
void delete_with(Allocator allocator, T* object) noexcept {
    using traits = typename std::allocator_traits<Allocator>::template rebind_traits<T>;
    typename traits::allocator_type rebound(allocator);
    traits::destroy(rebound, object);
    traits::deallocate(rebound, object, 1);
}
template <class T, class Allocator, class... Args>
T* new_with(Allocator allocator, Args&&... args) {
    using traits = typename std::allocator_traits<Allocator>::template rebind_traits<T>;
    typename traits::allocator_type rebound(allocator);
    T* const memory = traits::allocate(rebound, 1);
    scope_exit free([&rebound, memory] { traits::deallocate(rebound, memory, 1); });
    traits::construct(rebound, memory, static_cast<Args&&>(args)...);
    free.dismiss();
    return memory;
}

}  // namespace coppice::execution::internal
