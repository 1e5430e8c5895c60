// timer: waits for a time to pass, on a context.
#pragma once

#include <coppice/io/context.hpp>
#include <coppice/token/use_await.hpp>

#include <cerrno>
#include <coroutine>

namespace coppice::io {

// Ends when its time has come. Cost: O(1), no allocation, no system call of its own.
class [[nodiscard]] wait_operation final : timer_entry {
public:
    wait_operation(context& owner, duration time, await_errors errors) noexcept
        : timer_entry(&fire), owner_(&owner), time_(time), errors_(errors) {}
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> coroutine) noexcept {
        coroutine_ = coroutine;
        if (owner_->ending()) {
            result_ = -ECANCELED;
            return false;
        }
        const time_point now = monotonic_clock().now();
        // A wait for longer than a time_point can say is a wait for as long as it can say.
        owner_->arm(*this, time_ < time_point::max() - now ? now + time_ : time_point::max());
        return true;
    }
    void await_resume() const { errors_.report(result_, "wait_for"); }

private:
    static void fire(timer_entry* entry) noexcept {
        wait_operation* const self = static_cast<wait_operation*>(entry);
        if (self->owner_->ending()) self->result_ = -ECANCELED;
        self->coroutine_.resume();
    }
    context* owner_;
    duration time_;
    int result_ = 0;
    std::coroutine_handle<> coroutine_;
    await_errors errors_;
};

// Threads: the context's. Lifetime: the context outlives it.
class timer {
public:
    explicit timer(context& owner) noexcept : owner_(&owner) {}
    // Ends when `time` (nanoseconds; 0 or less: in the next turn) has passed, at most about 0.3 ms
    // late by the wheel's tick. Errors: operation_canceled when the context ends.
    wait_operation wait_for(duration time, await_errors errors = use_await) noexcept {
        return {*owner_, time, errors};
    }

private:
    context* owner_;
};

}  // namespace coppice::io
