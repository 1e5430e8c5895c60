// The engines of sort, stable_sort, partial_sort, and nth_element.
#pragma once
// An engine is called on a worker, or on any other thread, which then works alone. It returns false
// if a stop request left work out. Errors: an exception of the comparator, after all parts have
// ended. In both cases the range has all its elements, in any order.

#include <coppice/parallel/internal/natural_runs.hpp>
#include <coppice/parallel/internal/quick_sort.hpp>
#include <coppice/parallel/internal/selection.hpp>
#include <coppice/parallel/internal/stable_sort_walk.hpp>

#include <cstddef>

namespace coppice::parallel::internal {

inline constexpr std::size_t merged_runs_min = 4096;

// Sorts the range if it has few runs. Returns true if the range is sorted.
template <class It, class Less>
bool sort_few_runs(sort_control& control, It first, std::size_t count, Less& less) {
    using value = std::iter_value_t<It>;
    natural_runs<It> runs;
    runs.find(control, first, count, less);
    if (runs.count == 1) {
        runs.reverse(first);
        return true;
    }
    if constexpr (fits_buffer<value>) {
        if (runs.count == 0 || count < merged_runs_min) return false;
        const scratch<value> buffer(count);
        if (buffer.get() == nullptr) return false;
        runs.reverse(first);
        merge_sort(control, first, count, buffer.get(), runs.depth(), less, runs);
        return true;
    } else {
        return false;
    }
}

template <class It, class Less>
bool sort_with(It begin, It end, Less& less) {
    const auto first = unwrapped(begin);
    const auto last = unwrapped(end);
    using Place = std::remove_const_t<decltype(first)>;
    sort_control control;
    if (length(first, last) <= leaf_sort_max<Place>) {
        if (control.is_over()) return control.leave_out();
        leaf_sort(first, last, less);
        return true;
    }
    if (!sort_few_runs(control, Place(first), length(first, last), less)) {
        quick_sort_walk<Place, Less> walk(control, less);
        walk.run(first, last);
    }
    return control.is_complete();
}

template <class It, class Less>
bool stable_sort_with(It begin, It end, Less& less) {
    const auto first = unwrapped(begin);
    const auto last = unwrapped(end);
    using Place = std::remove_const_t<decltype(first)>;
    using value = std::iter_value_t<Place>;
    const std::size_t count = length(first, last);
    sort_control control;
    if (count <= leaf_sort_max<Place>) {
        if (control.is_over()) return control.leave_out();
        leaf_sort(first, last, less);
        return true;
    }
    if (sort_few_runs(control, Place(first), count, less)) return control.is_complete();
    if constexpr (fits_buffer<value>) {
        const scratch<value> buffer(count);
        if (buffer.get() != nullptr) {
            using leaf_type = stable_leaf<Place, Less>;
            leaf_type leaf{first, buffer.get(), less};
            merge_sort(control, Place(first), count, buffer.get(), leaf_type::depth(count), less,
                       leaf);
            return control.is_complete();
        }
    }
    stable_sort_in_place(control, Place(first), Place(last), less);
    return control.is_complete();
}

template <class It, class Less>
bool nth_element_with(It begin, It nth, It end, Less& less) {
    const auto first = unwrapped(begin);
    using Place = std::remove_const_t<decltype(first)>;
    sort_control control;
    selection<Place, Less> select(control, less);
    select.run(first, unwrapped(nth), unwrapped(end));
    return control.is_complete();
}

template <class It, class Less>
bool partial_sort_with(It begin, It middle, It end, Less& less) {
    if (begin == middle) return true;
    if (middle != end && !nth_element_with(begin, middle, end, less)) return false;
    return sort_with(begin, middle, less);
}

}  // namespace coppice::parallel::internal
