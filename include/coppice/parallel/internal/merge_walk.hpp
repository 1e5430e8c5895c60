// Merge: kernels for one worker, and the walk that shares a merge between workers.
#pragma once
// Cheap elements are merged from both ends at once and without branches. A round is half as long as
// the shorter side, so neither end can run out of elements, whatever the comparator says. If one
// side is much shorter, its elements are searched for in the other side. A walk gives half of the
// rest to an idle worker. It cuts both sides so that all elements before the cut precede those
// behind it.

#include <coppice/base/lifetime.hpp>
#include <coppice/parallel/internal/small_sort.hpp>
#include <coppice/parallel/internal/sort_control.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

namespace coppice::parallel::internal {

// The rest of a merge: two sorted ranges, and the place for the result.
template <class Left, class Right, class Out>
struct merge_rest {
    Left left;
    Left left_end;
    Right right;
    Right right_end;
    Out out;
    std::size_t lefts() const noexcept { return length(left, left_end); }
    std::size_t rights() const noexcept { return length(right, right_end); }
    std::size_t size() const noexcept { return lefts() + rights(); }
};

// The ways in which elements get to their place: copy, move assignment, or move construction.
struct copy_elements {
    static constexpr bool is_kept = false;  // what is left out stays where it is
    template <class It, class Out>
    static void put(It from, Out to) {
        *to = *from;
    }
};
struct move_elements {
    static constexpr bool is_kept = true;
    template <class It, class Out>
    static void put(It from, Out to) {
        *to = std::ranges::iter_move(from);
    }
};
struct construct_elements {
    static constexpr bool is_kept = true;
    template <class It, class T>
    static void put(It from, T* to) {
        ::new (static_cast<void*>(to)) T(std::ranges::iter_move(from));
    }
};
template <class How, class It, class Out>
Out put_all(It first, It last, Out out) {
    if constexpr (are_cheap<It> && std::is_same_v<It, Out>) {
        return std::copy(first, last, out);
    } else {
        for (; first != last; ++first, ++out) How::put(first, out);
        return out;
    }
}

// Keeps the branch in which it is called. With a predicted branch the processor loads the next
// elements before it knows the result of the comparison; with a conditional move it would wait.
inline void keep_branch() noexcept {
    asm volatile("");
}

// Returns the first place in the sorted range [first, last) for which `belongs` is false.
template <class It, class Belongs>
It search_sorted(It first, It last, Belongs belongs) {
    std::size_t count = length(first, last);
    while (count != 0) {
        const std::size_t half = count / 2;
        const It middle = ahead(first, half);
        if (belongs(middle)) {
            first = ahead(middle, 1);
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return first;
}

// Returns the cut of a merge: the longer side is cut in its middle, and the other side behind the
// elements that belong before that.
template <class Rest, class Less>
auto cut_merge(const Rest& rest, Less& less) {
    auto left = rest.left;
    auto right = rest.right;
    if (rest.lefts() >= rest.rights()) {
        left = ahead(left, rest.lefts() / 2);
        right = search_sorted(right, rest.right_end,
                              [&less, left](auto at) -> bool { return less(*at, *left); });
    } else {
        right = ahead(right, rest.rights() / 2);
        left = search_sorted(left, rest.left_end,
                             [&less, right](auto at) -> bool { return !less(*right, *at); });
    }
    return std::pair(left, right);
}

template <class How, class Left, class Right, class Out, class Less>
class merge_kernel {
public:
    using rest = merge_rest<Left, Right, Out>;
    static constexpr bool is_cheap =
        are_cheap<Left> && std::is_same_v<Right, Left> &&
        (std::is_same_v<Out, Left> ||
         (std::is_pointer_v<Out> && std::is_same_v<const std::remove_pointer_t<Out>*, Left>));

    // Merges about `count` elements of `all`, and all of them if `count` is its size.
    static void merge_some(rest& all, std::size_t count, Less& less) {
        while (count != 0 && all.left != all.left_end && all.right != all.right_end) {
            const std::size_t before = all.size();
            const std::size_t shorter = std::min(all.lefts(), all.rights());
            if (before - shorter > 32 * shorter) {
                search_shorter(all, less);
            } else if (!is_cheap || shorter < 8) {
                merge_plainly(all, is_cheap ? count : std::min(shorter, count), less);
            } else if constexpr (is_cheap) {
                merge_ends(all, std::min(shorter / 2, count / 2 + 1), less);
            }
            const std::size_t done = before - all.size();
            count -= std::min(count, done);
        }
        if (count != 0) finish(all);
    }
    // Moves the rest without comparing it.
    static void finish(rest& all) {
        all.out = put_all<How>(all.left, all.left_end, all.out);
        all.left = all.left_end;
        all.out = put_all<How>(all.right, all.right_end, all.out);
        all.right = all.right_end;
    }

private:
    // Merges `steps` elements from each end. Each side has at least 2 * steps.
    static void merge_ends(rest& all, std::size_t steps, Less& less) {
        auto left = all.left, left_last = all.left_end - 1;
        auto right = all.right, right_last = all.right_end - 1;
        auto out = all.out, out_last = ahead(all.out, all.size() - 1);
        scope_exit close([&all, &left, &left_last, &right, &right_last, &out]() noexcept {
            all = {left, left_last + 1, right, right_last + 1, out};
        });
        for (; steps != 0; --steps) {
            const bool low = less(*right, *left);
            const bool high = less(*right_last, *left_last);
            copy_either(out++, low, left, right);
            right += low;
            left += !low;
            copy_either(out_last--, high, right_last, left_last);
            left_last -= high;
            right_last -= !high;
        }
    }
    // Merges `steps` elements. Each side has at least as many, unless elements are cheap: then it
    // ends with the first side.
    static void merge_plainly(rest& all, std::size_t steps, Less& less) {
        Left left = all.left;
        Right right = all.right;
        Out out = all.out;
        scope_exit close([&all, &left, &right, &out]() noexcept {
            all.left = left;
            all.right = right;
            all.out = out;
        });
        const Left left_end = all.left_end;
        const Right right_end = all.right_end;
        for (; steps != 0; --steps) {
            if (is_cheap && (left == left_end || right == right_end)) break;
            if (less(*right, *left)) {
                keep_branch();
                How::put(right, out);
                ++right;
            } else {
                How::put(left, out);
                ++left;
            }
            ++out;
        }
    }
    // Moves the first element of the shorter side, and the elements that belong before it.
    static void search_shorter(rest& all, Less& less) {
        if (all.lefts() < all.rights()) {
            const auto wanted = all.left;
            const auto end = gallop(all.right, all.right_end, [&less, wanted](auto at) -> bool {
                return less(*at, *wanted);
            });
            all.out = put_all<How>(all.right, end, all.out);
            all.right = end;
            How::put(all.left++, all.out++);
        } else {
            const auto wanted = all.right;
            const auto end = gallop(all.left, all.left_end, [&less, wanted](auto at) -> bool {
                return !less(*wanted, *at);
            });
            all.out = put_all<How>(all.left, end, all.out);
            all.left = end;
            How::put(all.right++, all.out++);
        }
    }
    template <class It, class Belongs>
    static It gallop(It first, It last, Belongs belongs) {
        std::size_t count = 1;
        while (count < length(first, last) && belongs(ahead(first, count - 1))) {
            first = ahead(first, count);
            count *= 2;
        }
        return search_sorted(first, ahead(first, std::min(count, length(first, last))), belongs);
    }
};

// How::is_kept: every element gets to its side of the result, even if the comparator throws or a
// stop request ends the merge.
template <class How, class Left, class Right, class Out, class Less>
class merge_walk : immovable {
    using kernel = merge_kernel<How, Left, Right, Out, Less>;

public:
    using rest = typename kernel::rest;
    merge_walk(sort_control& control, Less& less) noexcept : control_(control), less_(less) {}

    void run(rest all) {
        failure_guard failed(control_);
        scope_exit keep([&all]() noexcept { keep_elements(all); });
        while (all.size() != 0) {
            if (control_.is_over()) {
                control_.leave_out();
                failed.dismiss();
                return;
            }
            if (all.size() >= cut_min && sort_control::is_asked()) {
                const auto [left, right] = cut_merge(all, less_);
                const rest lower{all.left, left, all.right, right, all.out};
                const rest upper{left, all.left_end, right, all.right_end,
                                 ahead(all.out, lower.size())};
                keep.dismiss();
                fork_join([this, &lower] { run(lower); }, [this, &upper] { run(upper); });
                break;
            }
            control_.run(all.size(), [this, &all](std::size_t count) {
                kernel::merge_some(all, count, less_);
            });
        }
        keep.dismiss();
        failed.dismiss();
    }

private:
    static constexpr std::size_t cut_min = kernel::is_cheap ? 4096 : 512;

    static void keep_elements([[maybe_unused]] rest& all) noexcept {
        if constexpr (How::is_kept) kernel::finish(all);
    }

    sort_control& control_;
    Less& less_;
};

}  // namespace coppice::parallel::internal
