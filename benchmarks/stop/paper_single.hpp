// The rival single source: P3409R1's Appendix B, operation by operation.
#pragma once
// Written from the appendix for comparison only: it uses freed memory if a callback destroys the
// source. It has a pointer and a thread id, an acquiring load before the compare-exchange, and the
// library's wait and notify.

#include <coppice/base/internal/atomic.hpp>

#include <thread>
#include <utility>

namespace bench_stop::paper {

using coppice::internal::acq_rel;
using coppice::internal::acquire;
using coppice::internal::atomic;
using coppice::internal::relaxed;
using coppice::internal::release;

struct callback_base {
    void (*execute)(callback_base*) noexcept;
};

class source {
public:
    source() noexcept = default;
    source(const source&) = delete;

    bool request_stop() noexcept {
        void* before = state_.load(relaxed);
        do {
            if (is_stopped(before)) return false;
        } while (!state_.compare_exchange_weak(before, requested(), acq_rel, relaxed));
        if (before != nullptr) {
            requester_.store(std::this_thread::get_id(), relaxed);
            auto* const callback = static_cast<callback_base*>(before);
            callback->execute(callback);
            state_.store(done(), release);
            state_.notify_one();
        }
        return true;
    }
    bool stop_requested() const noexcept { return is_stopped(state_.load(acquire)); }

    bool try_add(callback_base* callback) const noexcept {
        void* before = state_.load(acquire);
        if (is_stopped(before)) return false;
        return state_.compare_exchange_strong(before, callback, release, acquire);
    }
    void remove(callback_base* callback) const noexcept {
        void* before = callback;
        if (state_.compare_exchange_strong(before, nullptr, relaxed, acquire)) return;
        if (before != requested()) return;
        if (requester_.load(relaxed) == std::this_thread::get_id()) return;
        state_.wait(before, acquire);
    }

private:
    void* requested() const noexcept { return &state_; }
    void* done() const noexcept { return &requester_; }
    bool is_stopped(void* state) const noexcept { return state == requested() || state == done(); }

    mutable atomic<void*> state_{nullptr};
    mutable atomic<std::thread::id> requester_{};
};

template <class F>
class callback : callback_base {
public:
    callback(const source& from, F f) : callback_base{&run}, source_(&from), f_(std::move(f)) {
        if (!from.try_add(this)) {
            source_ = nullptr;
            run(this);
        }
    }
    ~callback() {
        if (source_ != nullptr) source_->remove(this);
    }
    callback(const callback&) = delete;

private:
    static void run(callback_base* self) noexcept { static_cast<callback*>(self)->f_(); }
    const source* source_;
    [[no_unique_address]] F f_;
};

}  // namespace bench_stop::paper
