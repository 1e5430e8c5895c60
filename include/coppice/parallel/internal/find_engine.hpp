// The engines of find_if, any_of, all_of, and none_of: find where a sequential search ends.
#pragma once
// A sequential search ends at the first match or exception of the predicate. The parallel search
// has the same result: parts behind the first known end are left out, and parts before it continue.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/parallel/internal/algorithm.hpp>
#include <coppice/parallel/internal/functions.hpp>
#include <coppice/parallel/internal/loops.hpp>

#include <algorithm>
#include <concepts>
#include <exception>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <ranges>
#include <utility>

namespace coppice::parallel::internal {

// The place where a part of a search ended: `at`, or nowhere.
template <class Difference>
struct search_end {
    static constexpr Difference nowhere = std::numeric_limits<Difference>::max();
    Difference at = nowhere;
    std::exception_ptr error;  // if the predicate threw
};

// A search. Find is called as find(from, to), and returns the offset of the first match, or `to`.
template <class Difference, class Find>
class find_walk : immovable {
    using end_type = search_end<Difference>;

public:
    explicit find_walk(Find& find) noexcept : find_(find) {}

    end_type run(Difference from, Difference to) {
        end_type end;
        time_point time = loop_state::now();
        while (from < to) {
            // Relaxed, here and below: only saves work; joins order the results.
            if (from >= end_.load(relaxed)) return end;
            if (state_.is_over()) {
                lower(left_out_, from);
                return end;
            }
            const auto left = static_cast<std::uint64_t>(to - from);
            if (state_.wants_cut(left)) {
                const Difference middle = from + (to - from) / 2;
                auto [lower, upper] = fork_join([this, from, middle] { return run(from, middle); },
                                                [this, middle, to] { return run(middle, to); });
                return lower.at != end_type::nowhere ? std::move(lower) : std::move(upper);
            }
            const std::uint64_t count = state_.run(left, time, [this, &end, from](std::uint64_t n) {
                search(end, from, from + static_cast<Difference>(n));
            });
            if (end.at != end_type::nowhere) return end;
            from += static_cast<Difference>(count);
        }
        return end;
    }
    // Returns true if a stop request left out something before `at`.
    bool left_out_before(Difference at) const noexcept { return left_out_.load(relaxed) < at; }

private:
    void search(end_type& end, Difference from, Difference to) noexcept {
        try {
            const Difference found = find_(from, to);
            if (found == to) return;
            end.at = found;
        } catch (...) {
            end.at = from;  // a match in this part would have ended it before
            end.error = std::current_exception();
        }
        lower(end_, end.at);
    }
    static void lower(atomic<Difference>& word, Difference value) noexcept {
        Difference seen = word.load(relaxed);
        while (value < seen && !word.compare_exchange_weak(seen, value, relaxed, relaxed)) {
        }
    }

    Find& find_;
    loop_state state_;
    atomic<Difference> end_{end_type::nowhere};  // lowered by any part; read by all
    atomic<Difference> left_out_{end_type::nowhere};
};

// Returns the offset of the first match among `count` elements, or `count` if there is none.
// Returns no value if a stop request left out elements before that place. Errors: the exception
// that the predicate threw before the first match.
template <class Difference, class Find>
std::optional<Difference> find_offset(Difference count, Find find) {
    find_walk<Difference, Find> walk(find);
    search_end<Difference> end = walk.run(0, count);
    if (walk.left_out_before(end.at)) return std::nullopt;
    if (end.error) std::rethrow_exception(std::move(end.error));
    return std::min(end.at, count);
}

// Compilers unroll no loop that may end early, so this one is unrolled, as std's are.
template <class It, class F>
It first_match(It i, std::ptrdiff_t count, F& f) {
    for (; count >= 4; count -= 4) {
        if (f(*i)) return i;
        if (f(*++i)) return i;
        if (f(*++i)) return i;
        if (f(*++i)) return i;
        ++i;
    }
    for (; count != 0 && !f(*i); --count) ++i;
    return i;
}

// Finds the first match in [first, last), as std::find_if does.
template <class It, class F>
std::optional<It> find_position(It first, std::iter_difference_t<It> count, F& f) {
    using difference = std::ptrdiff_t;
    if constexpr (random_access<It>) {
        const std::optional<difference> found = internal::find_offset(
            static_cast<difference>(count),
            [first, &f](difference from, difference to) -> difference {
                loop_function<F, std::iter_reference_t<It>> call = f;
                const It i = internal::first_match(internal::behind(first, from), to - from, call);
                return internal::part_size(first, i);
            });
        return found ? std::optional<It>(internal::behind(first, *found)) : std::nullopt;
    } else {
        if (count != 0 && internal::leaves_out()) return std::nullopt;
        while (count != 0 && !f(*first)) ++first, --count;
        return first;
    }
}

struct find_if_description {
    template <std::forward_iterator It, std::sentinel_for<It> End, class F,
              class Proj = std::identity>
        requires projected_predicate<F, Proj, It>
    static auto bind(It first, End last, F f, Proj proj = {}) {
        const auto count = std::ranges::distance(first, last);
        return [first, count,
                call = projected_function<F, Proj>{std::move(f), std::move(proj)}]() mutable {
            return internal::find_position(first, count, call);
        };
    }
    template <std::ranges::forward_range R, class F, class Proj = std::identity>
        requires projected_predicate<F, Proj, std::ranges::iterator_t<R>>
    static auto bind(R&& r, F f, Proj proj = {}) {
        using result = std::ranges::borrowed_iterator_t<R>;
        return [engine = bind(std::ranges::begin(r), std::ranges::end(r), std::move(f),
                              std::move(proj))]() mutable {
            const auto found = engine();
            return found ? std::optional<result>(result(*found)) : std::nullopt;
        };
    }
};

struct find_if_not_description {
    template <std::forward_iterator It, std::sentinel_for<It> End, class F,
              class Proj = std::identity>
        requires projected_predicate<F, Proj, It>
    static auto bind(It first, End last, F f, Proj proj = {}) {
        return find_if_description::bind(
            first, last,
            negated_function<projected_function<F, Proj>>{{std::move(f), std::move(proj)}});
    }
    template <std::ranges::forward_range R, class F, class Proj = std::identity>
        requires projected_predicate<F, Proj, std::ranges::iterator_t<R>>
    static auto bind(R&& r, F f, Proj proj = {}) {
        return find_if_description::bind(
            static_cast<R&&>(r),
            negated_function<projected_function<F, Proj>>{{std::move(f), std::move(proj)}});
    }
};

// Returns `FoundMeans` if an element satisfies the predicate, or, if Negates, does not satisfy it.
template <bool Negates, bool FoundMeans>
struct any_description {
    template <std::forward_iterator It, std::sentinel_for<It> End, class F,
              class Proj = std::identity>
        requires projected_predicate<F, Proj, It>
    static auto bind(It first, End last, F f, Proj proj = {}) {
        using function = projected_function<F, Proj>;
        using predicate = std::conditional_t<Negates, negated_function<function>, function>;
        const auto count = std::ranges::distance(first, last);
        return [first, count, call = predicate{function{std::move(f), std::move(proj)}}]() mutable {
            const auto found = internal::find_position(first, count, call);
            if (!found) return std::optional<bool>();
            const bool at_end = *found == std::ranges::next(first, count);
            return std::optional<bool>(at_end != FoundMeans);
        };
    }
    template <std::ranges::forward_range R, class F, class Proj = std::identity>
        requires projected_predicate<F, Proj, std::ranges::iterator_t<R>>
    static auto bind(R&& r, F f, Proj proj = {}) {
        return bind(std::ranges::begin(r), std::ranges::end(r), std::move(f), std::move(proj));
    }
};

}  // namespace coppice::parallel::internal
