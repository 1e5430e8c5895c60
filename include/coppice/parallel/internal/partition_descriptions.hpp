// The descriptions (algorithm.hpp) of merge, partition, and stable_partition.
#pragma once

#include <coppice/parallel/internal/algorithm.hpp>
#include <coppice/parallel/internal/functions.hpp>
#include <coppice/parallel/internal/partition_engines.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>

namespace coppice::parallel::internal {

struct merge_description {
    template <std::forward_iterator It, std::sentinel_for<It> End, std::forward_iterator It2,
              std::sentinel_for<It2> End2, output Out, class Less = std::less<>>
        requires(!std::ranges::range<Out>) &&
                std::predicate<Less&, std::iter_reference_t<It2>, std::iter_reference_t<It>>
    static auto bind(It first, End last, It2 first2, End2 last2, Out out, Less less = {}) {
        return [first, end = std::ranges::next(first, last), first2,
                end2 = std::ranges::next(first2, last2), out,
                less = projected_function<Less>{std::move(less)}]() mutable -> std::optional<Out> {
            if (!internal::merge_with(first, end, first2, end2, out, less)) return std::nullopt;
            const auto both = std::ranges::distance(first, end);
            const auto both2 = std::ranges::distance(first2, end2);
            return std::ranges::next(std::ranges::next(out, both), both2);
        };
    }
    template <std::forward_iterator It, std::sentinel_for<It> End, std::forward_iterator It2,
              std::sentinel_for<It2> End2, class Out, class OutEnd, class Less = std::less<>,
              class Proj = std::identity, class Proj2 = std::identity>
        requires bounded_output<Out, OutEnd> &&
                 std::predicate<Less&, projected_t<Proj2, It2>, projected_t<Proj, It>>
    static auto bind(It first, End last, It2 first2, End2 last2, Out out, OutEnd out_end,
                     Less less = {}, Proj proj = {}, Proj2 proj2 = {}) {
        return bind(std::ranges::subrange(first, last), std::ranges::subrange(first2, last2),
                    std::ranges::subrange(out, out_end), std::move(less), std::move(proj),
                    std::move(proj2));
    }
    template <std::ranges::forward_range R, std::ranges::forward_range R2, output Out,
              class Less = std::less<>, class Proj = std::identity, class Proj2 = std::identity>
        requires std::predicate<Less&, projected_t<Proj2, std::ranges::iterator_t<R2>>,
                                projected_t<Proj, std::ranges::iterator_t<R>>>
    static auto bind(R&& r, R2&& r2, Out&& out, Less less = {}, Proj proj = {}, Proj2 proj2 = {}) {
        using result =
            std::ranges::merge_result<std::ranges::borrowed_iterator_t<R>,
                                      std::ranges::borrowed_iterator_t<R2>, output_iterator_t<Out>>;
        const auto first = std::ranges::begin(r);
        const auto first2 = std::ranges::begin(r2);
        const std::ptrdiff_t size = internal::size_of(r);
        const std::ptrdiff_t size2 = internal::size_of(r2);
        const auto room = internal::output_count(size + size2, out);
        const auto to = internal::output_begin(out);
        // A merge compares an element of the second range with one of the first.
        return [first, size, first2, size2, room, to,
                less = projected_function<Less, Proj2, Proj>{
                    std::move(less), std::move(proj2),
                    std::move(proj)}]() mutable -> std::optional<result> {
            const std::ptrdiff_t taken =
                internal::merge_prefix(first, size, first2, size2, room, less);
            const auto end =
                std::ranges::next(first, static_cast<std::ranges::range_difference_t<R>>(taken));
            const auto end2 = std::ranges::next(
                first2, static_cast<std::ranges::range_difference_t<R2>>(room - taken));
            if (!internal::merge_with(first, end, first2, end2, to, less)) return std::nullopt;
            return result{end, end2, std::ranges::next(to, room)};
        };
    }
};

// Run::run(first, last, predicate, complete) partitions.
template <class Run>
struct partition_description {
    template <std::forward_iterator It, std::sentinel_for<It> End, class Predicate,
              class Proj = std::identity>
        requires std::permutable<It> && projected_predicate<Predicate, Proj, It>
    static auto bind(It first, End last, Predicate predicate, Proj proj = {}) {
        return [first, end = std::ranges::next(first, last),
                predicate = projected_function<Predicate, Proj>{
                    std::move(predicate), std::move(proj)}]() mutable -> std::optional<It> {
            bool complete = true;
            const It middle = Run::run(first, end, predicate, complete);
            return complete ? std::optional<It>(middle) : std::nullopt;
        };
    }
    template <std::ranges::forward_range R, class Predicate, class Proj = std::identity>
        requires std::permutable<std::ranges::iterator_t<R>> &&
                 projected_predicate<Predicate, Proj, std::ranges::iterator_t<R>>
    static auto bind(R&& r, Predicate predicate, Proj proj = {}) {
        using result = std::ranges::borrowed_subrange_t<R>;
        const auto first = std::ranges::begin(r);
        const auto end = std::ranges::next(first, std::ranges::end(r));
        return [first, end,
                predicate = projected_function<Predicate, Proj>{
                    std::move(predicate), std::move(proj)}]() mutable -> std::optional<result> {
            bool complete = true;
            const auto middle = Run::run(first, end, predicate, complete);
            return complete ? std::optional<result>(result(middle, end)) : std::nullopt;
        };
    }
};

struct run_partition {
    template <class It, class Predicate>
    static It run(It first, It last, Predicate& predicate, bool& complete) {
        return internal::partition_with(first, last, predicate, complete);
    }
};
struct run_stable_partition {
    template <class It, class Predicate>
    static It run(It first, It last, Predicate& predicate, bool& complete) {
        return internal::stable_partition_with(first, last, predicate, complete);
    }
};

}  // namespace coppice::parallel::internal
