// async_shared_mutex: one writer or many readers; waiting blocks no thread.
#pragma once

#include <coppice/sync/internal/shared_mutex_core.hpp>
#include <coppice/sync/internal/wait_initiation.hpp>

#include <optional>
#include <utility>

namespace coppice {

// A lock that one writer holds alone, or any number of readers hold together. The holder may be any
// chain of code, on any thread.
//
// Readers and writers wait in one queue, first come, first served: a waiting writer goes before the
// readers that come after it. If a stop or a deadline ends a wait, the lock was not taken, and the
// readers behind a writer that left go on. A waiter continues on its own scheduler: in place, if
// the unlocking thread belongs to it, else through its queue.
//
// A reader that waits for a second shared lock, behind a writer that waits for the first one, waits
// forever. Nothing upgrades a shared lock.
//
// Threads: any. Blocks: never, except for the few instructions that another thread needs to change
// the queue. Cost: lock and unlock without a waiter are one compare-and-swap each; readers share
// its cache line; no allocation. Lifetime: outlives its operations and guards. The writer that
// holds it may unlock and destroy it, if no other thread uses it. Misuse: destroying it while an
// operation waits stops the process. Source: ours.
class async_shared_mutex : immovable {
    template <internal::lock_kind Kind>
    class basic_guard;
    template <internal::lock_kind Kind>
    struct request;

public:
    // Guards that hold the lock: a guard alone, a shared_guard together with other readers. See
    // basic_guard.
    using guard = basic_guard<internal::lock_kind::exclusive>;
    using shared_guard = basic_guard<internal::lock_kind::shared>;

    constexpr async_shared_mutex() noexcept = default;

    // Waits until the lock is free. Result: a guard that holds it. Errors: only a stop.
    template <class Token = use_await_t>
    [[nodiscard]] auto lock(Token&& token = Token());
    // Waits until no writer holds the lock. Result: a shared_guard. Errors: only a stop.
    template <class Token = use_await_t>
    [[nodiscard]] auto lock_shared(Token&& token = Token());
    // Return a guard if the lock may be taken now and no operation waits, else nothing. Never wait.
    [[nodiscard]] std::optional<guard> try_lock() noexcept;
    [[nodiscard]] std::optional<shared_guard> try_lock_shared() noexcept;

private:
    internal::shared_mutex_core core_;
};

// Holds the lock, or nothing. Movable; unlocks in its destructor. Threads: one at a time.
template <internal::lock_kind Kind>
class async_shared_mutex::basic_guard {
public:
    // Holds nothing.
    basic_guard() noexcept = default;
    basic_guard(basic_guard&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
    // Unlocks what it held, at the end: a waiter that this resumes may assign to the same guard.
    basic_guard& operator=(basic_guard&& other) noexcept {
        basic_guard before(std::move(other));
        std::swap(core_, before.core_);
        return *this;
    }
    ~basic_guard() { unlock(); }

    // Unlocks, if it holds the lock; then it holds nothing. May resume waiters in place.
    void unlock() noexcept {
        if (core_ == nullptr) return;
        internal::shared_mutex_core& core = *std::exchange(core_, nullptr);
        if constexpr (Kind == internal::lock_kind::exclusive) {
            core.unlock();
        } else {
            core.unlock_shared();
        }
    }
    // Returns true if it holds the lock.
    explicit operator bool() const noexcept { return core_ != nullptr; }

private:
    friend class async_shared_mutex;
    explicit basic_guard(internal::shared_mutex_core& core) noexcept : core_(&core) {}

    internal::shared_mutex_core* core_ = nullptr;
};

template <internal::lock_kind Kind>
struct async_shared_mutex::request : internal::shared_mutex_request<Kind> {
    using result = basic_guard<Kind>;
    static constexpr const char* name = Kind == internal::lock_kind::exclusive
                                            ? "async_shared_mutex::lock"
                                            : "async_shared_mutex::lock_shared";
    result take() noexcept { return result(*this->core); }
    result nothing() noexcept { return result(); }
};

template <class Token>
auto async_shared_mutex::lock(Token&& token) {
    return internal::initiate_wait(request<internal::lock_kind::exclusive>{{&core_}},
                                   static_cast<Token&&>(token));
}

template <class Token>
auto async_shared_mutex::lock_shared(Token&& token) {
    return internal::initiate_wait(request<internal::lock_kind::shared>{{&core_}},
                                   static_cast<Token&&>(token));
}

inline std::optional<async_shared_mutex::guard> async_shared_mutex::try_lock() noexcept {
    if (!core_.try_lock(internal::lock_kind::exclusive)) return std::nullopt;
    return guard(core_);
}

inline std::optional<async_shared_mutex::shared_guard>
async_shared_mutex::try_lock_shared() noexcept {
    if (!core_.try_lock(internal::lock_kind::shared)) return std::nullopt;
    return shared_guard(core_);
}

}  // namespace coppice
