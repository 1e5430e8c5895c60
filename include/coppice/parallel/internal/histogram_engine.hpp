// The engine of histogram: counts of a part of the range in an array of its own.
#pragma once

#include <coppice/parallel/internal/algorithm.hpp>
#include <coppice/parallel/internal/functions.hpp>
#include <coppice/parallel/internal/loops.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

namespace coppice::parallel::internal {

// Counts a range. The owner of the range counts in the caller's bins. A part that another worker
// may run at the same time counts in its own array.
template <class It, class Count, class Key>
class histogram_walk : immovable {
    using difference = std::ptrdiff_t;

public:
    histogram_walk(It first, std::size_t size, Key& key) noexcept
        : first_(first), size_(size), key_(key) {}

    template <class Counts>
    void run(difference from, difference to, Counts counts) {
        time_point time = loop_state::now();
        while (from < to) {
            if (state_.is_over()) return state_.leave_out();
            const auto left = static_cast<std::uint64_t>(to - from);
            if (state_.wants_cut(left)) return cut(from, to, counts);
            const std::uint64_t count =
                state_.run(left, time, [this, from, counts](std::uint64_t n) {
                    add(internal::behind(first_, from),
                        internal::behind(first_, from + static_cast<difference>(n)), counts);
                });
            from += static_cast<difference>(count);
        }
    }
    template <class Counts>
    void add(It i, const It last, Counts counts) {
        loop_function<Key, std::iter_reference_t<It>> key = key_;
        for (; i != last; ++i) {
            const auto at = static_cast<std::size_t>(key(*i));
            if (at < size_) ++counts[static_cast<std::iter_difference_t<Counts>>(at)];
        }
    }
    bool is_complete() const noexcept { return state_.is_complete(); }

private:
    template <class Counts>
    void cut(difference from, difference to, Counts counts) {
        const difference middle = from + (to - from) / 2;
        const fork_deque* const mine = fork_deque::current();
        std::vector<Count> theirs;
        fork_join([this, from, middle, counts] { run(from, middle, counts); },
                  [this, middle, to, counts, mine, &theirs] {
                      // Here the owner has counted the other half already.
                      if (fork_deque::current() == mine) return run(middle, to, counts);
                      theirs.resize(size_);
                      run(middle, to, theirs.data());
                  });
        for (std::size_t k = 0; k != theirs.size(); ++k) {
            counts[static_cast<std::iter_difference_t<Counts>>(k)] += theirs[k];
        }
    }

    const It first_;
    const std::size_t size_;
    Key& key_;
    loop_state state_;
};

template <class Key, class It>
concept histogram_key =
    std::invocable<Key&, std::iter_reference_t<It>> &&
    std::convertible_to<std::invoke_result_t<Key&, std::iter_reference_t<It>>, std::size_t>;

struct histogram_description {
    template <std::forward_iterator It, std::sentinel_for<It> End,
              std::ranges::random_access_range Bins, class Key = std::identity>
        requires histogram_key<Key, It> && std::integral<std::ranges::range_value_t<Bins>>
    static auto bind(It first, End last, Bins&& bins, Key key = {}) {
        const auto count = std::ranges::distance(first, last);
        return [first, count, to = std::ranges::begin(bins),
                size = static_cast<std::size_t>(std::ranges::distance(bins)),
                key = projected_function<Key>{std::move(key)}]() mutable {
            histogram_walk<It, std::ranges::range_value_t<Bins>, projected_function<Key>> walk(
                first, size, key);
            if constexpr (random_access<It>) {
                walk.run(0, static_cast<std::ptrdiff_t>(count), to);
                return walk.is_complete();
            } else {
                if (count != 0 && internal::leaves_out()) return false;
                walk.add(first, std::ranges::next(first, count), to);
                return true;
            }
        };
    }
    template <std::ranges::forward_range R, std::ranges::random_access_range Bins,
              class Key = std::identity>
        requires histogram_key<Key, std::ranges::iterator_t<R>> &&
                 std::integral<std::ranges::range_value_t<Bins>>
    static auto bind(R&& r, Bins&& bins, Key key = {}) {
        return bind(std::ranges::begin(r), std::ranges::end(r), static_cast<Bins&&>(bins),
                    std::move(key));
    }
};

}  // namespace coppice::parallel::internal
