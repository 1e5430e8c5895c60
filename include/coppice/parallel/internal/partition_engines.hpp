// The engines of merge, partition, and stable_partition, with the rules of sort_engines.hpp.
#pragma once
// Each sets `complete`, and returns what the algorithm returns if nothing was left out.

#include <coppice/parallel/internal/merge_walk.hpp>
#include <coppice/parallel/internal/partition_walk.hpp>
#include <coppice/parallel/internal/stable_partition_walk.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <type_traits>
#include <utility>

namespace coppice::parallel::internal {

// Copies both sorted ranges to `out`, in order. After a stop request some places of `out` are
// unchanged.
template <class Left, class Right, class Out, class Less>
    requires std::random_access_iterator<Left> && std::random_access_iterator<Right> &&
             std::random_access_iterator<Out>
bool merge_with(Left first1, Left last1, Right first2, Right last2, Out out, Less& less) {
    const auto merge = [&less](auto left, auto left_end, auto right, auto right_end, auto to) {
        sort_control control;
        merge_walk<copy_elements, decltype(left), decltype(right), decltype(to), Less> walk(control,
                                                                                            less);
        walk.run({left, left_end, right, right_end, to});
        return control.is_complete();
    };
    using left_type = decltype(unwrapped(first1));
    using right_type = decltype(unwrapped(first2));
    if constexpr (!std::is_same_v<left_type, right_type> && std::is_pointer_v<left_type> &&
                  std::is_pointer_v<right_type> &&
                  std::is_same_v<std::iter_value_t<Left>, std::iter_value_t<Right>>) {
        using pointer = const std::iter_value_t<Left>*;
        return merge(pointer(unwrapped(first1)), pointer(unwrapped(last1)),
                     pointer(unwrapped(first2)), pointer(unwrapped(last2)), unwrapped(out));
    } else {
        return merge(unwrapped(first1), unwrapped(last1), unwrapped(first2), unwrapped(last2),
                     unwrapped(out));
    }
}

// Merges ranges of other iterators sequentially. In less(x, y), x is an element of the second
// range, and y of the first.
template <class Left, class Right, class Out, class Less>
bool merge_with(Left first1, Left last1, Right first2, Right last2, Out out, Less& less) {
    if (sort_control().is_over()) return first1 == last1 && first2 == last2;
    for (; first1 != last1 && first2 != last2; ++out) {
        if (less(*first2, *first1)) {
            *out = *first2;
            ++first2;
        } else {
            *out = *first1;
            ++first1;
        }
    }
    std::copy(first2, last2, std::copy(first1, last1, out));
    return true;
}

// Returns how many of the first `room` elements of the result come from the first range.
template <class Left, class Right, class Less>
std::ptrdiff_t merge_prefix(Left first, std::ptrdiff_t size, Right first2, std::ptrdiff_t size2,
                            std::ptrdiff_t room, Less& less) {
    if (room >= size + size2) return size;
    std::ptrdiff_t low = std::max<std::ptrdiff_t>(0, room - size2);
    std::ptrdiff_t high = std::min(size, room);
    while (low != high) {
        // Of `taken + 1` from the first range, the last belongs there unless the last of those that
        // are left of the second is less.
        const std::ptrdiff_t taken = low + (high - low) / 2;
        const Left left =
            std::ranges::next(first, static_cast<std::iter_difference_t<Left>>(taken));
        const Right right =
            std::ranges::next(first2, static_cast<std::iter_difference_t<Right>>(room - taken - 1));
        if (less(*right, *left)) {
            high = taken;
        } else {
            low = taken + 1;
        }
    }
    return low;
}

template <class It, class Predicate>
    requires(!std::random_access_iterator<It>)
It partition_with(It begin, It end, Predicate& predicate, bool& complete) {
    complete = begin == end || !sort_control().is_over();
    return complete ? std::partition(begin, end, std::ref(predicate)) : begin;
}
// Partitions `count` elements by rotations, and keeps their order. Returns the first false element,
// and the end.
template <class It, class Predicate>
std::pair<It, It> partition_in_order(It first, std::iter_difference_t<It> count,
                                     Predicate& predicate) {
    if (count == 0) return {first, first};
    if (count == 1) {
        const It end = std::next(first);
        return {predicate(*first) ? end : first, end};
    }
    const auto [left, middle] = partition_in_order(first, count / 2, predicate);
    const auto [right, end] = partition_in_order(middle, count - count / 2, predicate);
    return {std::rotate(left, middle, right), end};
}
template <class It, class Predicate>
    requires(!std::random_access_iterator<It>)
It stable_partition_with(It begin, It end, Predicate& predicate, bool& complete) {
    complete = begin == end || !sort_control().is_over();
    return complete ? partition_in_order(begin, std::distance(begin, end), predicate).first : begin;
}

template <std::random_access_iterator It, class Predicate>
It partition_with(It begin, It end, Predicate& predicate, bool& complete) {
    const auto first = unwrapped(begin);
    sort_control control;
    const auto middle = partition_shared(control, first, unwrapped(end), predicate);
    complete = control.is_complete();
    return ahead(begin, length(first, middle));
}

template <std::random_access_iterator It, class Predicate>
It stable_partition_with(It begin, It end, Predicate& predicate, bool& complete) {
    using value = std::iter_value_t<It>;
    auto first = unwrapped(begin);
    const auto last = unwrapped(end);
    sort_control control;
    const auto run = [&control, first, last, &predicate](value* buffer) {
        stable_partition_walk<std::remove_const_t<decltype(first)>, Predicate> walk(
            control, first, buffer, predicate);
        return buffer == nullptr ? walk.run_in_place(first, last) : walk.run(first, last);
    };
    auto middle = first;
    if constexpr (fits_buffer<value>) {
        const scratch<value> buffer(length(first, last));
        middle = run(buffer.get());
    } else {
        middle = run(nullptr);
    }
    complete = control.is_complete();
    return ahead(begin, length(first, middle));
}

}  // namespace coppice::parallel::internal
