// async_event, async_auto_event: signals between tasks; waiting blocks no thread.
#pragma once

#include <coppice/sync/internal/event_core.hpp>
#include <coppice/sync/internal/wait_initiation.hpp>

namespace coppice {

// A flag that tasks wait for. set() lets all waiters go on, and later waits complete at once, until
// reset(). What a thread did before set() is visible after the wait.
//
// If a stop or a deadline ends a wait, the other waiters stay. A waiter continues on its own
// scheduler: in place, if the thread that sets belongs to it, else through its queue.
//
// Threads: any. Blocks: never, except for the few instructions that another thread needs to change
// the queue. Cost: wait() on a set event is one load, set() without a waiter is one
// compare-and-swap; set() with waiters is O(waiters); no allocation. Lifetime: outlives its
// operations. A thread that has waited may destroy it, if no other thread uses it, even
// while set() is about to return. Misuse: destroying it while an operation waits stops the process.
// Source: ours.
class async_event : immovable {
public:
    // Makes an event that is set, or not.
    constexpr explicit async_event(bool set = false) noexcept : core_(set) {}

    // Waits until the event is set. Errors: only a stop.
    template <class Token = use_await_t>
    [[nodiscard]] auto wait(Token&& token = Token()) {
        return internal::initiate_wait(request{{&core_}}, static_cast<Token&&>(token));
    }
    // Sets the event, and resumes all waiters, oldest first, perhaps in place. Returns false if it
    // was set already.
    bool set() noexcept { return core_.set(); }
    // Resets the event: later waits wait for the next set().
    void reset() noexcept { core_.reset(); }
    // Returns true if the event is set. What was done before set() is visible then.
    bool is_set() const noexcept { return core_.is_set(); }

private:
    struct request : internal::event_request {
        static constexpr const char* name = "async_event::wait";
    };
    internal::event_core core_;
};

// An event that lets one waiter go on for each set(). If no task waits, the set() is remembered for
// the next wait, once: a second set() before that wait adds nothing. What a thread did before set()
// is visible after the wait.
//
// A set() is never lost to a wait that a stop or a deadline ends: it goes to the next waiter.
// Threads, Blocks, Lifetime, Misuse: as async_event. Cost: wait() and set() without a waiter are
// one compare-and-swap each; no allocation. Source: ours.
class async_auto_event : immovable {
public:
    // Makes an event. `set`: it is set, so the first wait() takes that.
    constexpr explicit async_auto_event(bool set = false) noexcept : core_(set) {}

    // Waits for a set() that no other wait has taken. Errors: only a stop.
    template <class Token = use_await_t>
    [[nodiscard]] auto wait(Token&& token = Token()) {
        return internal::initiate_wait(request{{&core_}}, static_cast<Token&&>(token));
    }
    // Takes a remembered set(). Returns false if there is none. Never waits.
    bool try_wait() noexcept { return core_.try_wait(); }
    // Resumes the oldest waiter, perhaps in place; without a waiter, is remembered once.
    void set() noexcept { core_.set(); }

private:
    struct request : internal::auto_event_request {
        static constexpr const char* name = "async_auto_event::wait";
    };
    internal::auto_event_core core_;
};

}  // namespace coppice
