// trace/histogram.hpp: bucket arithmetic and quantiles.
#include <coppice/trace/histogram.hpp>

#include <gtest/gtest.h>

namespace {

using coppice::trace::histogram_buckets;

TEST(histogram, every_value_lies_between_the_bounds_of_its_bucket) {
    for (unsigned shift = 0; shift != 64; ++shift) {
        for (const std::uint64_t offset : {0ull, 1ull, 3ull}) {
            const std::uint64_t value = (std::uint64_t{1} << shift) + offset;
            const std::size_t i = histogram_buckets::index(value);
            ASSERT_LT(i, histogram_buckets::count);
            EXPECT_LE(value, histogram_buckets::upper_bound(i));
            if (i != 0) {
                EXPECT_GT(value, histogram_buckets::upper_bound(i - 1));
            }
        }
    }
    EXPECT_EQ(histogram_buckets::index(~std::uint64_t{0}), histogram_buckets::count - 1);
}

TEST(histogram, upper_bounds_exceed_values_by_at_most_a_sixteenth) {
    for (std::uint64_t value = 1; value < 1'000'000; value = value * 5 / 4 + 1) {
        const std::uint64_t bound = histogram_buckets::upper_bound(histogram_buckets::index(value));
        EXPECT_LE(bound - value, value / 16 + 1) << value;
    }
}

TEST(histogram, quantiles_of_a_uniform_sample_are_within_a_sixteenth) {
    coppice::trace::histogram h;
    for (std::uint64_t v = 1; v <= 1000; ++v) h.record(v);
    coppice::trace::histogram_snapshot s;
    h.add_to(s);
    h.add_to(s);  // snapshots add up
    EXPECT_EQ(s.total(), 2000u);
    EXPECT_EQ(s.sum(), 2u * 500500u);
    EXPECT_NEAR(static_cast<double>(s.quantile(0.5)), 500, 500 / 16.0);
    EXPECT_NEAR(static_cast<double>(s.quantile(0.99)), 990, 990 / 16.0);
    EXPECT_EQ(s.count_up_to(15), 30u);
    EXPECT_EQ(coppice::trace::histogram_snapshot().quantile(0.5), 0u);
}

}  // namespace
