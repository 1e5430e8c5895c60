// The engines of the scans.
#pragma once

#include <coppice/parallel/internal/algorithm.hpp>
#include <coppice/parallel/internal/functions.hpp>
#include <coppice/parallel/internal/loops.hpp>
#include <coppice/parallel/internal/reduce_engine.hpp>
#include <coppice/parallel/internal/transform_engine.hpp>
#include <coppice/parallel/internal/windows.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

namespace coppice::parallel::internal {

// Scans `count` elements, at least one. `sum` is the sum of everything before them, which an
// exclusive scan needs.
template <bool Inclusive, class T, class It, class Out, class Op, class F>
void scan_elements(std::optional<T>& sum, It i, std::ptrdiff_t count, Out out, Op& op, F& f) {
    if constexpr (Inclusive) {
        T total = sum ? T(op(*std::move(sum), f(*i))) : T(f(*i));
        *out = total;
        for (++i, ++out, --count; count > 0; --count, ++i, ++out) {
            total = op(std::move(total), f(*i));
            *out = total;
        }
        sum.emplace(std::move(total));
    } else {
        T total = *std::move(sum);
        for (; count > 0; --count, ++i, ++out) {
            T next = op(total, f(*i));  // before the output, which may be the element
            *out = std::move(total);
            total = std::move(next);
        }
        sum.emplace(std::move(total));
    }
}

// The steps of a scan (windows.hpp). Preparing a block computes its sum.
template <bool Inclusive, class T, class It, class Out, class Op, class F>
class scan_steps : immovable {
    using It_difference = std::iter_difference_t<It>;
    using Out_difference = std::iter_difference_t<Out>;

public:
    static constexpr bool applies = true;

    scan_steps(It first, Out out, std::optional<T>&& init, Op& op, F& f)
        : first_(first), out_(out), sum_(std::move(init)), op_(op), f_(f) {}

    void direct(std::size_t from, std::size_t to) { scan(sum_, from, to); }
    void begin(std::size_t blocks, std::size_t) {
        sums_.clear();
        sums_.resize(blocks);
    }
    // Skips the last block: no block behind it needs its sum before it is applied.
    void prepare(std::size_t b, std::size_t from, std::size_t to) {
        if (b + 1 == sums_.size()) return;
        loop_function<Op, T, T> op = op_;
        internal::add_elements(sums_[b], at(from), static_cast<std::ptrdiff_t>(to - from),
                               element_function<F, It>{f_}, op);
    }
    // Replaces the sum of each block by the sum of all elements before it.
    void combine(std::size_t first, std::size_t blocks) {
        for (std::size_t b = first; b != blocks; ++b) {
            std::optional<T> before(sum_);
            if (b + 1 != blocks) sum_.emplace(op_(*std::move(sum_), *std::move(sums_[b])));
            sums_[b].swap(before);
        }
    }
    void apply(std::size_t b, std::size_t from, std::size_t to) {
        scan(sums_[b], from, to);
        if (b + 1 == sums_.size()) sum_.swap(sums_[b]);
    }

private:
    It at(std::size_t k) const { return first_ + static_cast<It_difference>(k); }
    void scan(std::optional<T>& sum, std::size_t from, std::size_t to) {
        loop_function<Op, T, T> op = op_;
        loop_function<F, std::iter_reference_t<It>> f = f_;
        internal::scan_elements<Inclusive>(sum, at(from), static_cast<std::ptrdiff_t>(to - from),
                                           out_ + static_cast<Out_difference>(from), op, f);
    }

    const It first_;
    const Out out_;
    std::optional<T> sum_;  // of everything before the next element
    Op& op_;
    F& f_;
    std::vector<std::optional<T>> sums_;
};

// Returns false if a stop request left elements out.
template <bool Inclusive, class T, class It, class Out, class Op, class F>
bool scan_all(It first, std::iter_difference_t<It> count, Out out, std::optional<T>&& init, Op& op,
              F& f) {
    if (count == 0) return true;
    if constexpr (random_access<It, Out>) {
        scan_steps<Inclusive, T, It, Out, Op, F> steps(first, out, std::move(init), op, f);
        return internal::walk_windows(static_cast<std::size_t>(count), steps);
    } else {
        if (internal::leaves_out()) return false;
        internal::scan_elements<Inclusive>(init, first, static_cast<std::ptrdiff_t>(count), out, op,
                                           f);
        return true;
    }
}

// Makes the engines of all scans, of iterators and of ranges.
template <bool Inclusive>
struct scan_binder {
    template <class T, class It, class End, class Out, class Op, class F>
    static auto iterators(It first, End last, Out out, std::optional<T> init, Op op, F f) {
        const auto count = std::ranges::distance(first, last);
        return
            [first, count, out, init = std::move(init), op = projected_function<Op>{std::move(op)},
             f = projected_function<F>{std::move(f)}]() mutable {
                const bool all =
                    internal::scan_all<Inclusive>(first, count, out, std::move(init), op, f);
                return internal::if_complete(all, internal::behind_out(out, count));
            };
    }
    template <class T, class R, class Out, class Op, class F>
    static auto range(R&& r, Out&& out, std::optional<T> init, Op op, F f) {
        using result =
            std::ranges::in_out_result<std::ranges::borrowed_iterator_t<R>, output_iterator_t<Out>>;
        const auto first = std::ranges::begin(r);
        const auto count = internal::output_count(std::ranges::distance(r), out);
        const auto to = internal::output_begin(out);
        return
            [first, count, to, init = std::move(init), op = projected_function<Op>{std::move(op)},
             f = projected_function<F>{std::move(f)}]() mutable {
                const bool all =
                    internal::scan_all<Inclusive>(first, count, to, std::move(init), op, f);
                return internal::if_complete(
                    all, result{std::ranges::next(first, count), internal::behind_out(to, count)});
            };
    }
};

template <class Op, class T, class F, class It>
concept scans = std::invocable<F&, std::iter_reference_t<It>> &&
                reduces<Op, T, std::invoke_result_t<F&, std::iter_reference_t<It>>>;
template <class F, class It>
using transformed_value_t =
    std::remove_cvref_t<std::invoke_result_t<F&, std::iter_reference_t<It>>>;

struct transform_inclusive_scan_description {
    static constexpr std::size_t ranges_max = 2;

    template <std::forward_iterator It, std::sentinel_for<It> End, std::forward_iterator Out,
              class Op, class F>
        requires scans<Op, transformed_value_t<F, It>, F, It>
    static auto bind(It first, End last, Out out, Op op, F f) {
        return scan_binder<true>::iterators(first, last, out,
                                            std::optional<transformed_value_t<F, It>>(),
                                            std::move(op), std::move(f));
    }
    template <std::forward_iterator It, std::sentinel_for<It> End, std::forward_iterator Out,
              class Op, class F, class T>
        requires scans<Op, T, F, It>
    static auto bind(It first, End last, Out out, Op op, F f, T init) {
        return scan_binder<true>::iterators(first, last, out, std::optional<T>(std::move(init)),
                                            std::move(op), std::move(f));
    }
    template <std::ranges::forward_range R, output Out, class Op, class F>
        requires scans<Op, transformed_value_t<F, std::ranges::iterator_t<R>>, F,
                       std::ranges::iterator_t<R>>
    static auto bind(R&& r, Out&& out, Op op, F f) {
        return scan_binder<true>::range(
            static_cast<R&&>(r), static_cast<Out&&>(out),
            std::optional<transformed_value_t<F, std::ranges::iterator_t<R>>>(), std::move(op),
            std::move(f));
    }
    template <std::ranges::forward_range R, output Out, class Op, class F, class T>
        requires scans<Op, T, F, std::ranges::iterator_t<R>>
    static auto bind(R&& r, Out&& out, Op op, F f, T init) {
        return scan_binder<true>::range(static_cast<R&&>(r), static_cast<Out&&>(out),
                                        std::optional<T>(std::move(init)), std::move(op),
                                        std::move(f));
    }
};

struct inclusive_scan_description {
    static constexpr std::size_t ranges_max = 2;

    template <std::forward_iterator It, std::sentinel_for<It> End, std::forward_iterator Out,
              class Op = std::plus<>>
        requires scans<Op, std::iter_value_t<It>, std::identity, It>
    static auto bind(It first, End last, Out out, Op op = {}) {
        return transform_inclusive_scan_description::bind(first, last, out, std::move(op),
                                                          std::identity());
    }
    template <std::forward_iterator It, std::sentinel_for<It> End, std::forward_iterator Out,
              class Op, class T>
        requires scans<Op, T, std::identity, It>
    static auto bind(It first, End last, Out out, Op op, T init) {
        return transform_inclusive_scan_description::bind(first, last, out, std::move(op),
                                                          std::identity(), std::move(init));
    }
    template <std::ranges::forward_range R, output Out, class Op = std::plus<>>
        requires scans<Op, std::ranges::range_value_t<R>, std::identity, std::ranges::iterator_t<R>>
    static auto bind(R&& r, Out&& out, Op op = {}) {
        return transform_inclusive_scan_description::bind(
            static_cast<R&&>(r), static_cast<Out&&>(out), std::move(op), std::identity());
    }
    template <std::ranges::forward_range R, output Out, class Op, class T>
        requires scans<Op, T, std::identity, std::ranges::iterator_t<R>>
    static auto bind(R&& r, Out&& out, Op op, T init) {
        return transform_inclusive_scan_description::bind(static_cast<R&&>(r),
                                                          static_cast<Out&&>(out), std::move(op),
                                                          std::identity(), std::move(init));
    }
};

struct transform_exclusive_scan_description {
    static constexpr std::size_t ranges_max = 2;

    template <std::forward_iterator It, std::sentinel_for<It> End, std::forward_iterator Out,
              class T, class Op, class F>
        requires scans<Op, T, F, It>
    static auto bind(It first, End last, Out out, T init, Op op, F f) {
        return scan_binder<false>::iterators(first, last, out, std::optional<T>(std::move(init)),
                                             std::move(op), std::move(f));
    }
    template <std::ranges::forward_range R, output Out, class T, class Op, class F>
        requires scans<Op, T, F, std::ranges::iterator_t<R>>
    static auto bind(R&& r, Out&& out, T init, Op op, F f) {
        return scan_binder<false>::range(static_cast<R&&>(r), static_cast<Out&&>(out),
                                         std::optional<T>(std::move(init)), std::move(op),
                                         std::move(f));
    }
};

struct exclusive_scan_description {
    static constexpr std::size_t ranges_max = 2;

    template <std::forward_iterator It, std::sentinel_for<It> End, std::forward_iterator Out,
              class T, class Op = std::plus<>>
        requires scans<Op, T, std::identity, It>
    static auto bind(It first, End last, Out out, T init, Op op = {}) {
        return transform_exclusive_scan_description::bind(first, last, out, std::move(init),
                                                          std::move(op), std::identity());
    }
    template <std::ranges::forward_range R, output Out, class T, class Op = std::plus<>>
        requires scans<Op, T, std::identity, std::ranges::iterator_t<R>>
    static auto bind(R&& r, Out&& out, T init, Op op = {}) {
        return transform_exclusive_scan_description::bind(static_cast<R&&>(r),
                                                          static_cast<Out&&>(out), std::move(init),
                                                          std::move(op), std::identity());
    }
};

}  // namespace coppice::parallel::internal
