// The walks behind parallel_for and parallel_reduce: how a loop is cut, and what it learns.
#pragma once

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/fork_deque.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/base/saturating.hpp>
#include <coppice/exec/internal/invoke.hpp>
#include <coppice/pool/fork_join.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace coppice::internal {

// The types of indices: every integer type of up to 64 bits, except bool. Some compilers have wider
// integers, whose distances would be cut off.
template <class Index>
concept loop_index = std::integral<Index> && !std::same_as<std::remove_cv_t<Index>, bool> &&
                     sizeof(Index) <= sizeof(std::uint64_t);

// Return how many indices there are from `first` to `last`, and the index `count` behind `first`.
// They are correct even if the difference of two indices exceeds the range of an index.
template <class Index>
constexpr std::uint64_t distance(Index first, Index last) noexcept {
    return static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first);
}
template <class Index>
constexpr Index behind(Index first, std::uint64_t count) noexcept {
    return static_cast<Index>(static_cast<std::uint64_t>(first) + count);
}

// Competes with the operators of F that are not const: it takes anything, but worse.
template <class F, class... Arguments>
struct call_probe : F {
    using F::operator();
    void operator()(...);
};

// True if a call of an F with these arguments cannot change the F: it is a pointer, it has no
// state, or overload resolution chooses an operator that is const. An operator that is const fits
// the arguments better than the one of call_probe, which fits the object better: neither is chosen.
template <class F, class... Arguments>
inline constexpr bool call_leaves_function = std::is_scalar_v<F>;
template <class F, class... Arguments>
    requires std::is_class_v<F> && std::is_invocable_v<F&, Arguments...>
inline constexpr bool call_leaves_function<F, Arguments...> = [] {
    if constexpr (std::is_empty_v<F> || std::is_const_v<F>) {
        return true;
    } else if constexpr (std::is_final_v<F> ||
                         !requires(F& f) { f.operator()(std::declval<Arguments>()...); }) {
        return false;                                  // not known
    } else if constexpr (sizeof...(Arguments) == 0) {  // which fit every operator alike
        return requires { &F::operator(); } && std::is_invocable_v<const F&>;
    } else {
        return !std::is_invocable_v<call_probe<F, Arguments...>&, Arguments...>;
    }
}();

// A function of a loop is called as a copy, made for each chunk, if it is small and trivially
// copyable, and if no call can change it. Only then does the compiler know that what the function
// stores does not change its captures. It keeps them in registers and vectorizes, as in a plain
// loop. Any other function is called where it lies. So what a function counts in itself is kept.
template <class F, class... Arguments>
inline constexpr bool loops_call_copy = false;
template <class F, class... Arguments>
    requires std::is_object_v<F>
inline constexpr bool loops_call_copy<F, Arguments...> =
    std::is_trivially_copyable_v<F> && std::is_copy_constructible_v<F> && sizeof(F) <= 64 &&
    call_leaves_function<F, Arguments...>;
template <class F, class... Arguments>
using loop_function = std::conditional_t<loops_call_copy<F, Arguments...>, F, F&>;

// State shared by all parts of one loop: how far they go at once, and if they continue.
class loop_state : immovable {
public:
    loop_state() noexcept : stop_(fork_join_stop_token()) {}
    // Relaxed, here and below: it only saves work; joins order results and exceptions.
    bool is_over() const noexcept { return failed_.load(relaxed) || stop_.stop_requested(); }
    // Called when a part ended early and left iterations out.
    void leave_out() noexcept { incomplete_.store(true, relaxed); }
    bool is_complete() const noexcept { return !incomplete_.load(relaxed); }

    // The number of iterations that take some microseconds, as far as it is known yet.
    std::uint64_t chunk() const noexcept { return iterations_.load(relaxed); }

    // Returns true if the remaining `left` iterations should be cut in two now.
    bool wants_cut(std::uint64_t left) const noexcept {
        if (left <= 1) return false;
        const fork_deque* const deque = fork_deque::current();
        if (deque == nullptr) return false;
        return iterations_.load(relaxed) == 1 || deque->asked();
    }
    static time_point now() noexcept { return monotonic_clock().now(); }
    // Runs chunk(n), 0 < n <= left, learns from the time it takes, and returns n. `time` is that
    // of the chunk's begin, and becomes that of its end: chunks in a row read the clock once each.
    template <class Chunk>
    std::uint64_t run(std::uint64_t left, time_point& time, Chunk&& chunk) {
        const std::uint64_t iterations = iterations_.load(relaxed);
        const std::uint64_t count = std::min(left, iterations);
        guarded([&chunk, count] { chunk(count); });
        const time_point end = now();
        const duration took = end - time;
        time = end;
        if (took < too_short && count == iterations) {
            iterations_.store(saturating_add(iterations, iterations), relaxed);
        } else if (took > too_long && iterations > 1) {
            iterations_.store(iterations / 2, relaxed);
        }
        return count;
    }

private:
    // A chunk of too_short costs a clock call, which also waits for the chunk's loads: 0.15 us.
    static constexpr duration too_short{5'000};
    static constexpr duration too_long{20'000};
    // Runs `part`. If it throws, lets the other parts end early.
    template <class Part>
    void guarded(Part&& part) {
        scope_exit failed([this]() noexcept { failed_.store(true, relaxed); });
        part();
        failed.dismiss();
    }

    const inplace_stop_token stop_;
    atomic<std::uint64_t> iterations_{1};  // of one chunk; changed by any part
    atomic<bool> failed_{false};           // set by any part; read by all
    atomic<bool> incomplete_{false};       // set by any part; read when all have ended
};

// Calls f for the indices of [first, last). Not inlined: the compiler sees a plain loop.
template <class Index, class F>
[[gnu::noinline]] void call_each(Index first, Index last, F f) {
    if constexpr (std::invocable<F&, Index, Index>) {
        f(first, last);
    } else {
        for (; first < last; ++first) f(Index(first));
    }
}

template <class Index, class F>
class parallel_for_walk : immovable {
    using function = std::conditional_t<std::invocable<F&, Index, Index>,
                                        loop_function<F, Index, Index>, loop_function<F, Index>>;

public:
    explicit parallel_for_walk(F& f) noexcept : f_(f) {}

    void run(Index first, Index last) { run(first, last, loop_state::now()); }
    bool is_complete() const noexcept { return state_.is_complete(); }

private:
    void run(Index first, Index last, time_point time) {
        while (first < last) {
            if (state_.is_over()) return state_.leave_out();
            const std::uint64_t left = distance(first, last);
            if (state_.wants_cut(left)) {
                const Index middle = behind(first, left / 2);
                fork_join([this, first, middle, time] { run(first, middle, time); },
                          [this, middle, last] { run(middle, last); });
                return;
            }
            const std::uint64_t count = state_.run(left, time, [this, first](std::uint64_t n) {
                call_each<Index, function>(first, behind(first, n), f_);
            });
            first = behind(first, count);
        }
    }
    F& f_;
    loop_state state_;
};

// Returns combine(... combine(sum, map(first)) ..., map(last - 1)). Not inlined, as call_each().
template <class Index, class T, class Map, class Combine>
[[gnu::noinline]] T fold_each(T sum, Index first, Index last, Map map, Combine combine) {
    for (; first < last; ++first) {
        sum = execution::internal::invoke(combine, std::move(sum),
                                          execution::internal::invoke(map, Index(first)));
    }
    return sum;
}

template <class Index, class T, class Map, class Combine>
class parallel_reduce_walk : immovable {
    using map_function = loop_function<Map, Index>;
    using combine_function = loop_function<Combine, T, std::invoke_result_t<Map&, Index>>;

public:
    parallel_reduce_walk(const T& identity, Map& map, Combine& combine) noexcept
        : identity_(identity), map_(map), combine_(combine) {}

    T run(Index first, Index last) { return run(first, last, loop_state::now()); }

private:
    T run(Index first, Index last, time_point time) {
        T sum = identity_;
        while (first < last && !state_.is_over()) {
            const std::uint64_t left = distance(first, last);
            if (state_.wants_cut(left)) {
                const Index middle = behind(first, left / 2);
                auto [lower, upper] =
                    fork_join([this, first, middle, time] { return run(first, middle, time); },
                              [this, middle, last] { return run(middle, last); });
                return combine(std::move(sum), combine(std::move(lower), std::move(upper)));
            }
            const std::uint64_t count =
                state_.run(left, time, [this, first, &sum](std::uint64_t n) {
                    sum = fold_each<Index, T, map_function, combine_function>(
                        std::move(sum), first, behind(first, n), map_, combine_);
                });
            first = behind(first, count);
        }
        return sum;
    }
    template <class Right>
    T combine(T&& left, Right&& right) {
        return execution::internal::invoke(combine_, std::move(left), std::forward<Right>(right));
    }

    const T& identity_;
    Map& map_;
    Combine& combine_;
    loop_state state_;
};

}  // namespace coppice::internal
