// Plan: get_deadline, points and spans of time and their conversions.
#include <coppice/base/clock.hpp>
#include <coppice/exec/deadline.hpp>

#include <gtest/gtest.h>

#include <chrono>

namespace {

namespace ex = coppice::execution;
using namespace std::chrono_literals;

TEST(get_deadline, is_never_where_nobody_says) {
    EXPECT_EQ(ex::get_deadline(ex::env<>()), ex::instant::never());
    const auto e = ex::prop(ex::get_deadline, ex::instant(5));
    EXPECT_EQ(ex::get_deadline(e), ex::instant(5));
    static_assert(coppice::forwarding_query(ex::get_deadline));
}

TEST(deadline, converts_from_and_to_chrono) {
    EXPECT_EQ(ex::time_span(3ms).nanoseconds(), 3'000'000);
    EXPECT_EQ(ex::time_span(2h).nanoseconds(), 7'200'000'000'000);
    EXPECT_EQ(ex::time_span(std::chrono::duration<double>(0.5)).nanoseconds(), 500'000'000);
    const std::chrono::nanoseconds back = ex::time_span(7us);
    EXPECT_EQ(back, 7us);
    const coppice::internal::time_point point = ex::instant(9);
    EXPECT_EQ(point.time_since_epoch(), 9ns);
    EXPECT_EQ(ex::instant(coppice::internal::time_point(9ns)), ex::instant(9));
}

TEST(deadline, compares_with_time_points) {
    EXPECT_EQ(ex::instant(9), coppice::internal::time_point(9ns));
    EXPECT_NE(coppice::internal::time_point(8ns), ex::instant(9));
    EXPECT_LT(ex::instant(9), std::chrono::steady_clock::time_point(10ns));
    EXPECT_GT(std::chrono::steady_clock::time_point(10ns), ex::instant(9));
    const ex::instant before = ex::monotonic_now();
    EXPECT_LE(before, std::chrono::steady_clock::now());
    EXPECT_LT(std::chrono::steady_clock::now(), ex::get_deadline(ex::env<>()));
}

TEST(deadline, saturates_instead_of_overflowing) {
    EXPECT_EQ(ex::instant(5) + ex::time_span(std::chrono::hours::max()), ex::instant::never());
    EXPECT_EQ(ex::instant::never() + ex::time_span(1ns), ex::instant::never());
    EXPECT_GT((ex::instant::never() - ex::instant(-5)).nanoseconds(), 0);
}

}  // namespace
