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

// True if the elements are numbers that are compared by <.
template <class It, class Less, class Proj>
inline constexpr bool compares_numbers =
    std::random_access_iterator<It> && std::is_arithmetic_v<std::iter_value_t<It>> &&
    std::is_reference_v<std::iter_reference_t<It>> && std::same_as<Proj, std::identity> &&
    (std::same_as<Less, std::less<>> || std::same_as<Less, std::ranges::less> ||
     std::same_as<Less, std::less<std::iter_value_t<It>>>);
// True if they are integers of one or two bytes, too. A part is then walked twice, to find the
// value and then its position: the compiler vectorizes both walks.
template <class It, class Less, class Proj>
inline constexpr bool compares_short_integers =
    compares_numbers<It, Less, Proj> && std::integral<std::iter_value_t<It>> &&
    sizeof(std::iter_value_t<It>) <= 2;

// Calls take(k) for each k, in order, for which is_better(*k). A better one is rare, so the
// branches are predicted, and no comparison waits for the one before it, as it would for a
// conditional move.
template <class It, class IsBetter, class Take>
void take_better(It i, It last, IsBetter is_better, Take take) {
#ifdef __clang__
    // clang vectorizes a question for 16 elements. What g++ 12 makes of it takes up to 3 times as
    // long as the 4 branches below.
    constexpr std::iter_difference_t<It> step = 16;
    for (; last - i >= step; i += step) {
        unsigned any = 0;
        for (std::iter_difference_t<It> k = 0; k != step; ++k) any |= unsigned(is_better(i[k]));
        if (any == 0) [[likely]]
            continue;
        for (std::iter_difference_t<It> k = 0; k != step; ++k) {
            if (is_better(i[k])) take(i + k);
        }
    }
#else
    constexpr std::iter_difference_t<It> step = 4;
    for (; last - i >= step; i += step) {
        if (is_better(i[0])) [[unlikely]]
            take(i);
        if (is_better(i[1])) [[unlikely]]
            take(i + 1);
        if (is_better(i[2])) [[unlikely]]
            take(i + 2);
        if (is_better(i[3])) [[unlikely]]
            take(i + 3);
    }
#endif
    for (; i != last; ++i) {
        if (is_better(*i)) take(i);
    }
}

// Returns the first of the least elements and the last of the greatest, found in one walk.
template <class It, class Less, class Proj>
std::pair<It, It> extremes_of(It i, It last, projected_function<Less, Proj>& less) {
    if constexpr (compares_short_integers<It, Less, Proj>) {
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
    } else if constexpr (compares_numbers<It, Less, Proj>) {
        using value = std::iter_value_t<It>;
        std::pair<It, It> found(i, i);
        value least = *i, greatest = *i;
        internal::take_better(
            i, last, [&least, &greatest](value x) { return (x < least) | !(x < greatest); },
            [&found, &least, &greatest](It k) {
                if (*k < least) {
                    found.first = k;
                    least = *k;
                } else {
                    found.second = k;
                    greatest = *k;
                }
            });
        return found;
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

// Folds the positions of parts. of(i, last, less) finds the position in a part, and better(left,
// right) chooses between the positions of two parts.
template <class Found, class It, class Less, class Of, class Better>
fold_result<Found> search_extremes(It first, std::iter_difference_t<It> count, Less& less, Of of,
                                   Better better) {
    return internal::fold<Found>(
        first, count,
        [&less, of, better](std::optional<Found>& sum, It i, const It last) {
            loop_function<Less, std::iter_reference_t<It>, std::iter_reference_t<It>> call = less;
            const Found found = of(i, last, call);
            sum = sum ? better(*sum, found, call) : found;
        },
        [&less, better](Found&& left, Found&& right) { return better(left, right, less); });
}

// How an algorithm chooses: `of` for one part, `better` between the results of two.
// The first of the least, or of the greatest, elements; a part is not empty.
template <bool Greatest>
struct choose_one {
    template <class It>
    using found = It;
    template <class It, class Less, class Proj>
    static It of(It i, It last, projected_function<Less, Proj>& less) {
        if constexpr (compares_short_integers<It, Less, Proj>) {
            auto best = *i;
            for (It k = i; k != last; ++k) best = (Greatest ? best < *k : *k < best) ? *k : best;
            while (*i != best) ++i;
            return i;
        } else if constexpr (compares_numbers<It, Less, Proj>) {
            using value = std::iter_value_t<It>;
            It best = i;
            value extreme = *i;
            internal::take_better(
                i, last, [&extreme](value x) { return Greatest ? extreme < x : x < extreme; },
                [&best, &extreme](It k) {
                    best = k;
                    extreme = *k;
                });
            return best;
        } else {
            It best = i;
            for (++i; i != last; ++i) best = better(best, i, less);
            return best;
        }
    }
    template <class It, class Less>
    static It better(It left, It right, Less& less) {
        const bool is_right = Greatest ? less(*left, *right) : less(*right, *left);
        return is_right ? right : left;
    }
};
using choose_least = choose_one<false>;
using choose_greatest = choose_one<true>;
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
