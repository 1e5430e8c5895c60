// async_mutex: mutual exclusion for tasks; waiting blocks no thread.
#pragma once

#include <coppice/sync/internal/mutex_core.hpp>
#include <coppice/sync/internal/wait_initiation.hpp>

#include <optional>
#include <system_error>
#include <utility>

namespace coppice {

// A lock that is handed from holder to waiter, first come, first served. The holder may be any
// chain of code, on any thread: a task may lock it on one thread and unlock it on another.
//
// lock() completes with a guard. If a stop or a deadline ends it, the lock was not taken, and the
// waiter's place in the queue is gone in O(1). unlock() gives the lock to the oldest waiter before
// it returns; no third party can take it in between. The waiter continues on its own scheduler: in
// place, if the unlocking thread belongs to it, else through its queue. If the waiter has a
// deadline and the process cannot start the thread that watches deadlines, the wait fails at once
// with std::errc::resource_unavailable_try_again. The same holds for every wait of this room.
//
// Threads: any. Blocks: never, except for the few instructions that another thread needs to change
// the queue. Cost: lock and unlock without a waiter are one compare-and-swap each; no allocation.
// Lifetime: outlives its operations and guards. A thread that has locked it may unlock and destroy
// it, if no other thread uses it. Misuse: destroying it while an operation waits stops the process.
// Source: ours; the queue is that of folly's coro::Mutex, with waiters that can leave it.
class async_mutex : immovable {
public:
    class guard;

    constexpr async_mutex() noexcept = default;

    // Waits for the lock. Result: a guard that holds it. Errors: only a stop.
    template <class Token = use_await_t>
    [[nodiscard]] auto lock(Token&& token = Token());
    // Returns a guard if the lock is free, else nothing. Blocks: never.
    [[nodiscard]] std::optional<guard> try_lock() noexcept;

private:
    friend class guard;
    struct request;
    internal::mutex_core core_;
};

// Holds the lock, or nothing. Movable; unlocks in its destructor. Threads: one at a time.
class async_mutex::guard {
public:
    // Holds nothing.
    guard() noexcept = default;
    guard(guard&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
    // Unlocks what it held, at the end: a waiter that this resumes may assign to the same guard.
    guard& operator=(guard&& other) noexcept {
        guard before(std::move(other));
        std::swap(core_, before.core_);
        return *this;
    }
    ~guard() { unlock(); }

    // Unlocks, if it holds the lock; then it holds nothing. May resume waiters in place.
    void unlock() noexcept {
        if (core_ != nullptr) std::exchange(core_, nullptr)->unlock();
    }
    // Returns true if it holds the lock.
    explicit operator bool() const noexcept { return core_ != nullptr; }

private:
    friend class async_mutex;
    friend class async_condition;
    explicit guard(internal::mutex_core& core) noexcept : core_(&core) {}

    internal::mutex_core* core_ = nullptr;
};

struct async_mutex::request : internal::mutex_request {
    using result = guard;
    static constexpr const char* name = "async_mutex::lock";
    guard take() noexcept { return guard(*core); }
    guard nothing() noexcept { return guard(); }
};

template <class Token>
auto async_mutex::lock(Token&& token) {
    return internal::initiate_wait(request{{&core_}}, static_cast<Token&&>(token));
}

inline std::optional<async_mutex::guard> async_mutex::try_lock() noexcept {
    if (!core_.try_lock()) return std::nullopt;
    return guard(core_);
}

}  // namespace coppice
