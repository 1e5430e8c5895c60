// The descriptions (algorithm.hpp) of sort, stable_sort, partial_sort, and nth_element.
#pragma once

#include <coppice/parallel/internal/algorithm.hpp>
#include <coppice/parallel/internal/functions.hpp>
#include <coppice/parallel/internal/sort_engines.hpp>

#include <functional>
#include <iterator>
#include <ranges>
#include <type_traits>
#include <utility>

namespace coppice::parallel::internal {

// Iterators of a range that can be sorted: to elements, not to proxies of them.
template <class It, class Less, class Proj>
concept sortable_iterator = std::random_access_iterator<It> && std::permutable<It> &&
                            std::is_lvalue_reference_v<std::iter_reference_t<It>> &&
                            std::predicate<Less&, projected_t<Proj, It>, projected_t<Proj, It>>;
template <class R, class Less, class Proj>
concept sortable_range = std::ranges::random_access_range<R> &&
                         sortable_iterator<std::ranges::iterator_t<R>, Less, Proj>;

// The description of an algorithm that sorts with Run(first, last, less).
template <class Run>
struct sort_description {
    template <class It, std::sentinel_for<It> End, class Less = std::less<>,
              class Proj = std::identity>
        requires sortable_iterator<It, Less, Proj>
    static auto bind(It first, End last, Less less = {}, Proj proj = {}) {
        const It end = std::ranges::next(first, last);
        return [first, end,
                less = projected_function<Less, Proj>{std::move(less), proj, proj}]() mutable {
            return Run::run(first, end, less);
        };
    }
    template <class R, class Less = std::less<>, class Proj = std::identity>
        requires sortable_range<R, Less, Proj>
    static auto bind(R&& r, Less less = {}, Proj proj = {}) {
        return bind(std::ranges::begin(r), std::ranges::end(r), std::move(less), std::move(proj));
    }
};
// The description of an algorithm that also takes a place in the middle.
template <class Run>
struct select_description {
    template <class It, std::sentinel_for<It> End, class Less = std::less<>,
              class Proj = std::identity>
        requires sortable_iterator<It, Less, Proj>
    static auto bind(It first, It middle, End last, Less less = {}, Proj proj = {}) {
        const It end = std::ranges::next(middle, last);
        return [first, middle, end,
                less = projected_function<Less, Proj>{std::move(less), proj, proj}]() mutable {
            return Run::run(first, middle, end, less);
        };
    }
    template <class R, class Less = std::less<>, class Proj = std::identity>
        requires sortable_range<R, Less, Proj>
    static auto bind(R&& r, std::ranges::iterator_t<R> middle, Less less = {}, Proj proj = {}) {
        return bind(std::ranges::begin(r), std::move(middle), std::ranges::end(r), std::move(less),
                    std::move(proj));
    }
};

struct run_sort {
    template <class It, class Less>
    static bool run(It first, It last, Less& less) {
        return internal::sort_with(first, last, less);
    }
};
struct run_stable_sort {
    template <class It, class Less>
    static bool run(It first, It last, Less& less) {
        return internal::stable_sort_with(first, last, less);
    }
};
struct run_partial_sort {
    template <class It, class Less>
    static bool run(It first, It middle, It last, Less& less) {
        return internal::partial_sort_with(first, middle, last, less);
    }
};
struct run_nth_element {
    template <class It, class Less>
    static bool run(It first, It nth, It last, Less& less) {
        return internal::nth_element_with(first, nth, last, less);
    }
};

}  // namespace coppice::parallel::internal
