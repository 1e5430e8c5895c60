// The engine of for_each and its like: a loop over the elements of a range.
#pragma once

#include <coppice/exec/internal/invoke.hpp>
#include <coppice/parallel/internal/algorithm.hpp>
#include <coppice/pool/parallel.hpp>

#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <type_traits>

namespace coppice::parallel::internal {

template <class F, class Proj, class It>
concept projected_callable =
    std::invocable<F&, std::invoke_result_t<Proj&, std::iter_reference_t<It>>>;

// Calls body(i, last) for ranges of iterators that make up `count` elements from `first` on, side
// by side. The loops of the bodies are plain loops over iterators, so that the compiler vectorizes
// them. In order, in one call, if the iterators have no random access. Returns false if a stop
// request left elements out.
template <class It, class Body>
bool for_parts(It first, std::iter_difference_t<It> count, Body body) {
    using difference = std::iter_difference_t<It>;
    if constexpr (std::random_access_iterator<It>) {
        return parallel_for(difference(0), count, [first, &body](difference from, difference to) {
            body(first + from, first + to);
        });
    } else {
        if (fork_join_stop_token().stop_requested()) return count == 0;
        body(first, std::ranges::next(first, count));
        return true;
    }
}

// Calls f on the projection of each element. The loop reads f and proj from the stack of its own
// call: nothing that it writes can change where they are.
template <class It, class F, class Proj>
bool for_each_part(It first, std::iter_difference_t<It> count, F& f, Proj& proj) {
    return internal::for_parts(first, count, [&f, &proj](It i, const It last) {
        for (; i != last; ++i) {
            execution::internal::invoke(f, execution::internal::invoke(proj, *i));
        }
    });
}

struct for_each_description {
    template <std::forward_iterator It, std::sentinel_for<It> End, class F,
              class Proj = std::identity>
        requires projected_callable<F, Proj, It>
    static auto bind(It first, End last, F f, Proj proj = {}) {
        const auto count = std::ranges::distance(first, last);
        return [first, count, f = std::move(f), proj = std::move(proj)]() mutable {
            return internal::for_each_part(first, count, f, proj);
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
        return [first, count, f = std::move(f), proj = std::move(proj)]() mutable {
            const bool all = internal::for_each_part(first, count, f, proj);
            return all ? std::optional<It>(std::ranges::next(first, count)) : std::nullopt;
        };
    }
};

}  // namespace coppice::parallel::internal
