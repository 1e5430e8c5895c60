// async_semaphore: a number of permits for tasks; waiting blocks no thread.
#pragma once

#include <coppice/sync/internal/semaphore_core.hpp>
#include <coppice/sync/internal/wait_initiation.hpp>

#include <cstddef>
#include <optional>
#include <utility>

namespace coppice {

// Limits how many holders do something at once, for example how many requests are in flight.
//
// acquire(n) completes with a permit, which gives the n back in its destructor. Requests are served
// first come, first served: a request for many permits is not overtaken by later ones for few. If a
// stop or a deadline ends acquire(), no permit was taken, and the requests behind it go on.
// release() grants waiters before it returns. A waiter continues on its own scheduler: in place, if
// the releasing thread belongs to it, else through its queue.
//
// Threads: any. Blocks: never, except for the few instructions that another thread needs to change
// the queue. Cost: acquire and release without a waiter are one compare-and-swap each; no
// allocation. Lifetime: outlives its operations and permits. The thread that was granted the last
// permit may destroy it, if no other thread uses it. Misuse: destroying it while an operation
// waits, or more than 2^61 - 1 permits, stops the process. Source: ours.
class async_semaphore : immovable {
public:
    class permit;

    // Makes a semaphore with `permits` free permits; it may be given more later.
    constexpr explicit async_semaphore(std::size_t permits) noexcept : core_(permits) {}

    // Waits for n permits at once. Result: a permit that holds them. Errors: only a stop. A
    // request for 0 waits until the requests before it are served. A request for more permits than
    // there will ever be waits until it is stopped, and so do the requests behind it.
    template <class Token = use_await_t>
    [[nodiscard]] auto acquire(std::size_t n = 1, Token&& token = Token());
    // Returns a permit if n are free and no request waits, else nothing. Never waits.
    [[nodiscard]] std::optional<permit> try_acquire(std::size_t n = 1) noexcept;
    // Adds n permits, whether or not they were acquired before. May resume waiters in place.
    void release(std::size_t n = 1) noexcept { core_.release(n); }
    // Returns the number of free permits. May be stale.
    std::size_t available() const noexcept { return core_.available(); }

private:
    struct request;
    internal::semaphore_core core_;
};

// Holds permits, or nothing. Movable; gives them back in its destructor. Threads: one at a time.
class async_semaphore::permit {
public:
    // Holds nothing.
    permit() noexcept = default;
    permit(permit&& other) noexcept
        : core_(std::exchange(other.core_, nullptr)), count_(std::exchange(other.count_, 0)) {}
    // Releases what it held, at the end: a waiter that this resumes may assign to the same permit.
    permit& operator=(permit&& other) noexcept {
        permit before(std::move(other));
        std::swap(core_, before.core_);
        std::swap(count_, before.count_);
        return *this;
    }
    ~permit() { release(); }

    // Gives the permits back, if it holds some; then it holds nothing. May resume waiters in place.
    void release() noexcept {
        if (core_ != nullptr) std::exchange(core_, nullptr)->release(std::exchange(count_, 0));
    }
    // Keeps the permits taken; then it holds nothing. async_semaphore::release() gives them back.
    void forget() noexcept {
        core_ = nullptr;
        count_ = 0;
    }
    // Returns how many permits it holds.
    std::size_t count() const noexcept { return count_; }
    // Returns true if it holds what an acquire() has given it.
    explicit operator bool() const noexcept { return core_ != nullptr; }

private:
    friend class async_semaphore;
    permit(internal::semaphore_core& core, std::size_t n) noexcept : core_(&core), count_(n) {}

    internal::semaphore_core* core_ = nullptr;
    std::size_t count_ = 0;
};

struct async_semaphore::request : internal::semaphore_request {
    using result = permit;
    static constexpr const char* name = "async_semaphore::acquire";
    permit take() noexcept { return permit(*core, permits); }
    permit nothing() noexcept { return permit(); }
};

template <class Token>
auto async_semaphore::acquire(std::size_t n, Token&& token) {
    return internal::initiate_wait(request{{&core_, n}}, static_cast<Token&&>(token));
}

inline std::optional<async_semaphore::permit> async_semaphore::try_acquire(std::size_t n) noexcept {
    if (!core_.try_acquire(n)) return std::nullopt;
    return permit(core_, n);
}

}  // namespace coppice
