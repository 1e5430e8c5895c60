// watch_core: the value of a watch, its version, and the waiters for the next one.
#pragma once
// The state of the word is the version: how often the value was set. Each waiter waits for any
// version except the one it has seen, so each change grants all waiters.
// Model: tests/model/watch_model.cpp.

#include <coppice/base/lifetime.hpp>
#include <coppice/sync/internal/waiter.hpp>

#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

namespace coppice::internal {

struct watch_waiter : waiter {
    using waiter::waiter;
    std::uint64_t* version = nullptr;  // points into its request
};

// Value is copied and moved inside the lock, without exceptions.
template <class Value>
class watch_core : immovable {
public:
    explicit watch_core(Value&& value) noexcept : value_(std::move(value)) {}

    std::uint64_t version() const noexcept { return lock_.look() / queue_lock::unit; }
    Value get() const noexcept {
        lock_.lock();
        std::optional<Value> copy(value_);
        lock_.unlock();
        return std::move(*copy);
    }
    void set(Value&& value) noexcept {
        std::optional<Value> old;  // destroyed when the lock is left
        granted_waiters others;
        lock_.lock();
        old.emplace(std::move(*value_));
        value_.emplace(std::move(value));
        lock_.set_state(lock_.state() + queue_lock::unit);
        while (watch_waiter* const w = waiters_.claim_front()) {
            *w->version = lock_.state() / queue_lock::unit;
            others.add(*w);
            if (planted("watch.wake_one")) break;
        }
        lock_.unlock();  // the watch may be gone
        others.call_all();
    }

    queue_lock& queue() noexcept { return lock_; }
    // The functions below require the lock of the queue.
    std::uint64_t version_inside() const noexcept { return lock_.state() / queue_lock::unit; }
    void link(watch_waiter& w) noexcept { waiters_.push_back(w); }
    void unlink(watch_waiter& w) noexcept { waiters_.erase(w); }

private:
    mutable queue_lock lock_{0};
    std::optional<Value> value_;
    waiter_queue<watch_waiter> waiters_;
};

template <class Value>
struct watch_request {
    using waiter_type = watch_waiter;
    using result = std::uint64_t;
    static constexpr const char* name = "watch::changed";

    watch_request(watch_core<Value>& watched, std::uint64_t seen_version) noexcept
        : core(&watched), seen(seen_version), version(seen_version) {}

    queue_lock& lock() noexcept { return core->queue(); }
    bool try_now() noexcept { return is_new(core->version()); }
    bool attempt(granted_waiters&) noexcept { return is_new(core->version_inside()); }
    void link(waiter_type& w) noexcept {
        w.version = &version;
        core->link(w);
    }
    void unlink(waiter_type& w, granted_waiters&) noexcept { core->unlink(w); }
    static std::error_code error() noexcept { return {}; }
    result take() const noexcept { return version; }
    result nothing() const noexcept { return seen; }

    watch_core<Value>* core;
    std::uint64_t seen;
    std::uint64_t version;

private:
    bool is_new(std::uint64_t now) noexcept {
        version = now;
        return now != seen;
    }
};

}  // namespace coppice::internal
