// base/clock.hpp: clocks that are passed in.
#include <coppice/base/clock.hpp>

#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;

TEST(manual_clock, stands_still_until_it_is_advanced) {
    coppice::manual_clock manual;
    const coppice::internal::clock& time = manual;
    const coppice::internal::time_point start = time.now();
    EXPECT_EQ(time.now(), start);
    manual.advance(15ms);
    EXPECT_EQ(time.now() - start, 15ms);
}

TEST(monotonic_clock, never_goes_back) {
    const coppice::monotonic_clock time;
    coppice::internal::time_point last = time.now();
    for (int i = 0; i != 10'000; ++i) {
        const coppice::internal::time_point now = time.now();
        ASSERT_GE(now, last);
        last = now;
    }
}

TEST(monotonic_clock, agrees_with_the_kernels_clock) {
    timespec before{}, after{};
    ::clock_gettime(CLOCK_MONOTONIC, &before);
    const coppice::internal::duration now = coppice::monotonic_clock().now().time_since_epoch();
    ::clock_gettime(CLOCK_MONOTONIC, &after);
    EXPECT_GE(now, std::chrono::seconds(before.tv_sec) + std::chrono::nanoseconds(before.tv_nsec));
    EXPECT_LE(now, std::chrono::seconds(after.tv_sec) + std::chrono::nanoseconds(after.tv_nsec));
}

}  // namespace
