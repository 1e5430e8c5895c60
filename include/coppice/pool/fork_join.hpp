// fork_join: plain functions in parallel on a pool, at almost the cost of calling them.
#pragma once
// On a worker, fork_join pushes all functions but the first to the worker's fork_deque, and calls
// the first. Then it calls those that were not stolen directly, in order. There is no coroutine, no
// allocation, and no ordered memory operation. On any other thread, a worker of the default pool
// (default_pool.hpp) makes the whole call while the caller waits; if that pool cannot be started,
// the caller calls all functions in order.
//
// Every function runs, whatever happens to the others. fork_join returns or throws when all have
// ended. It throws the exception of the first function that threw, in the order of the arguments.
//
// Stop: a function that takes an inplace_stop_token is given the one in force: that of the nearest
// fork_join(token, ...) around it, on whichever thread it runs. fork_join_stop_token() returns it.
// Work that a pool, a loop, or a group of contracts runs on the calling thread for its own purposes
// does not inherit it.
//
// Source: ours; measured against Lace, libfork, and oneTBB's parallel_invoke in benchmarks/pool.

#include <coppice/base/internal/fork_deque.hpp>
#include <coppice/pool/internal/fork_frame.hpp>
#include <coppice/stop/inplace.hpp>

#include <tuple>
#include <utility>

namespace coppice {

// Returns the stop token in force for the forked function that this thread runs. If there is none,
// returns a token that never stops. Threads: any.
inline inplace_stop_token fork_join_stop_token() noexcept {
    return internal::inherited_fork_token();
}

namespace internal {

template <class First, class... Rest>
std::tuple<forked_value_t<First>, forked_value_t<Rest>...> fork_first(First&& first,
                                                                      Rest&&... rest);

}  // namespace internal

// Calls all functions, possibly at the same time. Returns the tuple of their results, in order,
// with std::monostate for void. Threads: any; see above. Blocks: until all have ended. Errors: see
// above. Cost: two stores of an index and two of pointers for each function but the first, unless
// it is stolen. Lifetime: named functions are called in place; a temporary may be copied first, if
// it is trivially copyable.
template <internal::forkable... F>
[[gnu::always_inline]] inline std::tuple<internal::forked_value_t<F>...> fork_join(F&&... f) {
    if constexpr (sizeof...(F) == 0) {
        return {};
    } else if constexpr (sizeof...(F) == 1) {
        return std::tuple<internal::forked_value_t<F>...>(internal::forked_value(f)...);
    } else if constexpr (sizeof...(F) == 2) {
        return internal::fork_both(static_cast<F&&>(f)...);
    } else {
        return internal::fork_first(static_cast<F&&>(f)...);
    }
}
// Calls all functions likewise. `token` is in force for them and for what they fork.
template <internal::forkable... F>
std::tuple<internal::forked_value_t<F>...> fork_join(inplace_stop_token token, F&&... f) {
    const internal::fork_context stop(&token);
    return fork_join(static_cast<F&&>(f)...);
}

namespace internal {

// More than two functions: runs the first one beside all the others.
template <class First, class... Rest>
std::tuple<forked_value_t<First>, forked_value_t<Rest>...> fork_first(First&& first,
                                                                      Rest&&... rest) {
    auto [value, values] = fork_both(static_cast<First&&>(first), [&rest...] {
        return fork_join(static_cast<Rest&&>(rest)...);
    });
    return std::tuple_cat(
        std::tuple<forked_value_t<First>>(static_cast<forked_value_t<First>&&>(value)),
        std::move(values));
}

}  // namespace internal

}  // namespace coppice
