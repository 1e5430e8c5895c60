// pool_timer: a timer of a pool, embedded in the operation that waits; also the item that ends it.
#pragma once

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/timer_wheel.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/pool/internal/work_item.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace coppice::internal {

class timer_shard;

// The phases are numbers, because the model checker's plain<> does not take an enumeration.
struct timer_phase {
    static constexpr int idle = 0;
    static constexpr int armed = 1;
    static constexpr int ended = 2;
};

// While it lives, its thread gives a notice of a timer, and so runs the stop callbacks of users.
// The destructor of the pool would wait for that thread, so it must not run inside.
class notice_scope : immovable {
public:
    // `timers` stands for the pool.
    explicit notice_scope(const void* timers) noexcept
        : timers_(timers), outer_(std::exchange(innermost(), this)) {}
    ~notice_scope() { innermost() = outer_; }

    // Returns true if this thread gives a notice of a timer of that pool.
    static bool is_inside(const void* timers) noexcept {
        for (const notice_scope* each = innermost(); each != nullptr; each = each->outer_) {
            if (each->timers_ == timers) return true;
        }
        return false;
    }

private:
    static notice_scope*& innermost() noexcept {
        return thread_slot<notice_scope, notice_scope*>();
    }

    const void* const timers_;
    notice_scope* const outer_;
};

// The item runs once, after the timer has ended. Lifetime: until then.
struct [[gnu::visibility("default")]] pool_timer : timer_entry, work_item {
    static constexpr std::size_t any_node = ~std::size_t{0};

    explicit pool_timer(void (*function)(work_item*) noexcept, std::size_t home) noexcept
        : timer_entry(nullptr), work_item(function), node(home) {}

    // Gives the receiver's notice that the time has come, or that the pool ends, on any thread,
    // before the item is enqueued; nullptr if there is none, or if it was given. Set before it is
    // armed.
    void (*tell)(pool_timer& timer) noexcept = nullptr;
    const std::size_t node;        // whose workers run the item; any_node: any worker
    timer_shard* shard = nullptr;  // its wheel; set before it can be stopped
    std::uint64_t due = 0;         // the tick; set before it is armed
    std::uint64_t number = 0;      // the order of arming in its wheel; set under the lock
    plain<int> phase{0};           // guarded by the lock of the wheel
    plain<bool> stopped{false};    // guarded by the lock until the item runs: a stop ended it

    // Returns true if a receiver still wants the notice.
    bool wants_notice() const noexcept { return tell != nullptr; }
    // Called by the thread that has ended it, for another reason than a stop request.
    void give_notice() noexcept {
        if (tell == nullptr) return;
        const auto once = tell;
        tell = nullptr;
        once(*this);
    }
};

}  // namespace coppice::internal
