// stable_partition: with a buffer for false elements, or by rotations where there is no memory.
#pragma once
// A part moves true elements to its front, and false elements to the buffer and then back behind
// the true ones. When another worker asks for work, a part is cut in two, and its middle is rotated
// at the end.

#include <coppice/base/lifetime.hpp>
#include <coppice/parallel/internal/merge_walk.hpp>
#include <coppice/parallel/internal/sort_control.hpp>
#include <coppice/parallel/internal/stable_sort_walk.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>

namespace coppice::parallel::internal {

// Exchanges [first, middle) and [middle, last), and keeps the order of both. Returns the new
// middle. Three reversals, each in parallel: a rotation by cycles would be the work of one worker.
template <class It>
It rotate_shared(It first, It middle, It last) {
    if (first == middle) return last;
    if (middle == last) return first;
    if (length(first, last) < std::size_t{1} << 16) return std::rotate(first, middle, last);
    const auto reverse = [](It begin, It end) {
        auto swap = [begin, end](std::size_t from, std::size_t to) {
            for (; from != to; ++from) {
                const auto back = static_cast<std::iter_difference_t<It>>(from + 1);
                std::ranges::iter_swap(ahead(begin, from), end - back);
            }
        };
        for_all_parts(0, length(begin, end) / 2, swap);
    };
    fork_join([reverse, first, middle] { reverse(first, middle); },
              [reverse, middle, last] { reverse(middle, last); });
    reverse(first, last);
    return ahead(first, length(middle, last));
}

template <class It, class Predicate>
class stable_partition_walk : immovable {
    using value = std::iter_value_t<It>;

public:
    // `buffer` has room for all elements from `begin` on, or is nullptr.
    stable_partition_walk(sort_control& control, It begin, value* buffer,
                          Predicate& predicate) noexcept
        : control_(control), begin_(begin), buffer_(buffer), predicate_(predicate) {}

    // Returns the first false element; any if the control is over.
    It run(It first, It last) {
        failure_guard failed(control_);
        part rest{first, first, buffer_ + length(begin_, first), 0};
        const It middle = run(rest, last);
        failed.dismiss();
        return middle;
    }
    // Partitions without a buffer, by rotations.
    It run_in_place(It first, It last) {
        if (first == last) return first;
        if (control_.is_over()) {
            control_.leave_out();
            return first;
        }
        failure_guard failed(control_);
        It result = first;
        if (length(first, last) == 1) {
            if (predicate_(*first)) ++result;
        } else {
            const It middle = ahead(first, length(first, last) / 2);
            const auto [left, right] =
                fork_join([this, first, middle] { return run_in_place(first, middle); },
                          [this, middle, last] { return run_in_place(middle, last); });
            result = rotate_shared(left, middle, right);
        }
        failed.dismiss();
        return result;
    }

private:
    static constexpr std::size_t cut_min = are_cheap<It> ? 4096 : 512;

    // [out, next) are free; `kept` elements, which were false, are in the buffer.
    struct part {
        It out;
        It next;
        value* falses;
        std::size_t kept;
        // Moves the elements in the buffer to the free places.
        void give_back() noexcept {
            put_all<move_elements>(falses, falses + kept, out);
            std::destroy_n(falses, kept);
            kept = 0;
        }
    };

    It run(part& rest, It last) {
        scope_exit give_back([&rest]() noexcept { rest.give_back(); });
        while (rest.next != last) {
            if (control_.is_over()) {
                control_.leave_out();
                break;
            }
            const std::size_t left = length(rest.next, last);
            if (left >= cut_min && sort_control::is_asked()) {
                give_back.dismiss();
                return cut(rest, last);
            }
            control_.run(left, [this, &rest](std::size_t count) { step(rest, count); });
        }
        return rest.out;
    }
    It cut(part& rest, It last) {
        const It middle = ahead(rest.next, length(rest.next, last) / 2);
        const auto [left, right] = fork_join([this, &rest, middle] { return run(rest, middle); },
                                             [this, middle, last] { return run(middle, last); });
        return rotate_shared(left, middle, right);
    }
    void step(part& rest, std::size_t count) {
        part all = rest;
        const It end = ahead(all.next, count);
        scope_exit close([&all, &rest]() noexcept { rest = all; });
        for (; all.next != end; ++all.next) {
            const bool is_true = predicate_(*all.next);
            if constexpr (are_cheap<It>) {
                const value x = *all.next;
                *all.out = x;
                all.falses[all.kept] = x;
                all.out += is_true;
                all.kept += !is_true;
            } else if (is_true) {
                if (all.out != all.next) *all.out = std::ranges::iter_move(all.next);
                ++all.out;
            } else {
                ::new (static_cast<void*>(all.falses + all.kept))
                    value(std::ranges::iter_move(all.next));
                ++all.kept;
            }
        }
    }

    sort_control& control_;
    const It begin_;
    value* const buffer_;
    Predicate& predicate_;
};

}  // namespace coppice::parallel::internal
