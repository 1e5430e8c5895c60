// Sorts of a few elements: the leaves of sort and stable_sort. All are stable.
#pragma once
// Cheap elements are sorted without branches that depend on their values: by a network of five
// comparisons for four elements, and by merges from both ends. Source: Bergdoll and Peters,
// driftsort and ipnsort, 2024. Of other elements the indices are sorted by insertion; then each
// element is moved once. No element moves while the comparator runs, so an exception loses none.

#include <coppice/base/lifetime.hpp>
#include <coppice/parallel/internal/sort_control.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>

namespace coppice::parallel::internal {

template <class Bits>
inline void copy_bits(void* to, bool is_second, const void* first, const void* second) noexcept {
    Bits a, b;
    std::memcpy(&a, first, sizeof(Bits));
    std::memcpy(&b, second, sizeof(Bits));
    const Bits either = is_second ? b : a;
    std::memcpy(to, &either, sizeof(Bits));
}
// Copies *second or *first. Elements as large as an integer are copied as an integer: for floating
// point, a compiler would make a branch.
template <class T>
inline void copy_either(T* to, bool is_second, const T* first, const T* second) noexcept {
    if constexpr (sizeof(T) == sizeof(std::uint64_t)) {
        copy_bits<std::uint64_t>(to, is_second, first, second);
    } else if constexpr (sizeof(T) == sizeof(std::uint32_t)) {
        copy_bits<std::uint32_t>(to, is_second, first, second);
    } else {
        *to = *(is_second ? second : first);
    }
}

// Copies four elements of `from` to `to`, in order.
template <class T, class Less>
inline void sort_four(const T* from, T* to, Less& less) {
    const bool first = less(from[1], from[0]);
    const bool second = less(from[3], from[2]);
    const T* const a = from + first;
    const T* const b = from + !first;
    const T* const c = from + 2 + second;
    const T* const d = from + 2 + !second;
    const bool low = less(*c, *a);
    const bool high = less(*d, *b);
    const T* const min = low ? c : a;
    const T* const max = high ? b : d;
    const T* const left = low ? a : (high ? c : b);
    const T* const right = high ? d : (low ? b : c);
    const bool between = less(*right, *left);
    to[0] = *min;
    to[1] = *(between ? right : left);
    to[2] = *(between ? left : right);
    to[3] = *max;
}

// Merges the sorted halves of [from, from + count) to `to`, from both ends at once. The left half
// is the shorter one. Returns false if the comparator contradicts itself: then `to` does not have
// all elements.
template <class T, class Less>
inline bool merge_halves(const T* from, std::size_t count, T* to, Less& less) {
    const std::size_t half = count / 2;
    const T* left = from;
    const T* right = from + half;
    const T* left_last = from + half - 1;
    const T* right_last = from + count - 1;
    T* end = to + count - 1;
    for (std::size_t i = 0; i != half; ++i) {
        const bool low = less(*right, *left);
        copy_either(to++, low, left, right);
        right += low;
        left += !low;
        const bool high = less(*right_last, *left_last);
        copy_either(end--, high, right_last, left_last);
        left_last -= high;
        right_last -= !high;
    }
    if (count % 2 != 0) {
        const bool is_left = left <= left_last;
        *to = *(is_left ? left : right);
        left += is_left;
        right += !is_left;
    }
    return left == left_last + 1 && right == right_last + 1;
}

// Appends `value` to the sorted elements [first, last), which have room for it.
template <class T, class Less>
inline void insert_last(T* first, T* last, const T value, Less& less) {
    T* place = last;
    for (; place != first && less(value, place[-1]); --place) *place = place[-1];
    *place = value;
}

inline constexpr std::size_t small_sort_max = 24;  // cheap elements

// Sorts at most small_sort_max cheap elements, in order. If the comparator throws, the elements are
// as they were.
template <class T, class Less>
inline void small_sort(T* first, std::size_t count, Less& less) {
    if (count < 2) return;
    alignas(T) unsigned char memory[(2 * small_sort_max) * sizeof(T)];
    T* const sorted = reinterpret_cast<T*>(memory);
    const std::size_t half = count / 2;
    std::size_t done = 1;
    if (count >= 16) {
        T* const fours = sorted + small_sort_max;
        for (const std::size_t begin : {std::size_t{0}, half}) {
            sort_four(first + begin, fours, less);
            sort_four(first + begin + 4, fours + 4, less);
            if (!merge_halves(fours, 8, sorted + begin, less)) return;
        }
        done = 8;
    } else if (count >= 8) {
        sort_four(first, sorted, less);
        sort_four(first + half, sorted + half, less);
        done = 4;
    } else {
        sorted[0] = first[0];
        sorted[half] = first[half];
    }
    for (std::size_t i = done; i < half; ++i) insert_last(sorted, sorted + i, first[i], less);
    for (std::size_t i = half + done; i < count; ++i) {
        insert_last(sorted + half, sorted + i, first[i], less);
    }
    scope_exit restore([sorted, count, first]() noexcept { std::copy_n(sorted, count, first); });
    if (merge_halves(sorted, count, first, less)) restore.dismiss();
}

inline constexpr std::size_t index_sort_max = 20;  // other elements

// Moves each of `count` elements to its place: the element at order[i] to i. Changes `order`.
template <class It>
void move_to_order(It first, unsigned char* order, std::size_t count) {
    for (std::size_t i = 0; i != count; ++i) {
        if (order[i] == i) continue;
        std::iter_value_t<It> value = std::ranges::iter_move(ahead(first, i));
        std::size_t gap = i;
        for (std::size_t from = order[i]; from != i; from = order[gap]) {
            *ahead(first, gap) = std::ranges::iter_move(ahead(first, from));
            order[gap] = static_cast<unsigned char>(gap);
            gap = from;
        }
        *ahead(first, gap) = std::move(value);
        order[gap] = static_cast<unsigned char>(gap);
    }
}

// Sorts at most index_sort_max elements of any type. The first `sorted` of them are in order
// already. Sorts indices by insertion, and then moves each element once.
template <class It, class Less>
void index_sort(It first, std::size_t sorted, std::size_t count, Less& less) {
    unsigned char order[index_sort_max];
    for (std::size_t i = 0; i != sorted; ++i) order[i] = static_cast<unsigned char>(i);
    for (std::size_t i = sorted; i != count; ++i) {
        const It next = ahead(first, i);
        std::size_t place = i;
        for (; place != 0 && less(*next, *ahead(first, order[place - 1])); --place) {
            order[place] = order[place - 1];
        }
        order[place] = static_cast<unsigned char>(i);
    }
    move_to_order(first, order, count);
}

// Sorts by a heap, in O(n log n) for any input.
template <class It, class Less>
void heap_sort(It first, It last, Less& less) {
    const std::size_t count = length(first, last);
    const auto sift = [first, &less](std::size_t at, std::size_t end) {
        for (std::size_t child = 2 * at + 1; child < end; child = 2 * at + 1) {
            if (child + 1 < end && less(*ahead(first, child), *ahead(first, child + 1))) ++child;
            if (!less(*ahead(first, at), *ahead(first, child))) return;
            std::ranges::iter_swap(ahead(first, at), ahead(first, child));
            at = child;
        }
    };
    for (std::size_t i = count / 2; i != 0; --i) sift(i - 1, count);
    for (std::size_t i = count; i > 1; --i) {
        std::ranges::iter_swap(first, ahead(first, i - 1));
        sift(0, i - 1);
    }
}

}  // namespace coppice::parallel::internal
