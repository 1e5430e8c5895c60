// watch: the latest value of something, for tasks that want to know when it changes.
#pragma once

#include <coppice/sync/internal/shared_value.hpp>
#include <coppice/sync/internal/wait_initiation.hpp>
#include <coppice/sync/internal/watch_core.hpp>

#include <cstdint>
#include <utility>

namespace coppice {

// Holds one value, for example a configuration. Its version counts how often the value was set, and
// is 0 at first. A task reads the version, uses the value, and then waits in changed() until the
// version is another one. It may miss values in between, but never the latest one:
//
//   std::uint64_t seen = w.version();
//   for (;;) {
//       use(w.get());                          // at least as new as `seen`
//       seen = co_await w.changed(seen);
//   }
//
// A waiter continues on its own scheduler, as after async_mutex::lock().
//
// Threads: any. Blocks: never, except for the few instructions that another thread needs to change
// the value. Cost: get() is two locked instructions and a copy, set() is two and O(waiters),
// version() is a load. If copying T may throw, the value lies in shared memory that is used again,
// and get() copies it outside the lock; otherwise inside. No allocation in steady state, besides
// those of T. T: copyable; moving and destroying it must not throw. It is moved, and copied if that
// cannot throw, while the watch is locked, so neither may use the same watch. Lifetime: outlives
// its operations. Misuse: destroying it while an operation waits stops the process. Source: ours;
// tokio's watch.
template <class T>
class watch : immovable {
    static_assert(internal::can_be_shared<T>, "the value is copied, and a move must not throw");
    using stored_type = internal::shared_value<T>;

public:
    using value_type = T;

    // Holds `value`, as version 0. Errors: std::bad_alloc, if copying T may throw.
    explicit watch(T value) : core_(internal::share_value<T>(std::move(value))) {}

    // Replaces the value, and completes all waiting changed(). Errors: std::bad_alloc, if copying T
    // may throw; then nothing has changed. May resume waiters in place.
    void set(T value) { core_.set(internal::share_value<T>(std::move(value))); }
    // Returns a copy of the value. Errors: what copying T throws.
    T get() const { return internal::copy_of_value<T>(core_.get()); }
    // Waits until the version is not `seen`, which version() or changed() has returned. Result: the
    // version; get() then returns that value or a later one. Errors: only a stop.
    template <class Token = use_await_t>
    [[nodiscard]] auto changed(std::uint64_t seen, Token&& token = Token()) {
        return internal::initiate_wait(internal::watch_request<stored_type>(core_, seen),
                                       static_cast<Token&&>(token));
    }
    // Returns how often the value was set. get() then returns that value or a later one.
    std::uint64_t version() const noexcept { return core_.version(); }

private:
    internal::watch_core<stored_type> core_;
};

}  // namespace coppice
