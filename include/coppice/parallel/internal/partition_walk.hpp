// Partition: kernels for one worker, and the walk that shares a partition between workers.
#pragma once
// Cheap elements are partitioned from left to right, with two stores for each element and without
// branches (Lomuto's scheme as a cycle of moves; Bergdoll and Peters 2024). Other elements are
// partitioned from both ends, by blocks of offsets, so that the comparisons of a block decide no
// branch (Edelkamp and Weiss, BlockQuicksort, 2016).
//
// A walk runs alone until another worker asks for work. Then it gives away half of the rest, and
// swaps the middle when both halves are done. So a worker without help moves no element twice.

#include <coppice/base/lifetime.hpp>
#include <coppice/parallel/internal/sort_control.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace coppice::parallel::internal {

// The rest of a partition. Elements before `left` are true, and elements from `last` on are false.
// [left, next) are false, and [next, last) are unknown.
template <class It>
struct partition_rest {
    It left;
    It next;
    It last;
    std::size_t unknown() const noexcept { return length(next, last); }
};

// Partitions the next `count` elements, which are cheap. If the predicate throws, no element is
// lost.
template <class T, class Predicate>
inline void partition_cheap(partition_rest<T*>& rest, std::size_t count, Predicate& predicate) {
    if (count == 0) return;
    T* left = rest.left;
    T* gap = rest.next;
    T* next = rest.next + 1;
    T* const end = rest.next + count;
    const T saved = *gap;
    scope_exit close([&gap, &saved, &left, &rest]() noexcept {
        *gap = saved;
        rest.left = left;
        rest.next = gap;
    });
    const auto step = [&predicate, &left, &gap](T* at) {
        const bool is_true = predicate(*at);
        *gap = *left;
        *left = *at;
        gap = at;
        left += is_true;
    };
    for (; end - next > 1; next += 2) {
        step(next);
        step(next + 1);
    }
    if (next != end) step(next);
    const bool is_true = predicate(saved);
    close.dismiss();
    *gap = *left;
    *left = saved;
    rest.left = left + is_true;
    rest.next = end;
}

inline constexpr std::size_t partition_block = 64;

// What is known of the blocks at both ends of the unknown elements: the offsets of the elements of
// the left block that are false, and of those of the right block that are true. An empty list: that
// block is unknown.
struct block_offsets {
    unsigned char low[partition_block];
    unsigned char high[partition_block];
    std::size_t lows = 0, highs = 0, low_begin = 0, high_begin = 0;
};

// Exchanges `count` elements at the offsets `low` from `left` with those at the offsets `high`
// before `last`, in a cycle.
template <class It>
inline void exchange_blocks(It left, const unsigned char* low, It last, const unsigned char* high,
                            std::size_t count) {
    if (count == 0) return;
    It hole = ahead(left, low[0]);
    It other = last - (1 + high[0]);
    std::iter_value_t<It> value = std::ranges::iter_move(hole);
    *hole = std::ranges::iter_move(other);
    for (std::size_t i = 1; i != count; ++i) {
        hole = ahead(left, low[i]);
        *other = std::ranges::iter_move(hole);
        other = last - (1 + high[i]);
        *hole = std::ranges::iter_move(other);
    }
    *other = std::move(value);
}

// Partitions the elements [left, last) one by one, from both ends.
template <class It, class Predicate>
inline void partition_tail(partition_rest<It>& rest, Predicate& predicate) {
    It left = rest.left;
    It last = rest.last;
    for (;; ++left) {
        while (left != last && predicate(*left)) ++left;
        if (left == last) break;
        do --last;
        while (left != last && !predicate(*last));
        if (left == last) break;
        std::ranges::iter_swap(left, last);
    }
    rest = {left, left, left};
}

// Partitions about `count` elements of [left, last), from both ends. next == left.
template <class It, class Predicate>
inline void partition_blocks(partition_rest<It>& rest, block_offsets& known, std::size_t count,
                             Predicate& predicate) {
    std::size_t lows = known.lows, highs = known.highs;
    const std::size_t stop_at = rest.unknown() > count ? rest.unknown() - count : 0;
    It left = rest.left;
    It last = rest.last;
    while (length(left, last) > std::max(stop_at, 2 * partition_block)) {
        if (lows == 0) {
            known.low_begin = 0;
            for (std::size_t i = 0; i != partition_block; ++i) {
                known.low[lows] = static_cast<unsigned char>(i);
                lows += !predicate(*ahead(left, i));
            }
        }
        if (highs == 0) {
            known.high_begin = 0;
            for (std::size_t i = 0; i != partition_block; ++i) {
                known.high[highs] = static_cast<unsigned char>(i);
                highs += static_cast<bool>(
                    predicate(*(last - static_cast<std::iter_difference_t<It>>(i + 1))));
            }
        }
        const std::size_t both = std::min(lows, highs);
        exchange_blocks(left, known.low + known.low_begin, last, known.high + known.high_begin,
                        both);
        lows -= both;
        highs -= both;
        known.low_begin += both;
        known.high_begin += both;
        if (lows == 0) left = ahead(left, partition_block);
        if (highs == 0) last -= partition_block;
    }
    known.lows = lows;
    known.highs = highs;
    rest = {left, left, last};
    if (stop_at <= 2 * partition_block) partition_tail(rest, predicate);
}

// Partitions the next `count` unknown elements, or some more. `known` belongs to `rest`.
template <class It, class Predicate>
inline void partition_some(partition_rest<It>& rest, block_offsets& known, std::size_t count,
                           Predicate& predicate) {
    if constexpr (are_cheap<It>) {
        partition_cheap(rest, count, predicate);
    } else {
        partition_blocks(rest, known, count, predicate);
    }
}

// Partitions on the calling thread. Returns the first false element.
template <class It, class Predicate>
inline It partition_alone(It first, It last, Predicate& predicate) {
    partition_rest<It> rest{first, first, last};
    block_offsets known;
    partition_some(rest, known, rest.unknown(), predicate);
    return rest.left;
}

// Swaps the elements [first, middle), which are false, with [middle, last), which are true, in any
// order. Returns the first false element.
template <class It>
It swap_sides(It first, It middle, It last) {
    const std::size_t count = std::min(length(first, middle), length(middle, last));
    const It end = last - static_cast<std::iter_difference_t<It>>(count);
    auto swap = [first, end](std::size_t from, std::size_t to) {
        std::swap_ranges(ahead(first, from), ahead(first, to), ahead(end, from));
    };
    for_all_parts(0, count, swap);
    return ahead(first, length(middle, last));
}

template <class It, class Predicate>
class partition_walk : immovable {
public:
    partition_walk(sort_control& control, Predicate& predicate) noexcept
        : control_(control), predicate_(predicate) {}

    // Returns the first false element; any element if the control is over.
    It run(partition_rest<It> rest) {
        failure_guard failed(control_);
        block_offsets known;
        while (rest.unknown() != 0) {
            if (control_.is_over()) {
                control_.leave_out();
                break;
            }
            if (rest.unknown() >= cut_min && sort_control::is_asked()) {
                rest.left = cut(rest);
                break;
            }
            control_.run(rest.unknown(), [this, &rest, &known](std::size_t count) {
                partition_some(rest, known, count, predicate_);
            });
        }
        failed.dismiss();
        return rest.left;
    }

private:
    static constexpr std::size_t cut_min = are_cheap<It> ? 4096 : 512;

    It cut(const partition_rest<It>& rest) {
        const It middle = ahead(rest.next, rest.unknown() / 2);
        const partition_rest<It> lower{rest.left, rest.next, middle};
        const partition_rest<It> upper{middle, middle, rest.last};
        const auto [left, right] =
            fork_join([this, &lower] { return run(lower); }, [this, &upper] { return run(upper); });
        return swap_sides(left, middle, right);
    }

    sort_control& control_;
    Predicate& predicate_;
};

// Partitions, with help of idle workers. Returns the first false element; any if control is over.
template <class It, class Predicate>
It partition_shared(sort_control& control, It first, It last, Predicate& predicate) {
    partition_walk<It, Predicate> walk(control, predicate);
    return walk.run({first, first, last});
}

}  // namespace coppice::parallel::internal
