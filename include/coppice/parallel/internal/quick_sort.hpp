// Quicksort: leaves for one worker, and the walk that forks its halves.
#pragma once
// The pivot is a median of medians of three, taken recursively. If a pivot equals the one before
// the range, the elements that equal it are partitioned off, so k distinct values cost O(n log k).
// A range that was partitioned too often is sorted by a heap, so the worst case is O(n log n).

#include <coppice/base/lifetime.hpp>
#include <coppice/parallel/internal/partition_walk.hpp>
#include <coppice/parallel/internal/small_sort.hpp>
#include <coppice/parallel/internal/sort_control.hpp>

#include <bit>
#include <cstddef>
#include <iterator>

namespace coppice::parallel::internal {

template <class It, class Less>
It median_of_three(It a, It b, It c, Less& less) {
    const bool ab = less(*a, *b);
    if (ab != static_cast<bool>(less(*a, *c))) return a;
    return static_cast<bool>(less(*b, *c)) == ab ? b : c;
}
template <class It, class Less>
It median_of_medians(It a, It b, It c, std::size_t count, Less& less) {
    if (count >= 8) {
        const std::size_t part = count / 8;
        const auto median = [part, &less](It first) {
            return median_of_medians(first, ahead(first, 4 * part), ahead(first, 7 * part), part,
                                     less);
        };
        a = median(a);
        b = median(b);
        c = median(c);
    }
    return median_of_three(a, b, c, less);
}
template <class It, class Less>
It choose_pivot(It first, It last, Less& less) {
    const std::size_t part = length(first, last) / 8;
    return median_of_medians(first, ahead(first, 4 * part), ahead(first, 7 * part), part, less);
}

// Returns how often a range of `count` elements may be partitioned before a heap sorts it.
inline std::size_t partitions_max(std::size_t count) noexcept {
    return 2 * static_cast<std::size_t>(std::bit_width(count));
}

// A range within a larger one. If has_bound, the element before `first` is not greater than any in
// the range.
template <class It>
struct sort_range {
    It first;
    It last;
    std::size_t partitions_left;
    bool has_bound = false;
    std::size_t size() const noexcept { return length(first, last); }
};

// Partitions `range` by a pivot. `partition(first, last, predicate)` returns the first false
// element. Returns the place of the pivot: elements before it are less, elements behind it are not.
// If the pivot equals the bound of the range, returns range.last instead, and advances range.first
// behind the elements that equal the bound.
template <class It, class Less, class Partition>
It partition_by_pivot(sort_range<It>& range, It pivot, Less& less, Partition&& partition) {
    const It first = range.first;
    if (range.has_bound && !less(*std::prev(first), *pivot)) {
        const It bound = std::prev(first);
        if constexpr (are_cheap<It>) {
            const std::iter_value_t<It> value = *bound;
            auto equals = [&less, value](const auto& x) { return !less(value, x); };
            range.first = partition(first, range.last, equals);
        } else {
            auto equals = [&less, bound](auto& x) { return !less(*bound, x); };
            range.first = partition(first, range.last, equals);
        }
        range.has_bound = false;
        return range.last;
    }
    std::ranges::iter_swap(first, pivot);
    It middle = first;
    if constexpr (are_cheap<It>) {
        const std::iter_value_t<It> value = *first;
        auto is_less = [&less, value](const auto& x) -> bool { return less(x, value); };
        middle = partition(std::next(first), range.last, is_less);
    } else {
        auto is_less = [&less, first](auto& x) -> bool { return less(x, *first); };
        middle = partition(std::next(first), range.last, is_less);
    }
    --middle;
    std::ranges::iter_swap(first, middle);
    return middle;
}

template <class It, class Less>
void leaf_sort(It first, It last, Less& less) {
    if constexpr (are_cheap<It>) {
        small_sort(first, length(first, last), less);
    } else if (first != last) {
        index_sort(first, 1, length(first, last), less);
    }
}
template <class It>
inline constexpr std::size_t leaf_sort_max = are_cheap<It> ? small_sort_max : index_sort_max;

// Sorts on the calling thread.
template <class It, class Less>
void sort_alone(sort_range<It> range, Less& less) {
    while (range.size() > leaf_sort_max<It>) {
        if (range.partitions_left == 0) return heap_sort(range.first, range.last, less);
        --range.partitions_left;
        const It pivot = choose_pivot(range.first, range.last, less);
        const It middle = partition_by_pivot(range, pivot, less, [](It first, It last, auto& is) {
            return partition_alone(first, last, is);
        });
        if (middle == range.last) continue;
        sort_alone(sort_range<It>{range.first, middle, range.partitions_left, range.has_bound},
                   less);
        range.first = std::next(middle);
        range.has_bound = true;
    }
    leaf_sort(range.first, range.last, less);
}

template <class It, class Less>
class quick_sort_walk : immovable {
public:
    quick_sort_walk(sort_control& control, Less& less) noexcept : control_(control), less_(less) {}

    void run(It first, It last) {
        run(sort_range<It>{first, last, partitions_max(length(first, last))});
    }

private:
    static constexpr std::size_t alone_max = are_cheap<It> ? 2048 : 256;

    void run(sort_range<It> range) {
        failure_guard failed(control_);
        for (;;) {
            if (control_.is_over()) {
                control_.leave_out();
                break;
            }
            if (range.size() <= alone_max || range.partitions_left == 0) {
                sort_alone(range, less_);
                break;
            }
            --range.partitions_left;
            const It pivot = choose_pivot(range.first, range.last, less_);
            const It middle =
                partition_by_pivot(range, pivot, less_, [this](It first, It last, auto& is) {
                    return partition_shared(control_, first, last, is);
                });
            if (middle == range.last) continue;
            if (control_.is_over()) continue;
            sort_range<It> lower = range;
            lower.last = middle;
            sort_range<It> upper = range;
            upper.first = std::next(middle);
            upper.has_bound = true;
            fork_join([this, &lower] { run(lower); }, [this, &upper] { run(upper); });
            break;
        }
        failed.dismiss();
    }

    sort_control& control_;
    Less& less_;
};

}  // namespace coppice::parallel::internal
