// Natural runs: a range of few sorted or reversed runs is merged rather than sorted.
#pragma once
// Costs O(n) for one run, and O(n log k) for k runs. A range with too many runs is detected early,
// because its first runs are short.

#include <coppice/parallel/internal/stable_sort_walk.hpp>

#include <algorithm>
#include <cstddef>

namespace coppice::parallel::internal {

// Up to 16 runs: sorted, or strictly descending.
template <class It>
struct natural_runs {
    static constexpr std::size_t max = 16;
    std::size_t bounds[max + 1] = {};
    bool descends[max] = {};
    std::size_t count = 0;  // 0: more than max

    // Finds the runs. Does not change the elements. After a stop request, it reports too many runs.
    template <class Less>
    void find(const sort_control& control, It first, std::size_t size, Less& less) {
        std::size_t at = 0;
        while (at != size) {
            const bool too_short = count != 0 && at / count < size / 64;
            if (count == max || too_short || control.is_over()) {
                count = 0;
                return;
            }
            at = end_of_run(control, first, at, size, less);
            bounds[++count] = at;
        }
        std::fill(bounds + count, bounds + max + 1, size);
    }
    // Returns the even depth of a merge sort whose leaves are single runs.
    unsigned depth() const noexcept { return count <= 4 ? 2 : 4; }
    // Reverses the runs that descend. Ignores stop requests.
    void reverse(It first) {
        for (std::size_t i = 0; i != count; ++i) {
            if (!descends[i]) continue;
            const It last = ahead(first, bounds[i + 1]);
            const It begin = ahead(first, bounds[i]);
            auto swap = [begin, last](std::size_t from, std::size_t to) {
                for (; from != to; ++from) {
                    std::ranges::iter_swap(
                        ahead(begin, from),
                        last - static_cast<std::iter_difference_t<It>>(from + 1));
                }
            };
            for_all_parts(0, length(begin, last) / 2, swap);
        }
    }
    // Called as the leaf of a merge sort. Does nothing: the runs are sorted.
    std::size_t middle(std::size_t from, std::size_t to, unsigned) const noexcept {
        const auto index = [this](std::size_t of) {
            return std::lower_bound(bounds, bounds + count, of) - bounds;
        };
        return bounds[(index(from) + index(to)) / 2];
    }
    static void sort(std::size_t, std::size_t) noexcept {}

private:
    template <class Less>
    std::size_t end_of_run(const sort_control& control, It first, std::size_t at, std::size_t size,
                           Less& less) {
        std::size_t end = at + 1;
        if (end == size) return end;
        const bool down = less(*ahead(first, end), *ahead(first, at));
        descends[count] = down;
        for (;;) {
            const std::size_t part = std::min(size, end + 4096);
            while (end != part &&
                   static_cast<bool>(less(*ahead(first, end), *ahead(first, end - 1))) == down) {
                ++end;
            }
            if (end != part || end == size || control.is_over()) return end;
        }
    }
};

}  // namespace coppice::parallel::internal
