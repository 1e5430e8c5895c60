// The rival inplace source: the published design, which today's sender libraries ship.
#pragma once
// Written from the paper's description (P3409R1, 6.1.1), for comparison. The source has a byte that
// is the spin lock and the flag, a doubly linked list, and the requester's thread id. The callback
// has a flag for its end and a pointer for its removal during its own run. 24 and 56 bytes. A
// waiter spins, then yields, and never sleeps.

#include <coppice/base/internal/atomic.hpp>

#include <cstdint>
#include <thread>
#include <utility>

namespace bench_stop::published {

using coppice::internal::acq_rel;
using coppice::internal::acquire;
using coppice::internal::atomic;
using coppice::internal::relaxed;
using coppice::internal::release;

class spin_wait {
public:
    void wait() noexcept {
        if (count_++ < 20) {
            coppice::internal::spin_hint();
        } else {
            std::this_thread::yield();
        }
    }

private:
    unsigned count_ = 0;
};

class source;

struct callback_base {
    using execute_function = void(callback_base*) noexcept;
    callback_base(const source* from, execute_function* run) noexcept
        : source_(from), execute(run) {}
    callback_base(const callback_base&) = delete;

    const source* source_;
    execute_function* execute;
    callback_base* next = nullptr;
    callback_base** previous = nullptr;
    bool* removed_during_callback = nullptr;
    atomic<bool> completed{false};
};

class source {
public:
    source() noexcept = default;
    source(const source&) = delete;

    bool stop_requested() const noexcept { return (state_.load(acquire) & requested) != 0; }

    bool request_stop() noexcept {
        if (!try_lock_unless_stopped(true)) return true;
        notifier_ = std::this_thread::get_id();
        while (callbacks_ != nullptr) {
            callback_base* const callback = callbacks_;
            callback->previous = nullptr;
            callbacks_ = callback->next;
            if (callbacks_ != nullptr) callbacks_->previous = &callbacks_;
            state_.store(requested, release);
            bool removed = false;
            callback->removed_during_callback = &removed;
            callback->execute(callback);
            if (!removed) {
                callback->removed_during_callback = nullptr;
                callback->completed.store(true, release);
            }
            lock();
        }
        state_.store(requested, release);
        return false;
    }

    bool try_add(callback_base* callback) const noexcept {
        if (!try_lock_unless_stopped(false)) return false;
        callback->next = callbacks_;
        callback->previous = &callbacks_;
        if (callbacks_ != nullptr) callbacks_->previous = &callback->next;
        callbacks_ = callback;
        unlock(0);
        return true;
    }

    void remove(callback_base* callback) const noexcept {
        const std::uint8_t before = lock();
        if (callback->previous != nullptr) {
            *callback->previous = callback->next;
            if (callback->next != nullptr) callback->next->previous = callback->previous;
            unlock(before);
            return;
        }
        const std::thread::id notifier = notifier_;
        unlock(before);
        if (std::this_thread::get_id() == notifier) {
            if (callback->removed_during_callback != nullptr) {
                *callback->removed_during_callback = true;
            }
            return;
        }
        spin_wait spin;
        while (!callback->completed.load(acquire)) spin.wait();
    }

private:
    static constexpr std::uint8_t requested = 1;
    static constexpr std::uint8_t locked = 2;

    std::uint8_t lock() const noexcept {
        spin_wait spin;
        std::uint8_t before = state_.load(relaxed);
        do {
            while ((before & locked) != 0) {
                spin.wait();
                before = state_.load(relaxed);
            }
        } while (!state_.compare_exchange_weak(before, static_cast<std::uint8_t>(before | locked),
                                               acquire, relaxed));
        return before;
    }
    void unlock(std::uint8_t before) const noexcept { state_.store(before, release); }

    bool try_lock_unless_stopped(bool request) const noexcept {
        spin_wait spin;
        std::uint8_t before = state_.load(relaxed);
        for (;;) {
            for (;;) {
                if ((before & requested) != 0) return false;
                if (before == 0) break;
                spin.wait();
                before = state_.load(relaxed);
            }
            const std::uint8_t after = request ? locked | requested : locked;
            if (state_.compare_exchange_weak(before, after, acq_rel, relaxed)) return true;
        }
    }

    mutable atomic<std::uint8_t> state_{0};
    mutable callback_base* callbacks_ = nullptr;
    std::thread::id notifier_;
};

template <class F>
class callback : callback_base {
public:
    callback(const source& from, F f) : callback_base(&from, &run), f_(std::move(f)) {
        if (!from.try_add(this)) {
            source_ = nullptr;
            run(this);
        }
    }
    ~callback() {
        if (source_ != nullptr) source_->remove(this);
    }

private:
    static void run(callback_base* self) noexcept { static_cast<callback*>(self)->f_(); }
    [[no_unique_address]] F f_;
};

}  // namespace bench_stop::published
