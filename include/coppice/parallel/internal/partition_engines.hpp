// The engines of merge, partition, and stable_partition; as those of sort_engines.hpp.
#pragma once
// Each sets `complete`, and returns what the algorithm returns if nothing was left out.

#include <coppice/parallel/internal/merge_walk.hpp>
#include <coppice/parallel/internal/partition_walk.hpp>
#include <coppice/parallel/internal/stable_partition_walk.hpp>

#include <concepts>
#include <type_traits>

namespace coppice::parallel::internal {

// Copies both sorted ranges to `out`, in order. After a stop request some places of `out` are
// unchanged.
template <class Left, class Right, class Out, class Less>
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
        using place = const std::iter_value_t<Left>*;
        return merge(place(unwrapped(first1)), place(unwrapped(last1)), place(unwrapped(first2)),
                     place(unwrapped(last2)), unwrapped(out));
    } else {
        return merge(unwrapped(first1), unwrapped(last1), unwrapped(first2), unwrapped(last2),
                     unwrapped(out));
    }
}

template <class It, class Predicate>
It partition_with(It begin, It end, Predicate& predicate, bool& complete) {
    const auto first = unwrapped(begin);
    sort_control control;
    const auto middle = partition_shared(control, first, unwrapped(end), predicate);
    complete = control.is_complete();
    return ahead(begin, length(first, middle));
}

template <class It, class Predicate>
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
