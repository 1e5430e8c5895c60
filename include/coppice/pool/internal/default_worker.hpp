// default_worker: moves a call to a worker of the default pool if its caller is not a worker.
#pragma once
// fork_join, the loops, and the algorithms of room parallel need a worker to fork on. Called on any
// other thread, they let a worker of the default pool make the whole call, and wait. It inherits
// the stop token of the fork_join around the caller. If the pool cannot be started, the call runs
// on the caller, in order.

#include <coppice/base/internal/fork_deque.hpp>
#include <coppice/pool/internal/blocking_call.hpp>
#include <coppice/pool/internal/work_item.hpp>

#include <type_traits>
#include <utility>

namespace coppice::internal {

// Disables the move for this thread during its lifetime: unless the thread is a worker, its forks
// run on it sequentially.
class in_order_here : immovable {
public:
    in_order_here() noexcept : outer_(std::exchange(active(), true)) {}
    ~in_order_here() { active() = outer_; }
    static bool& active() noexcept { return thread_slot<in_order_here, bool>(); }

private:
    const bool outer_;
};

// Returns true if a call on this thread should move to the default pool to fork.
inline bool should_move() noexcept {
    return fork_deque::current() == nullptr && !in_order_here::active();
}

// Submits an item to the default pool, and starts the pool if necessary. Returns false if the
// system has no threads for the pool, or if the pool was told to end.
[[nodiscard]] bool submit_to_default_pool(work_item& item) noexcept;
// Submits an item to the pool of this worker. Uses the default pool if this thread is not a worker,
// or if its pool rejects the item. Returns the same.
[[nodiscard]] bool submit_to_nearest_pool(work_item& item) noexcept;

// Calls f on a worker of the default pool, and waits.
template <class F>
[[gnu::noinline, gnu::cold]] std::invoke_result_t<F&> call_on_default_pool(F& f) {
    auto inside = [&f, context = fork_context::current()]() -> std::invoke_result_t<F&> {
        const fork_context inherited(context);
        return f();
    };
    function_call<decltype(inside)> call(inside);
    if (submit_to_default_pool(call)) return call.join();
    const in_order_here here;
    return f();
}

// Calls f here if this thread is a worker, or may not move; otherwise on the default pool.
template <class F>
[[gnu::always_inline]] inline std::invoke_result_t<F&> call_on_worker(F&& f) {
    if (should_move()) [[unlikely]]
        return call_on_default_pool(f);
    return f();
}

}  // namespace coppice::internal
