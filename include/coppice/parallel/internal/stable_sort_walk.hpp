// Stable merge sort with a buffer as large as the range, and without one where there is no memory.
#pragma once
// The range is halved recursively. Each half is sorted into the memory that is not the target of
// the merge: levels alternate between range and buffer. The leaves lie at one even depth, so the
// leaves and the whole are sorted in the range itself, and the parents of the leaves construct the
// elements of the buffer. A part that ends early still moves its elements to where its parent
// expects them. So the range has all its elements, however the sort ends.

#include <coppice/base/lifetime.hpp>
#include <coppice/parallel/internal/merge_walk.hpp>
#include <coppice/parallel/internal/small_sort.hpp>
#include <coppice/parallel/internal/sort_control.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <type_traits>

namespace coppice::parallel::internal {

// Elements that may be moved to a buffer: their moves do not throw, so all can be moved back.
template <class T>
inline constexpr bool fits_buffer =
    std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T>;

// A merge sort of ranges whose leaves are sorted by `Leaf`: leaf(first, last) with indices.
template <class It, class Less, class Leaf>
class merge_sort_walk : immovable {
    using value = std::iter_value_t<It>;

public:
    // `bounds` has the 2^depth + 1 indices at which the leaves begin and end. depth is even.
    merge_sort_walk(sort_control& control, It first, value* buffer, Less& less, Leaf& leaf) noexcept
        : control_(control), first_(first), buffer_(buffer), less_(less), leaf_(leaf) {}

    void run(std::size_t first, std::size_t last, unsigned depth) {
        if (depth == 0) return run_leaf(first, last);
        const std::size_t middle = leaf_.middle(first, last, depth);
        const bool to_buffer = depth % 2 != 0;
        scope_exit bring([this, first, last, depth]() noexcept { move_up(first, last, depth); });
        fork_join([this, first, middle, depth] { run(first, middle, depth - 1); },
                  [this, middle, last, depth] { run(middle, last, depth - 1); });
        bring.dismiss();
        if (!to_buffer) {
            merge<move_elements>(buffer_, first_, first, middle, last);
        } else if (depth == 1 && !is_cheap<value>) {
            merge<construct_elements>(first_, buffer_, first, middle, last);
        } else {
            merge<move_elements>(first_, buffer_, first, middle, last);
        }
    }

private:
    void run_leaf(std::size_t first, std::size_t last) {
        if (control_.is_over()) {
            control_.leave_out();
            return;
        }
        failure_guard failed(control_);
        leaf_.sort(first, last);
        failed.dismiss();
    }
    template <class How, class From, class To>
    void merge(From from, To to, std::size_t first, std::size_t middle, std::size_t last) {
        merge_walk<How, From, From, To, Less> walk(control_, less_);
        walk.run({ahead(from, first), ahead(from, middle), ahead(from, middle), ahead(from, last),
                  ahead(to, first)});
    }
    void move_up(std::size_t first, std::size_t last, unsigned depth) noexcept {
        if (depth % 2 == 0) {
            put_all<move_elements>(buffer_ + first, buffer_ + last, ahead(first_, first));
        } else if (depth == 1 && !is_cheap<value>) {
            put_all<construct_elements>(ahead(first_, first), ahead(first_, last), buffer_ + first);
        } else {
            put_all<move_elements>(ahead(first_, first), ahead(first_, last), buffer_ + first);
        }
    }

    sort_control& control_;
    const It first_;
    value* const buffer_;
    Less& less_;
    Leaf& leaf_;
};

template <class T>
void destroy_all([[maybe_unused]] T* first, [[maybe_unused]] std::size_t count) noexcept {
    if constexpr (!std::is_trivially_destructible_v<T>) {
        auto part = [first](std::size_t from, std::size_t to) noexcept {
            std::destroy(first + from, first + to);
        };
        for_all_parts(0, count, part);
    }
}

// Sorts with a buffer. depth > 0 is even; so each element of the buffer is constructed meanwhile.
template <class It, class Less, class Leaf>
void merge_sort(sort_control& control, It first, std::size_t count, std::iter_value_t<It>* buffer,
                unsigned depth, Less& less, Leaf& leaf) {
    const scope_exit destroy([buffer, count]() noexcept { destroy_all(buffer, count); });
    merge_sort_walk<It, Less, Leaf> walk(control, first, buffer, less, leaf);
    walk.run(0, count, depth);
}

// Sorts cheap elements from `from` to `to` or in `from`, on the calling thread. The elements of
// both are overwritten; if the comparator throws, `from` has all elements unless they are in `to`.
template <class T, class Less>
void stable_sort_cheap(T* from, T* buffer, std::size_t count, bool to_buffer, Less& less) {
    if (count <= small_sort_max) {
        scope_exit copy([from, buffer, count, to_buffer]() noexcept {
            if (to_buffer) std::copy_n(from, count, buffer);
        });
        return small_sort(from, count, less);
    }
    const std::size_t half = count / 2;
    T* const source = to_buffer ? from : buffer;
    T* const target = to_buffer ? buffer : from;
    merge_rest<T*, T*, T*> rest{source, source + half, source + half, source + count, target};
    using kernel = merge_kernel<move_elements, T*, T*, T*, Less>;
    scope_exit keep([&rest]() noexcept { kernel::finish(rest); });
    {
        // Elements get to `source` even if the first half throws.
        scope_exit second([from, buffer, count, half, to_buffer]() noexcept {
            if (!to_buffer) std::copy_n(from + half, count - half, buffer + half);
        });
        stable_sort_cheap(from, buffer, half, !to_buffer, less);
        second.dismiss();
    }
    stable_sort_cheap(from + half, buffer + half, count - half, !to_buffer, less);
    kernel::merge_some(rest, count, less);
    keep.dismiss();
}

// Halves the range, and sorts the leaves.
template <class It, class Less>
struct stable_leaf {
    It first;
    std::iter_value_t<It>* buffer;
    Less& less;
    static std::size_t middle(std::size_t from, std::size_t to, unsigned) noexcept {
        return from + (to - from) / 2;
    }
    void sort(std::size_t from, std::size_t to) {
        if constexpr (are_cheap<It>) {
            stable_sort_cheap(first + from, buffer + from, to - from, false, less);
        } else {
            if (from != to) index_sort(ahead(first, from), 1, to - from, less);
        }
    }
    static unsigned depth(std::size_t count) noexcept {
        constexpr std::size_t leaf = are_cheap<It> ? 4096 : index_sort_max;
        unsigned depth = 2;
        while (count >> depth > leaf) depth += 2;
        return depth;
    }
};

// Merges the sorted [first, middle) and [middle, last) in place, by rotations.
template <class It, class Less>
class merge_in_place_walk : immovable {
public:
    merge_in_place_walk(sort_control& control, Less& less) noexcept
        : control_(control), less_(less) {}

    void run(It first, It middle, It last) {
        failure_guard failed(control_);
        if (control_.is_over()) {
            control_.leave_out();
        } else if (first != middle && middle != last) {
            if (length(first, last) <= index_sort_max) {
                index_sort(first, length(first, middle), length(first, last), less_);
            } else {
                cut(first, middle, last);
            }
        }
        failed.dismiss();
    }

private:
    void cut(It first, It middle, It last) {
        const merge_rest<It, It, It> both{first, middle, middle, last, first};
        const auto [left, right] = cut_merge(both, less_);
        const It rotated = std::rotate(left, middle, right);
        fork_join([this, first, left, rotated] { run(first, left, rotated); },
                  [this, rotated, right, last] { run(rotated, right, last); });
    }

    sort_control& control_;
    Less& less_;
};

template <class It, class Less>
void stable_sort_in_place(sort_control& control, It first, It last, Less& less) {
    if (control.is_over()) {
        control.leave_out();
        return;
    }
    if (length(first, last) <= index_sort_max) {
        failure_guard failed(control);
        if (first != last) index_sort(first, 1, length(first, last), less);
        failed.dismiss();
        return;
    }
    const It middle = ahead(first, length(first, last) / 2);
    fork_join(
        [&control, first, middle, &less] { stable_sort_in_place(control, first, middle, less); },
        [&control, middle, last, &less] { stable_sort_in_place(control, middle, last, less); });
    merge_in_place_walk<It, Less> walk(control, less);
    walk.run(first, middle, last);
}

}  // namespace coppice::parallel::internal
