// The engines of copy_if, remove_if, and unique.
#pragma once

#include <coppice/parallel/internal/algorithm.hpp>
#include <coppice/parallel/internal/functions.hpp>
#include <coppice/parallel/internal/loops.hpp>
#include <coppice/parallel/internal/reduce_engine.hpp>
#include <coppice/parallel/internal/transform_engine.hpp>
#include <coppice/parallel/internal/windows.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <utility>
#include <vector>

namespace coppice::parallel::internal {

// Copies i[k] for each bit k of `set`, in order, and returns the end of the output.
template <class It, class Out>
Out copy_set(It i, std::uint64_t set, Out out) {
    for (; set != 0; set &= set - 1) {
        *out = i[static_cast<std::iter_difference_t<It>>(std::countr_zero(set))];
        ++out;
    }
    return out;
}

// True if copies are so cheap, and calls of F so harmless, that F is first called for 64 elements
// in a row, and an element may be copied and then overwritten by the next one.
template <class It, class Out, class F>
inline constexpr bool copies_without_branches =
    loops_call_copy<F, std::iter_reference_t<It>> && std::contiguous_iterator<It> &&
    std::contiguous_iterator<Out> && std::same_as<std::iter_value_t<It>, std::iter_value_t<Out>> &&
    std::is_trivially_copyable_v<std::iter_value_t<It>> && sizeof(std::iter_value_t<It>) <= 16;

// The same as copy_set, without a branch per element: a processor guesses wrong for half of the
// elements if half of them are copied at random. Writes nothing at the end of the output or behind.
template <class It, class Out>
Out copy_dense_set(It i, std::uint64_t set, Out out) {
    if (set == ~std::uint64_t{0}) return std::copy(i, i + 64, out);
    if (std::popcount(set) < 16) return internal::copy_set(i, set, out);
    const auto copy_one = [&i, &out, &set] {
        *out = *i++;
        out += static_cast<std::iter_difference_t<Out>>(set & 1);
        set >>= 1;
    };
    int left = 64 - std::countl_zero(set);
    for (; left >= 8; left -= 8) {
        for (int k = 0; k != 8; ++k) copy_one();  // which compilers unroll
    }
    for (; left != 0; --left) copy_one();
    return out;
}

// Returns a bit for each of up to 64 elements: whether it is accepted.
template <class It, class F>
std::uint64_t accepted_set(It i, std::size_t count, F& accepts) {
    std::uint64_t set = 0;
    for (std::size_t k = 0; k != count; ++k, ++i) {
        set |= static_cast<std::uint64_t>(accepts(*i) ? 1 : 0) << k;
    }
    return set;
}
// The same for 64 elements. The compiler vectorizes calls whose results become bytes.
template <class It, class F>
std::uint64_t accepted_set(It i, F& accepts) {
    unsigned char each[64];
    for (int k = 0; k != 64; ++k) each[k] = accepts(i[k]) ? 1 : 0;
    std::uint64_t set = 0;
    for (int k = 0; k != 64; k += 8) {
        std::uint64_t bytes;
        std::memcpy(&bytes, each + k, 8);
        set |= (bytes * 0x0102040810204080u) >> 56 << k;  // byte n becomes bit n
    }
    return set;
}

// The steps of copy_if (windows.hpp). Preparing a block stores one bit per element, so that the
// predicate is called once for each. If the output is a range, it ends at out_end: from the first
// element on that does not fit, elements are skipped.
template <class It, class Out, class End, class F>
class copy_if_steps : immovable {
    static constexpr std::size_t bits = 64;
    static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);
    static constexpr bool is_limited = !std::same_as<End, std::unreachable_sentinel_t>;
    static constexpr bool without_branches = !is_limited && copies_without_branches<It, Out, F>;

public:
    static constexpr bool applies = true;

    copy_if_steps(It first, Out out, End out_end, F& f)
        : first_(first), out_end_(out_end), out_(out), f_(f) {}

    void direct(std::size_t from, std::size_t to) {
        if (is_full()) return;
        loop_function<F, std::iter_reference_t<It>> accepts = f_;
        Out out = out_;
        It i = at(from);
        if constexpr (without_branches) {
            for (; to - from >= bits; from += bits, i += bits) {
                out = internal::copy_dense_set(i, internal::accepted_set(i, accepts), out);
            }
        }
        for (std::size_t k = from; k != to; ++k, ++i) {  // counted, so that it is unrolled
            if (!accepts(*i)) continue;
            if (out == out_end_) {
                no_room_ = k;
                break;
            }
            *out++ = *i;
        }
        out_ = out;
    }
    void begin(std::size_t blocks, std::size_t block) {
        words_ = (block + bits - 1) / bits;
        if (accepted_.size() < blocks * words_) accepted_.resize(blocks * words_);
        offsets_.resize(blocks);
        was_full_ = is_full();
    }
    void prepare(std::size_t b, std::size_t from, std::size_t to) {
        if (was_full_) return;
        loop_function<F, std::iter_reference_t<It>> accepts = f_;
        std::uint64_t* word = &accepted_[b * words_];
        std::size_t count = 0;
        It i = at(from);
        for (std::size_t left = to - from; left != 0; ++word) {
            const std::size_t some = std::min(left, bits);
            *word = internal::accepted_set(i, some, accepts);
            count += static_cast<std::size_t>(std::popcount(*word));
            i += static_cast<std::iter_difference_t<It>>(some);
            left -= some;
        }
        offsets_[b] = count;
    }
    void combine(std::size_t first, std::size_t blocks) {
        was_full_ = is_full();
        if (was_full_) return;
        std::size_t before = 0;
        for (std::size_t b = first; b != blocks; ++b) before += std::exchange(offsets_[b], before);
        room_ = before;
        if constexpr (is_limited)
            room_ = std::min(before, static_cast<std::size_t>(out_end_ - out_));
        written_ = out_;
        out_ = behind_out(out_, room_);
    }
    void apply(std::size_t b, std::size_t from, std::size_t to) {
        if (was_full_ || offsets_[b] > room_) return;
        std::size_t room = room_ - offsets_[b];
        Out out = behind_out(written_, offsets_[b]);
        const std::uint64_t* word = &accepted_[b * words_];
        for (; from < to; from += bits, ++word) {
            const It i = at(from);
            if constexpr (without_branches) {
                out = internal::copy_dense_set(i, *word, out);
                continue;
            }
            for (std::uint64_t set = *word; set != 0; set &= set - 1) {
                const auto k = static_cast<std::iter_difference_t<It>>(std::countr_zero(set));
                if (is_limited && room-- == 0) {  // in one block only
                    no_room_ = from + static_cast<std::size_t>(k);
                    return;
                }
                *out = i[k];
                ++out;
            }
        }
    }
    // Returns the position of the first element that is not copied, and the end of the output.
    std::ranges::in_out_result<It, Out> end(std::size_t count) const {
        return {at(std::min(no_room_, count)), out_};
    }

private:
    It at(std::size_t k) const { return first_ + static_cast<std::iter_difference_t<It>>(k); }
    bool is_full() const noexcept { return is_limited && no_room_ != nowhere; }

    const It first_;
    const End out_end_;
    Out out_;      // the end of the output, including what the windows under way will write
    Out written_;  // the output of the first block that was prepared
    F& f_;
    std::size_t no_room_ = nowhere;  // the first accepted element that does not fit
    bool was_full_ = false;          // when the window began, or was combined
    std::size_t room_ = 0;           // for what was prepared
    std::size_t words_ = 0;          // of a block
    std::vector<std::uint64_t> accepted_;
    std::vector<std::size_t> offsets_;
};

// Returns the ends of input and output, or no value if a stop request left elements out.
template <class It, class Out, class End, class F>
std::optional<std::ranges::in_out_result<It, Out>> copy_accepted(It first,
                                                                 std::iter_difference_t<It> count,
                                                                 Out out, End out_end, F& f) {
    using result = std::ranges::in_out_result<It, Out>;
    if (count == 0) return result{first, out};
    if constexpr (random_access<It, Out>) {
        copy_if_steps<It, Out, End, F> steps(first, out, out_end, f);
        const auto size = static_cast<std::size_t>(count);
        const bool all = internal::walk_windows(size, steps);
        return internal::if_complete(all, steps.end(size));
    } else {
        if (internal::leaves_out()) return std::nullopt;
        for (; count != 0; --count, ++first) {
            if (!f(*first)) continue;
            if (out == out_end) break;
            *out++ = *first;
        }
        return result{first, out};
    }
}

struct copy_if_description {
    template <std::forward_iterator It, std::sentinel_for<It> End, output Out, class F>
        requires std::predicate<F&, std::iter_reference_t<It>> && (!std::ranges::range<Out>)
    static auto bind(It first, End last, Out out, F f) {
        const auto count = std::ranges::distance(first, last);
        return [first, count, out,
                call = projected_function<F>{std::move(f)}]() mutable -> std::optional<Out> {
            auto ends = internal::copy_accepted(first, count, out, std::unreachable_sentinel, call);
            return ends ? std::optional<Out>(std::move(ends->out)) : std::nullopt;
        };
    }
    template <std::forward_iterator It, std::sentinel_for<It> End, std::forward_iterator Out,
              std::sentinel_for<Out> OutEnd, class F, class Proj = std::identity>
        requires projected_predicate<F, Proj, It>
    static auto bind(It first, End last, Out out, OutEnd out_end, F f, Proj proj = {}) {
        return bind(std::ranges::subrange(first, last), std::ranges::subrange(out, out_end),
                    std::move(f), std::move(proj));
    }
    template <std::ranges::forward_range R, output Out, class F, class Proj = std::identity>
        requires projected_predicate<F, Proj, std::ranges::iterator_t<R>>
    static auto bind(R&& r, Out&& out, F f, Proj proj = {}) {
        using result =
            std::ranges::in_out_result<std::ranges::borrowed_iterator_t<R>, output_iterator_t<Out>>;
        const auto first = std::ranges::begin(r);
        const auto count = std::ranges::distance(r);
        const auto to = internal::output_begin(out);
        const auto to_end = internal::output_end(out);
        return [first, count, to, to_end,
                call = projected_function<F, Proj>{
                    std::move(f), std::move(proj)}]() mutable -> std::optional<result> {
            auto ends = internal::copy_accepted(first, count, to, to_end, call);
            if (!ends) return std::nullopt;
            return result{std::move(ends->in), std::move(ends->out)};
        };
    }
};

// The steps of the algorithms that keep some elements in place and in order. Keep has
//   part(i, last, end, any)   moves the kept elements of a part to `end`, and returns their end
//                             there. The part is not empty, and `end` is not behind its begin.
//                             `any` is true if there is a kept element before `end`
//   joins(last, i)            returns true if the element at i is dropped when `last` precedes it
template <class It, class Keep>
class compact_steps : immovable {
    using difference = std::iter_difference_t<It>;

public:
    static constexpr bool applies = false;

    compact_steps(It first, Keep& keep) : first_(first), end_(first), keep_(keep) {}

    void direct(std::size_t from, std::size_t to) {
        end_ = keep_.part(at(from), at(to), end_, end_ != first_);
    }
    void begin(std::size_t blocks, std::size_t) { parts_.resize(blocks, {first_, first_}); }
    void prepare(std::size_t b, std::size_t from, std::size_t to) {
        parts_[b] = {at(from), keep_.part(at(from), at(to), at(from), false)};
    }
    void combine(std::size_t first, std::size_t blocks) {
        for (std::size_t b = first; b != blocks; ++b) append(parts_[b].first, parts_[b].second);
    }
    It end() const { return end_; }

private:
    It at(std::size_t k) const { return first_ + static_cast<difference>(k); }
    void append(It i, It last) {
        if (i != last && end_ != first_ && keep_.joins(end_ - 1, i)) ++i;
        end_ = i == end_ ? last : std::move(i, last, end_);
    }

    const It first_;
    It end_;  // of what is kept
    Keep& keep_;
    std::vector<std::pair<It, It>> parts_;
};

template <class F>
struct keep_unless {
    F removes;
    template <class It>
    It part(It i, It last, It end, bool) {
        loop_function<F, std::iter_reference_t<It>> call = removes;
        if (i == end) {  // nothing is moved onto itself
            while (i != last && !call(*i)) ++i;
            if (i == last) return i;
            end = i++;
        }
        for (; i != last; ++i) {
            if (call(*i)) continue;
            *end = std::ranges::iter_move(i);
            ++end;
        }
        return end;
    }
    template <class It>
    bool joins(It, It) const noexcept {
        return false;
    }
};

template <class F>
struct keep_unequal {
    F equal;
    template <class It>
    It part(It i, It last, It end, bool any) {
        loop_function<F, std::iter_reference_t<It>, std::iter_reference_t<It>> call = equal;
        It kept = end;  // the last one that is kept
        if (!any) {
            ++i;  // is at `end`
        } else if constexpr (std::bidirectional_iterator<It>) {
            --kept;
        }
        for (; i != last; ++i) {
            if (call(*kept, *i)) continue;
            ++kept;
            if (kept != i) *kept = std::ranges::iter_move(i);
        }
        return ++kept;
    }
    template <class It>
    bool joins(It last, It i) {
        return equal(*last, *i);
    }
};

// Returns the end of the kept elements, or no value if a stop request left elements out.
template <class It, class Keep>
std::optional<It> compact(It first, std::iter_difference_t<It> count, Keep& keep) {
    if (count == 0) return first;
    if constexpr (random_access<It>) {
        compact_steps<It, Keep> steps(first, keep);
        const bool all = internal::walk_windows(static_cast<std::size_t>(count), steps);
        return internal::if_complete(all, steps.end());
    } else {
        if (internal::leaves_out()) return std::nullopt;
        return keep.part(first, std::ranges::next(first, count), first, false);
    }
}

// Returns the subrange behind the kept elements, as std::ranges does.
template <class R, class It, class Keep>
auto compact_range(It first, std::iter_difference_t<It> count, Keep& keep) {
    using result = std::ranges::borrowed_subrange_t<R>;
    const std::optional<It> end = internal::compact(first, count, keep);
    if (!end) return std::optional<result>();
    if constexpr (std::same_as<result, std::ranges::dangling>) {
        return std::optional<result>(result());
    } else {
        return std::optional<result>(result(*end, std::ranges::next(first, count)));
    }
}

struct remove_if_description {
    template <std::permutable It, std::sentinel_for<It> End, class F, class Proj = std::identity>
        requires projected_predicate<F, Proj, It>
    static auto bind(It first, End last, F f, Proj proj = {}) {
        using function = projected_function<F, Proj>;
        const auto count = std::ranges::distance(first, last);
        return [first, count,
                keep = keep_unless<function>{{std::move(f), std::move(proj)}}]() mutable {
            return internal::compact(first, count, keep);
        };
    }
    template <std::ranges::forward_range R, class F, class Proj = std::identity>
        requires std::permutable<std::ranges::iterator_t<R>> &&
                 projected_predicate<F, Proj, std::ranges::iterator_t<R>>
    static auto bind(R&& r, F f, Proj proj = {}) {
        using function = projected_function<F, Proj>;
        return [first = std::ranges::begin(r), count = std::ranges::distance(r),
                keep = keep_unless<function>{{std::move(f), std::move(proj)}}]() mutable {
            return internal::compact_range<R>(first, count, keep);
        };
    }
};

struct unique_description {
    template <std::permutable It, std::sentinel_for<It> End, class F = std::equal_to<>,
              class Proj = std::identity>
        requires std::predicate<F&, projected_t<Proj, It>, projected_t<Proj, It>>
    static auto bind(It first, End last, F f = {}, Proj proj = {}) {
        using function = projected_function<F, Proj>;
        const auto count = std::ranges::distance(first, last);
        return [first, count, keep = keep_unequal<function>{{std::move(f), proj, proj}}]() mutable {
            return internal::compact(first, count, keep);
        };
    }
    template <std::ranges::forward_range R, class F = std::equal_to<>, class Proj = std::identity>
        requires std::permutable<std::ranges::iterator_t<R>> &&
                 std::predicate<F&, projected_t<Proj, std::ranges::iterator_t<R>>,
                                projected_t<Proj, std::ranges::iterator_t<R>>>
    static auto bind(R&& r, F f = {}, Proj proj = {}) {
        using function = projected_function<F, Proj>;
        return [first = std::ranges::begin(r), count = std::ranges::distance(r),
                keep = keep_unequal<function>{{std::move(f), proj, proj}}]() mutable {
            return internal::compact_range<R>(first, count, keep);
        };
    }
};

}  // namespace coppice::parallel::internal
