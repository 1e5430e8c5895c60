// The engines of for_each and for_each_n.
#pragma once

#include <coppice/parallel/internal/algorithm.hpp>
#include <coppice/parallel/internal/functions.hpp>
#include <coppice/parallel/internal/loops.hpp>

#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <utility>

namespace coppice::parallel::internal {

template <class It, class F>
bool call_each(It first, std::iter_difference_t<It> count, F& f) {
    return internal::for_parts(first, count, [&f](It i, const It last) {
        loop_function<F, std::iter_reference_t<It>> call = f;
        for (; i != last; ++i) call(*i);
    });
}

struct for_each_description {
    template <std::forward_iterator It, std::sentinel_for<It> End, class F,
              class Proj = std::identity>
        requires projected_callable<F, Proj, It>
    static auto bind(It first, End last, F f, Proj proj = {}) {
        const auto count = std::ranges::distance(first, last);
        return [first, count,
                call = projected_function<F, Proj>{std::move(f), std::move(proj)}]() mutable {
            return internal::call_each(first, count, call);
        };
    }
    template <std::ranges::forward_range R, class F, class Proj = std::identity>
        requires projected_callable<F, Proj, std::ranges::iterator_t<R>>
    static auto bind(R&& r, F f, Proj proj = {}) {
        return bind(std::ranges::begin(r), std::ranges::end(r), std::move(f), std::move(proj));
    }
};

struct for_each_n_description {
    template <std::forward_iterator It, class F, class Proj = std::identity>
        requires projected_callable<F, Proj, It>
    static auto bind(It first, std::iter_difference_t<It> count, F f, Proj proj = {}) {
        if (count < 0) count = 0;
        return [first, count,
                call = projected_function<F, Proj>{std::move(f), std::move(proj)}]() mutable {
            const bool all = internal::call_each(first, count, call);
            return all ? std::optional<It>(std::ranges::next(first, count)) : std::nullopt;
        };
    }
};

}  // namespace coppice::parallel::internal
