// loops: what the algorithms are made of: loops and folds over parts of a range.
#pragma once
// Parts are passed to plain loops over iterators, so that the compiler vectorizes them as it would
// without the library. Functions whose calls cannot change them are copied to the stack of such
// a loop (loop_function): nothing that the loop writes can then change them, and the compiler keeps
// them in registers.
//
// Iterators without random access are walked in order, in one part. Positions are counted as
// std::ptrdiff_t, because the differences of some views' iterators are not integers of C++.

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/internal/invoke.hpp>
#include <coppice/parallel/internal/namespaces.hpp>
#include <coppice/pool/fork_join.hpp>
#include <coppice/pool/internal/loop_walks.hpp>
#include <coppice/pool/parallel.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

namespace coppice::parallel::internal {

// What is walked side by side: iterators with random access, or indices.
template <class... It>
concept random_access = ((std::random_access_iterator<It> || std::integral<It>) && ...);

// Returns the iterator, or the index, that is `count` behind `it`.
template <class It, class Count>
constexpr It behind(It it, Count count) {
    return it + static_cast<std::iter_difference_t<It>>(count);
}

template <class It>
std::ptrdiff_t part_size(It first, It last) {
    if constexpr (random_access<It>) {
        return static_cast<std::ptrdiff_t>(last - first);
    } else {
        return static_cast<std::ptrdiff_t>(std::ranges::distance(first, last));
    }
}

// Returns true if a stop request leaves out a walk in order, which does not look again.
inline bool leaves_out() noexcept {
    return fork_join_stop_token().stop_requested();
}

// Calls body(i, last) for parts that make up `count` elements from `first` on, side by side.
// Returns false if a stop request left elements out.
template <class It, class Body>
bool for_parts(It first, std::iter_difference_t<It> count, Body body) {
    if constexpr (random_access<It>) {
        return parallel_for(std::ptrdiff_t{0}, static_cast<std::ptrdiff_t>(count),
                            [first, &body](std::ptrdiff_t from, std::ptrdiff_t to) {
                                body(internal::behind(first, from), internal::behind(first, to));
                            });
    } else {
        if (count == 0) return true;
        if (internal::leaves_out()) return false;
        body(first, std::ranges::next(first, count));
        return true;
    }
}

// The result of a fold: nothing for no elements. A part of the whole if it is not complete.
template <class Sum>
struct fold_result {
    std::optional<Sum> sum;
    bool complete = true;
};

// Add is called as add(sum, i, last): it adds a part, which is not empty, to an optional sum, which
// may be. Combine is called with the sums of two parts in the order of the range.
template <class Sum, class It, class Add, class Combine>
class fold_walk : immovable {
    using difference = std::ptrdiff_t;

public:
    fold_walk(It first, Add& add, Combine& combine) noexcept
        : first_(first), add_(add), combine_(combine) {}

    std::optional<Sum> run(difference from, difference to) {
        std::optional<Sum> sum;
        time_point time = loop_state::now();
        while (from < to) {
            if (state_.is_over()) {
                state_.leave_out();
                break;
            }
            const auto left = static_cast<std::uint64_t>(to - from);
            if (state_.wants_cut(left)) {
                const difference middle = from + (to - from) / 2;
                auto [lower, upper] = fork_join([this, from, middle] { return run(from, middle); },
                                                [this, middle, to] { return run(middle, to); });
                return both(both(std::move(sum), std::move(lower)), std::move(upper));
            }
            const std::uint64_t count = state_.run(left, time, [this, &sum, from](std::uint64_t n) {
                add_(sum, internal::behind(first_, from),
                     internal::behind(first_, from + static_cast<difference>(n)));
            });
            from += static_cast<difference>(count);
        }
        return sum;
    }
    bool is_complete() const noexcept { return state_.is_complete(); }

private:
    std::optional<Sum> both(std::optional<Sum>&& left, std::optional<Sum>&& right) {
        if (!left) return std::move(right);
        if (!right) return std::move(left);
        return std::optional<Sum>(combine_(*std::move(left), *std::move(right)));
    }

    const It first_;
    Add& add_;
    Combine& combine_;
    loop_state state_;
};

// Folds `count` elements from `first` on.
template <class Sum, class It, class Add, class Combine>
fold_result<Sum> fold(It first, std::iter_difference_t<It> count, Add add, Combine combine) {
    fold_result<Sum> result;
    if (count == 0) return result;
    if constexpr (random_access<It>) {
        fold_walk<Sum, It, Add, Combine> walk(first, add, combine);
        result.sum = walk.run(0, static_cast<std::ptrdiff_t>(count));
        result.complete = walk.is_complete();
    } else if (internal::leaves_out()) {
        result.complete = false;
    } else {
        add(result.sum, first, std::ranges::next(first, count));
    }
    return result;
}

}  // namespace coppice::parallel::internal
