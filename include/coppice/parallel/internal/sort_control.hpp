// sort_control: the state that all parts of a sort share: stop, failure, and the size of a chunk.
#pragma once

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/parallel/internal/namespaces.hpp>
#include <coppice/pool/fork_join.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>

namespace coppice::parallel::internal {

// Cheap elements: copying one is as fast as comparing it. Their kernels have no branches, and keep
// copies in registers. Other elements are compared in place.
template <class T>
inline constexpr bool is_cheap =
    std::is_trivially_copyable_v<T> && std::is_trivially_copy_constructible_v<T> &&
    std::is_trivially_copy_assignable_v<T> && std::is_trivially_destructible_v<T> &&
    sizeof(T) <= 16;
template <class It>
inline constexpr bool are_cheap = false;
template <class T>
inline constexpr bool are_cheap<T*> = is_cheap<std::remove_const_t<T>>;

// Returns a pointer if the elements are contiguous, otherwise the iterator itself.
template <class It>
constexpr auto unwrapped(It it) noexcept {
    if constexpr (std::contiguous_iterator<It>) {
        return std::to_address(it);
    } else {
        return it;
    }
}

// Returns how many elements lie between the two.
template <class It>
constexpr std::size_t length(It first, It last) noexcept {
    return static_cast<std::size_t>(last - first);
}
// Returns the iterator `count` behind `it`.
template <class It>
constexpr It ahead(It it, std::size_t count) noexcept {
    return it + static_cast<std::iter_difference_t<It>>(count);
}

// Threads: any. The operations are relaxed: they only save work; joins order results.
class sort_control : immovable {
public:
    sort_control() noexcept : stop_(fork_join_stop_token()) {}

    // Returns true if no part should continue.
    bool is_over() const noexcept {
        return failed_.load(coppice::internal::relaxed) || stop_.stop_requested();
    }
    // Called when a part ends early. Records that the result is incomplete. Returns false, for the
    // part to return.
    bool leave_out() noexcept {
        incomplete_.store(true, coppice::internal::relaxed);
        return false;
    }
    // Called when a part has thrown. Makes the other parts end early.
    void fail() noexcept { failed_.store(true, coppice::internal::relaxed); }
    bool is_complete() const noexcept { return !incomplete_.load(coppice::internal::relaxed); }

    // Returns true if another worker is idle and asks for work.
    static bool is_asked() noexcept {
        const coppice::internal::fork_deque* const deque = coppice::internal::fork_deque::current();
        return deque != nullptr && deque->asked();
    }

    // Calls step(n) with 0 < n <= left. Measures its time, and adapts the next n.
    template <class Step>
    void run(std::size_t left, Step step) {
        const std::size_t chunk = chunk_.load(coppice::internal::relaxed);
        const std::size_t count = std::min(left, chunk);
        constexpr monotonic_clock clock;
        const coppice::internal::time_point begin = clock.now();
        step(count);
        const coppice::internal::duration took = clock.now() - begin;
        if (took < too_short && count == chunk && chunk < chunk_max) {
            chunk_.store(2 * chunk, coppice::internal::relaxed);
        } else if (took > too_long && chunk > chunk_min) {
            chunk_.store(chunk / 2, coppice::internal::relaxed);
        }
    }

private:
    static constexpr coppice::internal::duration too_short{8'000};
    static constexpr coppice::internal::duration too_long{40'000};
    static constexpr std::size_t chunk_min = 64;
    static constexpr std::size_t chunk_max = std::size_t{1} << 20;

    const inplace_stop_token stop_;
    coppice::internal::atomic<std::size_t> chunk_{chunk_min};  // elements; changed by any part
    coppice::internal::atomic<bool> failed_{false};            // set by any part; read by all
    coppice::internal::atomic<bool> incomplete_{false};  // set by any part; read when all ended
};

// Marks a sort as failed when it is destroyed, unless it was dismissed.
class [[nodiscard]] failure_guard : immovable {
public:
    explicit failure_guard(sort_control& control) noexcept : control_(&control) {}
    ~failure_guard() {
        if (control_ != nullptr) control_->fail();
    }
    void dismiss() noexcept { control_ = nullptr; }

private:
    sort_control* control_;
};

// Memory for `count` objects that are not constructed; empty if there is no memory.
template <class T>
class scratch : immovable {
public:
    explicit scratch(std::size_t count) noexcept {
        if (count > static_cast<std::size_t>(-1) / sizeof(T)) return;
        try {
            memory_ = ::operator new(count * sizeof(T), std::align_val_t{alignof(T)});
        } catch (const std::bad_alloc&) {
        }
    }
    ~scratch() { ::operator delete(memory_, std::align_val_t{alignof(T)}); }
    T* get() const noexcept { return static_cast<T*>(memory_); }

private:
    void* memory_ = nullptr;
};

// Calls f(first, last) for parts of [0, count), in parallel. Ignores stop requests. f must not
// throw.
template <class F>
void for_all_parts(std::size_t first, std::size_t last, F& f) {
    constexpr std::size_t part = std::size_t{1} << 14;
    if (last - first <= part) return f(first, last);
    const std::size_t middle = first + (last - first) / 2;
    fork_join([first, middle, &f] { for_all_parts(first, middle, f); },
              [middle, last, &f] { for_all_parts(middle, last, f); });
}

}  // namespace coppice::parallel::internal
