// The engines of transform, copy, fill, generate, and adjacent_difference, also with a count.
#pragma once
// Each element of the output is written once, by the part that reads its element of the input.

#include <coppice/parallel/internal/algorithm.hpp>
#include <coppice/parallel/internal/functions.hpp>
#include <coppice/parallel/internal/loops.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>

namespace coppice::parallel::internal {

// An output that may be its input, as the compiler knows if both are one variable. It has a loop of
// its own, because one that is compiled for two arrays runs without vector instructions if they
// turn out to be the same.
template <class It, class Out>
concept vectorized_in_place = std::contiguous_iterator<It> && std::contiguous_iterator<Out> &&
                              std::same_as<std::iter_value_t<It>, std::iter_value_t<Out>> &&
                              std::is_arithmetic_v<std::iter_value_t<Out>>;

template <class It, class Out, class F>
void write_part(It i, const It last, Out o, F& call) {
    if constexpr (vectorized_in_place<It, Out>) {
        if (std::to_address(i) == std::to_address(o)) {
            for (const Out end = o + (last - i); o != end; ++o) {
                *o = call(static_cast<std::iter_reference_t<It>>(*o));
            }
            return;
        }
    }
    for (; i != last; ++i, ++o) *o = call(*i);
}
template <class It, class It2, class Out, class F>
void write_part(It i, const It last, It2 j, Out o, F& call) {
    if constexpr (vectorized_in_place<It, Out>) {
        if (std::to_address(i) == std::to_address(o)) {
            for (const Out end = o + (last - i); o != end; ++o, ++j) {
                *o = call(static_cast<std::iter_reference_t<It>>(*o), *j);
            }
            return;
        }
    }
    if constexpr (vectorized_in_place<It2, Out>) {
        if (std::to_address(j) == std::to_address(o)) {
            for (; i != last; ++i, ++o) *o = call(*i, static_cast<std::iter_reference_t<It2>>(*o));
            return;
        }
    }
    for (; i != last; ++i, ++j, ++o) *o = call(*i, *j);
}

// Writes f(x) to `out` for each element x. Returns false if a stop request left elements out.
template <class It, class Out, class F>
bool write_each(It first, std::iter_difference_t<It> count, Out out, F& f) {
    if constexpr (random_access<It, Out>) {
        return internal::for_parts(std::ptrdiff_t{0}, static_cast<std::ptrdiff_t>(count),
                                   [first, out, &f](std::ptrdiff_t from, std::ptrdiff_t to) {
                                       loop_function<F, std::iter_reference_t<It>> call = f;
                                       internal::write_part(internal::behind(first, from),
                                                            internal::behind(first, to),
                                                            internal::behind(out, from), call);
                                   });
    } else {
        if (count == 0) return true;
        if (internal::leaves_out()) return false;
        for (; count != 0; --count, ++first, ++out) *out = f(*first);
        return true;
    }
}

template <class It, class It2, class Out, class F>
bool write_each(It first, std::iter_difference_t<It> count, It2 first2, Out out, F& f) {
    if constexpr (random_access<It, It2, Out>) {
        return internal::for_parts(
            std::ptrdiff_t{0}, static_cast<std::ptrdiff_t>(count),
            [first, first2, out, &f](std::ptrdiff_t from, std::ptrdiff_t to) {
                loop_function<F, std::iter_reference_t<It>, std::iter_reference_t<It2>> call = f;
                internal::write_part(internal::behind(first, from), internal::behind(first, to),
                                     internal::behind(first2, from), internal::behind(out, from),
                                     call);
            });
    } else {
        if (count == 0) return true;
        if (internal::leaves_out()) return false;
        for (; count != 0; --count, ++first, ++first2, ++out) *out = f(*first, *first2);
        return true;
    }
}

// Returns `value` if the work is complete, and otherwise no value.
template <class T>
std::optional<T> if_complete(bool complete, T value) {
    return complete ? std::optional<T>(std::move(value)) : std::nullopt;
}
template <class It, class Count>
It behind_out(It first, Count count) {
    return std::ranges::next(first, static_cast<std::iter_difference_t<It>>(count));
}

// An output that is given by two iterators.
template <class Out, class OutEnd>
concept bounded_output = std::forward_iterator<Out> && std::sentinel_for<OutEnd, Out>;

// Returns the position behind `count` elements; a count below 0 is 0, as in std.
template <class It>
It behind_count(It first, std::iter_difference_t<It> count) {
    return std::ranges::next(first, count < 0 ? 0 : count);
}

// Runs an engine that tells if it is complete, and returns the end of its elements.
template <class It, class Engine>
auto with_end(It last, Engine engine) {
    return [last, engine = std::move(engine)]() mutable {
        return internal::if_complete(engine(), last);
    };
}

struct transform_description {
    template <std::forward_iterator It, std::sentinel_for<It> End, output Out, class F>
        requires std::invocable<F&, std::iter_reference_t<It>> && (!std::ranges::range<Out>)
    static auto bind(It first, End last, Out out, F f) {
        const auto count = std::ranges::distance(first, last);
        return [first, count, out, call = projected_function<F>{std::move(f)}]() mutable {
            const bool all = internal::write_each(first, count, out, call);
            return internal::if_complete(all, internal::behind_out(out, count));
        };
    }
    template <std::forward_iterator It, std::sentinel_for<It> End, std::forward_iterator It2,
              output Out, class F>
        requires std::invocable<F&, std::iter_reference_t<It>, std::iter_reference_t<It2>> &&
                 (!std::ranges::range<Out>)
    static auto bind(It first, End last, It2 first2, Out out, F f) {
        const auto count = std::ranges::distance(first, last);
        return [first, count, first2, out, call = projected_function<F>{std::move(f)}]() mutable {
            const bool all = internal::write_each(first, count, first2, out, call);
            return internal::if_complete(all, internal::behind_out(out, count));
        };
    }
    // A function of one or two arguments tells if out_end is an end or the output.
    template <std::forward_iterator It, std::sentinel_for<It> End, class Out,
              std::sentinel_for<Out> OutEnd, class F, class Proj = std::identity>
        requires bounded_output<Out, OutEnd> && projected_callable<F, Proj, It>
    static auto bind(It first, End last, Out out, OutEnd out_end, F f, Proj proj = {}) {
        return bind(std::ranges::subrange(first, last), std::ranges::subrange(out, out_end),
                    std::move(f), std::move(proj));
    }
    template <std::ranges::forward_range R, output Out, class F, class Proj = std::identity>
        requires projected_callable<F, Proj, std::ranges::iterator_t<R>>
    static auto bind(R&& r, Out&& out, F f, Proj proj = {}) {
        using result = std::ranges::unary_transform_result<std::ranges::borrowed_iterator_t<R>,
                                                           output_iterator_t<Out>>;
        const auto first = std::ranges::begin(r);
        const auto count = internal::output_count(std::ranges::distance(r), out);
        const auto to = internal::output_begin(out);
        return [first, count, to,
                call = projected_function<F, Proj>{std::move(f), std::move(proj)}]() mutable {
            const bool all = internal::write_each(first, count, to, call);
            return internal::if_complete(
                all, result{std::ranges::next(first, count), internal::behind_out(to, count)});
        };
    }
    template <std::ranges::forward_range R, std::ranges::forward_range R2, output Out, class F,
              class Proj = std::identity, class Proj2 = std::identity>
        requires std::invocable<F&, projected_t<Proj, std::ranges::iterator_t<R>>,
                                projected_t<Proj2, std::ranges::iterator_t<R2>>>
    static auto bind(R&& r, R2&& r2, Out&& out, F f, Proj proj = {}, Proj2 proj2 = {}) {
        using result = std::ranges::binary_transform_result<std::ranges::borrowed_iterator_t<R>,
                                                            std::ranges::borrowed_iterator_t<R2>,
                                                            output_iterator_t<Out>>;
        const auto first = std::ranges::begin(r);
        const auto first2 = std::ranges::begin(r2);
        const auto shorter = std::min(internal::size_of(r), internal::size_of(r2));
        const auto count =
            static_cast<std::ranges::range_difference_t<R>>(internal::output_count(shorter, out));
        const auto to = internal::output_begin(out);
        return [first, first2, count, to,
                call = projected_function<F, Proj, Proj2>{std::move(f), std::move(proj),
                                                          std::move(proj2)}]() mutable {
            const bool all = internal::write_each(first, count, first2, to, call);
            return internal::if_complete(
                all, result{std::ranges::next(first, count), internal::behind_out(first2, count),
                            internal::behind_out(to, count)});
        };
    }
};

// copy is a transform by a function that returns its argument.
struct copy_description {
    template <std::forward_iterator It, std::sentinel_for<It> End, output Out>
        requires(!std::ranges::range<Out>)
    static auto bind(It first, End last, Out out) {
        return transform_description::bind(first, last, out, std::identity());
    }
    template <std::ranges::forward_range R, output Out>
    static auto bind(R&& r, Out&& out) {
        return transform_description::bind(static_cast<R&&>(r), static_cast<Out&&>(out),
                                           std::identity());
    }
    template <std::forward_iterator It, std::sentinel_for<It> End, class Out, class OutEnd>
        requires bounded_output<Out, OutEnd>
    static auto bind(It first, End last, Out out, OutEnd out_end) {
        return bind(std::ranges::subrange(first, last), std::ranges::subrange(out, out_end));
    }
};

struct copy_n_description {
    template <std::forward_iterator It, output Out>
        requires(!std::ranges::range<Out>)
    static auto bind(It first, std::iter_difference_t<It> count, Out out) {
        return copy_description::bind(first, internal::behind_count(first, count), out);
    }
    template <std::forward_iterator It, class Out, class OutEnd>
        requires bounded_output<Out, OutEnd>
    static auto bind(It first, std::iter_difference_t<It> count, Out out, OutEnd out_end) {
        return copy_description::bind(first, internal::behind_count(first, count), out, out_end);
    }
};

struct fill_description {
    static constexpr std::size_t ranges_max = 1;

    template <std::forward_iterator It, std::sentinel_for<It> End, class T>
        requires std::indirectly_writable<It, const T&>
    static auto bind(It first, End last, T value) {
        const auto count = std::ranges::distance(first, last);
        return [first, count, value = std::move(value)]() {
            return internal::for_parts(
                first, count, [&value](It i, It end) { std::fill(i, end, std::as_const(value)); });
        };
    }
    template <std::ranges::forward_range R, class T>
        requires std::indirectly_writable<std::ranges::iterator_t<R>, const T&>
    static auto bind(R&& r, T value) {
        return bind(std::ranges::begin(r), std::ranges::end(r), std::move(value));
    }
};

struct fill_n_description {
    static constexpr std::size_t ranges_max = 0;  // the value may be one

    template <std::forward_iterator It, class T>
        requires std::indirectly_writable<It, const T&>
    static auto bind(It first, std::iter_difference_t<It> count, T value) {
        const It last = internal::behind_count(first, count);
        return internal::with_end(last, fill_description::bind(first, last, std::move(value)));
    }
};

struct generate_description {
    template <std::forward_iterator It, std::sentinel_for<It> End, class F>
        requires std::invocable<F&> && std::indirectly_writable<It, std::invoke_result_t<F&>>
    static auto bind(It first, End last, F f) {
        const auto count = std::ranges::distance(first, last);
        return [first, count, f = std::move(f)]() mutable {
            return internal::for_parts(first, count, [&f](It i, const It end) {
                loop_function<F> call = f;
                for (; i != end; ++i) *i = call();
            });
        };
    }
    template <std::ranges::forward_range R, class F>
        requires std::invocable<F&>
    static auto bind(R&& r, F f) {
        return bind(std::ranges::begin(r), std::ranges::end(r), std::move(f));
    }
};

struct generate_n_description {
    template <std::forward_iterator It, class F>
        requires std::invocable<F&> && std::indirectly_writable<It, std::invoke_result_t<F&>>
    static auto bind(It first, std::iter_difference_t<It> count, F f) {
        const It last = internal::behind_count(first, count);
        return internal::with_end(last, generate_description::bind(first, last, std::move(f)));
    }
};

struct adjacent_difference_description {
    template <std::forward_iterator It, std::sentinel_for<It> End, output Out,
              class F = std::minus<>>
        requires std::invocable<F&, std::iter_reference_t<It>, std::iter_reference_t<It>> &&
                 (!std::ranges::range<Out>)
    static auto bind(It first, End last, Out out, F f = {}) {
        const auto count = std::ranges::distance(first, last);
        return [first, count, out, call = projected_function<F>{std::move(f)}]() mutable {
            return internal::if_complete(write(first, count, out, call),
                                         internal::behind_out(out, count));
        };
    }
    template <std::ranges::forward_range R, output Out, class F = std::minus<>>
        requires std::invocable<F&, std::ranges::range_reference_t<R>,
                                std::ranges::range_reference_t<R>>
    static auto bind(R&& r, Out&& out, F f = {}) {
        using result =
            std::ranges::in_out_result<std::ranges::borrowed_iterator_t<R>, output_iterator_t<Out>>;
        const auto first = std::ranges::begin(r);
        const auto count = internal::output_count(std::ranges::distance(r), out);
        const auto to = internal::output_begin(out);
        return [first, count, to, call = projected_function<F>{std::move(f)}]() mutable {
            return internal::if_complete(
                write(first, count, to, call),
                result{std::ranges::next(first, count), internal::behind_out(to, count)});
        };
    }

private:
    template <class It, class Out, class F>
    static bool write(It first, std::iter_difference_t<It> count, Out out, F& call) {
        if (count == 0) return true;
        const bool all = internal::write_each(std::ranges::next(first), count - 1, first,
                                              std::ranges::next(out), call);
        *out = *first;
        return all;
    }
};

}  // namespace coppice::parallel::internal
