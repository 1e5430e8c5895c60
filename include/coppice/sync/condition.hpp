// async_condition: waits for a change of what an async_mutex guards; blocks no thread.
#pragma once

#include <coppice/base/internal/check.hpp>
#include <coppice/sync/internal/condition_core.hpp>
#include <coppice/sync/internal/wait_initiation.hpp>
#include <coppice/sync/mutex.hpp>

namespace coppice {

// A condition variable for tasks. A holder of the mutex waits for a notification: the mutex is
// unlocked meanwhile, and locked again when the wait ends.
//
//   async_mutex::guard guard = co_await mutex.lock();
//   while (queue.empty()) co_await changed.wait(guard);
//
// A notified waiter goes over to the queue of the mutex and is resumed with the lock, so
// notify_all() wakes no task that would only wait again. There are no spurious wake-ups, but
// another task may have used the lock in between: wait in a loop.
//
// The guard holds the lock again however wait() ends, also after a stop or a deadline. Such a wait
// ends when the mutex is free, and takes no notification from the others. A notification that came
// first counts: the wait then ends without an error.
//
// Threads: any; notify with the mutex locked or after unlocking it. Blocks: never, except for the
// few instructions that another thread needs to change the queue. Cost: notify without a waiter is
// one compare-and-swap; notify_all() is O(waiters); no allocation. Lifetime: outlives its
// operations; the mutex and the guard outlive the wait. Misuse: waiting with a guard that holds
// nothing, or destroying the condition while an operation waits, stops the process.
// Source: std::condition_variable_any; the queue of the mutex is POSIX's wait morphing.
class async_condition : immovable {
public:
    constexpr async_condition() noexcept = default;

    // Unlocks the guard's mutex and waits for a notification, as one step. Errors: only a stop. The
    // guard holds the lock in each case. While it waits, nothing else uses the guard.
    template <class Token = use_await_t>
    [[nodiscard]] auto wait(async_mutex::guard& guard, Token&& token = Token()) {
        COPPICE_CHECK(guard.core_ != nullptr,
                      "async_condition::wait got a guard that holds no lock: lock its mutex first");
        return internal::initiate_wait(request{{&core_, guard.core_}}, static_cast<Token&&>(token));
    }
    // Wake the oldest waiter, or all waiters. Do nothing if there is none. May resume waiters in
    // place.
    void notify_one() noexcept { core_.notify_one(); }
    void notify_all() noexcept { core_.notify_all(); }

private:
    struct request : internal::condition_request {
        static constexpr const char* name = "async_condition::wait";
    };
    internal::condition_core core_;
};

}  // namespace coppice
