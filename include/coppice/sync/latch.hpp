// async_latch: a count that reaches zero once; waiting blocks no thread.
#pragma once

#include <coppice/sync/internal/latch_core.hpp>
#include <coppice/sync/internal/wait_initiation.hpp>

#include <cstddef>

namespace coppice {

// Lets tasks wait until n things have happened. What a thread did before it counted down is visible
// after the wait. It counts to zero once, and stays there.
//
// If a stop or a deadline ends a wait, the other waiters stay. An arrive_and_wait() that ends so
// has counted all the same, also if the stop was requested before it began; otherwise the others
// would wait forever. A waiter continues on its own scheduler: in place, if the thread that counted
// last belongs to it, else through its queue.
//
// Threads: any. Blocks: never, except for the few instructions that another thread needs to change
// the queue. Cost: wait() at zero is one load; count_down() is one compare-and-swap, unless it
// resumes waiters, which is O(waiters); no allocation. Lifetime: outlives its operations. A waiter
// may destroy it, if no other operation is pending, also while count_down() is about to return.
// Misuse: destroying it while an operation waits, or counting below zero, stops the process.
// Source: std::latch.
class async_latch : immovable {
public:
    // Makes a latch that opens after `count` arrivals. Range: 0 to 2^61 - 1.
    constexpr explicit async_latch(std::size_t count) noexcept : core_(count) {}

    // Counts down by n. At zero, resumes all waiters, oldest first, perhaps in place.
    void count_down(std::size_t n = 1) noexcept { core_.count_down(n); }
    // Returns true if the count is zero. What the counting threads did before is visible then.
    bool try_wait() const noexcept { return core_.is_zero(); }
    // Waits until the count is zero. Errors: only a stop.
    template <class Token = use_await_t>
    [[nodiscard]] auto wait(Token&& token = Token()) {
        return internal::initiate_wait(request{{&core_}}, static_cast<Token&&>(token));
    }
    // Counts down by one when it begins, and waits until the count is zero. Errors: only a stop.
    template <class Token = use_await_t>
    [[nodiscard]] auto arrive_and_wait(Token&& token = Token()) {
        return internal::initiate_wait(arrival{{{&core_}}}, static_cast<Token&&>(token));
    }

private:
    struct request : internal::latch_request {
        static constexpr const char* name = "async_latch::wait";
    };
    struct arrival : internal::latch_arrival {
        static constexpr const char* name = "async_latch::arrive_and_wait";
    };
    internal::latch_core core_;
};

}  // namespace coppice
