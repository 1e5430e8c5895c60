// Selection: moves the nth element to its place, by a quicksort that continues in one side only.
#pragma once
// In a large range the pivot comes from a sample, at a rank a little to the far side of the wanted
// one: then the wanted element is almost certainly in the smaller side. Source: Floyd and Rivest,
// 1975. So about 1.5 n elements are moved through a partition to find a median.

#include <coppice/parallel/internal/quick_sort.hpp>

#include <bit>
#include <cstddef>
#include <iterator>

namespace coppice::parallel::internal {

template <class It, class Less>
class selection : immovable {
public:
    selection(sort_control& control, Less& less) noexcept : control_(control), less_(less) {}

    void run(It first, It nth, It last) {
        if (nth == last) return;
        failure_guard failed(control_);
        sort_range<It> range{first, last, partitions_max(length(first, last))};
        while (narrow(range, nth)) {
        }
        failed.dismiss();
    }

private:
    static constexpr std::size_t sampled_min = 4096;

    // Returns false when the nth element is in its place, or the control is over.
    bool narrow(sort_range<It>& range, It nth) {
        if (control_.is_over()) return control_.leave_out();
        if (range.size() <= leaf_sort_max<It>) {
            leaf_sort(range.first, range.last, less_);
            return false;
        }
        if (range.partitions_left == 0) {
            heap_sort(range.first, range.last, less_);
            return false;
        }
        --range.partitions_left;
        const It pivot = range.size() < sampled_min
                             ? choose_pivot(range.first, range.last, less_)
                             : sampled_pivot(range, length(range.first, nth));
        const It middle =
            partition_by_pivot(range, pivot, less_, [this](It first, It last, auto& is) {
                return partition_shared(control_, first, last, is);
            });
        if (control_.is_over()) return control_.leave_out();
        if (middle == range.last) return !(nth < range.first);
        if (nth < middle) {
            range.last = middle;
        } else {
            range.first = std::next(middle);
            range.has_bound = true;
        }
        return nth != middle;
    }
    // Moves a sample to the front of the range, and returns the place of a pivot in it.
    It sampled_pivot(const sort_range<It>& range, std::size_t rank) {
        const std::size_t size = range.size();
        const std::size_t root = std::size_t{1} << std::bit_width(size) / 2;  // about
        const std::size_t sample = 2 * root;
        const std::size_t distance = size / sample;
        for (std::size_t i = 1; i != sample; ++i) {
            std::ranges::iter_swap(ahead(range.first, i), ahead(range.first, i * distance));
        }
        const std::size_t margin = std::size_t{1} << std::bit_width(sample) / 2;
        std::size_t at = rank / distance;
        if (rank < size / 2) {
            at += margin;
        } else {
            at -= margin;
        }
        at = std::min(at, sample - 1);
        run(range.first, ahead(range.first, at), ahead(range.first, sample));
        return ahead(range.first, at);
    }

    sort_control& control_;
    Less& less_;
};

}  // namespace coppice::parallel::internal
