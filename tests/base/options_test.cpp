// base/internal/options.hpp: what it says of a value out of range.
#include <coppice/base/internal/options.hpp>

#include "extremes.hpp"

#include <gtest/gtest.h>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;

TEST(check_option, rejects_a_value_out_of_range_and_names_the_range) {
    for (const std::uint64_t value : every_number) {
        EXPECT_EQ(refusal_of([&] { check_option("x", value, 0, ~std::uint64_t{0}); }), "");
    }
    EXPECT_EQ(refusal_of([] { check_option("x", 1, 1, 3); }), "");
    EXPECT_EQ(refusal_of([] { check_option("x", 3, 1, 3); }), "");
    EXPECT_EQ(refusal_of([] { check_option("pool: threads", 0, 1, 3); }),
              "coppice: pool: threads is 0; allowed: 1 to 3");
    expect_refusal(refusal_of([] { check_option("x", 4, 1, 3); }), "x", 4);
}

TEST(check_option, rejects_negative_times) {
    for (const duration time : every_duration) {
        const std::string said = refusal_of([&] { check_option("x", time); });
        if (time >= duration::zero()) {
            EXPECT_EQ(said, "");
        } else {
            expect_refusal(said, "x", time.count());
        }
    }
}

}  // namespace
