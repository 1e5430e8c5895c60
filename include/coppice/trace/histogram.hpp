// histogram: counts 64-bit values to within 1/16 of their size in a fixed 8 KiB; for latencies.
#pragma once
// Each value below 16 has its own bucket; above that, each power of two is divided into 16 buckets.
// To record a value takes a shift and a single-writer count, so a loop can record every request.
// Any thread can take a snapshot, which adds up histograms and answers quantiles.

#include <coppice/trace/counter.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace coppice::trace {

// The arithmetic of the buckets, shared by histogram and histogram_snapshot.
struct histogram_buckets {
    static constexpr unsigned bits = 4;  // 2^bits buckets for each power of two
    static constexpr std::size_t count = (64 - bits + 1) << bits;

    // Returns the bucket to which `value` belongs.
    static constexpr std::size_t index(std::uint64_t value) noexcept {
        const unsigned width = static_cast<unsigned>(std::bit_width(value));
        if (width <= bits) return static_cast<std::size_t>(value);
        const unsigned shift = width - bits - 1;
        return (static_cast<std::size_t>(shift) << bits) + static_cast<std::size_t>(value >> shift);
    }
    // Returns the largest value that belongs to bucket `i`.
    static constexpr std::uint64_t upper_bound(std::size_t i) noexcept {
        if (i < (std::size_t{2} << bits)) return i;
        const std::size_t shift = (i >> bits) - 1;
        const std::uint64_t base =
            (std::uint64_t{1} << bits) + (i & ((std::size_t{1} << bits) - 1));
        return ((base + 1) << shift) - 1;
    }
};

// The sum of one or more histograms at one moment. Threads: its owner only.
class histogram_snapshot {
public:
    // Adds `n` values of a bucket. Their sum is added separately.
    void add(std::size_t bucket, std::uint64_t n) noexcept {
        counts_[bucket] += n;
        total_ += n;
    }
    // Adds the sum of values that were added by bucket.
    void add_sum(std::uint64_t sum) noexcept { sum_ += sum; }
    // Return the number of values, and their sum modulo 2^64.
    std::uint64_t total() const noexcept { return total_; }
    std::uint64_t sum() const noexcept { return sum_; }

    // Returns an upper bound of the value below which the fraction `q` (0 to 1) of all values lies;
    // 0 if there are none. Cost: O(buckets).
    std::uint64_t quantile(double q) const noexcept {
        const double rank = q * static_cast<double>(total_);
        std::uint64_t seen = 0;
        std::uint64_t last = 0;
        for (std::size_t i = 0; i != counts_.size(); ++i) {
            if (counts_[i] == 0) continue;
            seen += counts_[i];
            last = histogram_buckets::upper_bound(i);
            if (static_cast<double>(seen) >= rank) break;
        }
        return last;
    }
    // Returns the number of values in buckets that end at or below `bound`. Cost: O(buckets).
    std::uint64_t count_up_to(std::uint64_t bound) const noexcept {
        std::uint64_t n = 0;
        for (std::size_t i = 0; i != counts_.size(); ++i) {
            if (histogram_buckets::upper_bound(i) > bound) break;
            n += counts_[i];
        }
        return n;
    }

private:
    std::array<std::uint64_t, histogram_buckets::count> counts_{};
    std::uint64_t total_ = 0;
    std::uint64_t sum_ = 0;
};

// Counts values. Threads: record() by the owner only; add_to() by any thread.
// Cost: record() does two single-writer counts; add_to() is O(buckets).
class histogram {
public:
    // Counts `value` as if it had occurred `times` times.
    void record(std::uint64_t value, std::uint64_t times = 1) noexcept {
        counts_[histogram_buckets::index(value)].add(times);
        sum_.add(value * times);
    }
    // Adds the counts to `snapshot`. While the owner records, the sum may lag behind the counts.
    void add_to(histogram_snapshot& snapshot) const noexcept {
        for (std::size_t i = 0; i != counts_.size(); ++i) {
            if (const std::uint64_t n = counts_[i].read()) snapshot.add(i, n);
        }
        snapshot.add_sum(sum_.read());
    }

private:
    std::array<counter, histogram_buckets::count> counts_;
    counter sum_;
};

}  // namespace coppice::trace
