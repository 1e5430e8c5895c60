// timer: waits on a context until a time has passed.
#pragma once

#include <coppice/base/clock.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/io/internal/wait_request.hpp>

namespace coppice::io {

// Waits for times. A wait that is stopped ends in the same turn of the loop or the next, and loses
// only the time.
// Threads: any thread may wait. Several waits at once count as several timers. Lifetime: the
// context must outlive the timer. Cost of a wait: O(1), no allocation, no system call of its own.
class timer {
public:
    // Makes a timer on `owner`'s loop. Cost: nothing until it waits.
    explicit timer(context& owner) noexcept : owner_(&owner) {}
    // Completes when `time` (nanoseconds) has passed, at most about 0.3 ms late because of the
    // wheel's tick. 0 or less: in the next turn. Errors: operation_canceled if the context is
    // destroyed.
    template <class Token = use_await_t>
    auto wait_for(internal::duration time, Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::wait_request>({*owner_, time}, static_cast<Token&&>(token));
    }
    // Waits likewise, until a time of the context's clock.
    template <class Token = use_await_t>
    auto wait_until(internal::time_point when, Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::wait_request>({*owner_, when}, static_cast<Token&&>(token));
    }

private:
    context* owner_;
};

}  // namespace coppice::io
