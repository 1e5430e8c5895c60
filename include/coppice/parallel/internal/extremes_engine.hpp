// The engines of min_element, max_element, and minmax_element.
#pragma once

#include <coppice/parallel/internal/algorithm.hpp>
#include <coppice/parallel/internal/functions.hpp>
#include <coppice/parallel/internal/loops.hpp>

#include <algorithm>
#include <concepts>
#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>

namespace coppice::parallel::internal {

// True if elements are compared as integers are by <. A part is then walked twice: the compiler
// vectorizes both the search for the value and the search for where it is.
template <class It, class Less, class Proj>
inline constexpr bool compares_integers =
    std::random_access_iterator<It> && std::integral<std::iter_value_t<It>> &&
    std::is_reference_v<std::iter_reference_t<It>> && std::same_as<Proj, std::identity> &&
    (std::same_as<Less, std::less<>> || std::same_as<Less, std::ranges::less> ||
     std::same_as<Less, std::less<std::iter_value_t<It>>>);

// The first of the least elements of a part, which is not empty.
template <class It, class Less, class Proj>
It least_of(It i, It last, projected_function<Less, Proj>& less) {
    if constexpr (compares_integers<It, Less, Proj>) {
        auto least = *i;
        for (It k = i; k != last; ++k) least = *k < least ? *k : least;
        while (*i != least) ++i;
        return i;
    } else {
        It least = i;
        for (++i; i != last; ++i) {
            if (less(*i, *least)) least = i;
        }
        return least;
    }
}
// The first of the greatest elements, likewise.
template <class It, class Less, class Proj>
It first_greatest_of(It i, It last, projected_function<Less, Proj>& less) {
    if constexpr (compares_integers<It, Less, Proj>) {
        auto greatest = *i;
        for (It k = i; k != last; ++k) greatest = greatest < *k ? *k : greatest;
        while (*i != greatest) ++i;
        return i;
    } else {
        It greatest = i;
        for (++i; i != last; ++i) {
            if (less(*greatest, *i)) greatest = i;
        }
        return greatest;
    }
}

// Both in one walk: the first of the least elements, and the last of the greatest.
template <class It, class Less, class Proj>
std::pair<It, It> extremes_of(It i, It last, projected_function<Less, Proj>& less) {
    if constexpr (compares_integers<It, Less, Proj>) {
        auto least = *i;
        auto greatest = *i;
        for (It k = i; k != last; ++k) {
            least = *k < least ? *k : least;
            greatest = greatest < *k ? *k : greatest;
        }
        while (*i != least) ++i;
        do {
            --last;
        } while (*last != greatest);
        return {i, last};
    } else {
        std::pair<It, It> found(i, i);
        for (++i; i != last; ++i) {
            if (less(*i, *found.first)) {
                found.first = i;
            } else if (!less(*i, *found.second)) {
                found.second = i;
            }
        }
        return found;
    }
}

// Folds parts to positions. Of(i, last, less) finds those of a part; better(left, right) chooses.
template <class Found, class It, class Less, class Of, class Better>
fold_result<Found> search_extremes(It first, std::iter_difference_t<It> count, Less& less, Of of,
                                   Better better) {
    return internal::fold<Found>(
        first, count,
        [&less, of, better](std::optional<Found>& sum, It i, const It last) {
            loop_function<Less> call = less;
            const Found found = of(i, last, call);
            sum = sum ? better(*sum, found, call) : found;
        },
        [&less, better](Found&& left, Found&& right) { return better(left, right, less); });
}

// How an algorithm chooses: `of` for one part, `better` between the results of two.
struct choose_least {
    template <class It>
    using found = It;
    template <class It, class Less>
    static It of(It i, It last, Less& less) {
        return internal::least_of(i, last, less);
    }
    template <class It, class Less>
    static It better(It left, It right, Less& less) {
        return less(*right, *left) ? right : left;
    }
};
struct choose_greatest {
    template <class It>
    using found = It;
    template <class It, class Less>
    static It of(It i, It last, Less& less) {
        return internal::first_greatest_of(i, last, less);
    }
    template <class It, class Less>
    static It better(It left, It right, Less& less) {
        return less(*left, *right) ? right : left;
    }
};
struct choose_both {
    template <class It>
    using found = std::pair<It, It>;
    template <class It, class Less>
    static std::pair<It, It> of(It i, It last, Less& less) {
        return internal::extremes_of(i, last, less);
    }
    template <class It, class Less>
    static std::pair<It, It> better(const std::pair<It, It>& left, const std::pair<It, It>& right,
                                    Less& less) {
        return {less(*right.first, *left.first) ? right.first : left.first,
                less(*right.second, *left.second) ? left.second : right.second};
    }
};

template <class Choice>
struct extremes_description {
    template <std::forward_iterator It, std::sentinel_for<It> End, class Less = std::less<>,
              class Proj = std::identity>
        requires std::predicate<Less&, projected_t<Proj, It>, projected_t<Proj, It>>
    static auto bind(It first, End last, Less less = {}, Proj proj = {}) {
        return engine<typename Choice::template found<It>>(first, last, std::move(less),
                                                           std::move(proj));
    }
    template <std::ranges::forward_range R, class Less = std::less<>, class Proj = std::identity>
        requires std::predicate<Less&, projected_t<Proj, std::ranges::iterator_t<R>>,
                                projected_t<Proj, std::ranges::iterator_t<R>>>
    static auto bind(R&& r, Less less = {}, Proj proj = {}) {
        using borrowed = std::ranges::borrowed_iterator_t<R>;
        using result = std::conditional_t<std::same_as<Choice, choose_both>,
                                          std::ranges::minmax_element_result<borrowed>, borrowed>;
        return engine<result>(std::ranges::begin(r), std::ranges::end(r), std::move(less),
                              std::move(proj));
    }

private:
    template <class Result, class It, class End, class Less, class Proj>
    static auto engine(It first, End last, Less less, Proj proj) {
        using found = typename Choice::template found<It>;
        const auto count = std::ranges::distance(first, last);
        return [first, count,
                less = projected_function<Less, Proj>{std::move(less), proj, proj}]() mutable {
            const fold_result<found> all = internal::search_extremes<found>(
                first, count, less,
                [](It i, It end, auto& call) { return Choice::of(i, end, call); },
                [](const found& left, const found& right, auto& call) -> found {
                    return Choice::better(left, right, call);
                });
            if (!all.complete) return std::optional<Result>();
            if constexpr (std::same_as<Choice, choose_both>) {
                const found both = all.sum.value_or(found(first, first));
                return std::optional<Result>(Result{both.first, both.second});
            } else {
                return std::optional<Result>(Result(all.sum.value_or(first)));
            }
        };
    }
};

}  // namespace coppice::parallel::internal
