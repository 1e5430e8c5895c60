// Plan: get_deadline, points and spans of time and their conversions.
#include <coppice/base/clock.hpp>
#include <coppice/exec/deadline.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>

namespace {

namespace ex = coppice::execution;
using namespace std::chrono_literals;

TEST(get_deadline, is_never_by_default) {
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

template <class Rep, class Period>
constexpr std::int64_t span_of(Rep count) {
    return ex::time_span(std::chrono::duration<Rep, Period>(count)).nanoseconds();
}

// Each limit of Rep converts to the limit of time_span on its side of zero if it is beyond that.
template <class Rep, class Period>
void ends_saturate() {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    constexpr Rep low = std::numeric_limits<Rep>::lowest();
    constexpr Rep high = std::numeric_limits<Rep>::max();
    const long double unit = 1e9L * Period::num / Period::den;
    const auto expect = [&](Rep count) {
        const long double exact = static_cast<long double>(count) * unit;
        const std::int64_t got = span_of<Rep, Period>(count);
        if (exact >= static_cast<long double>(most)) {
            EXPECT_EQ(got, most) << exact;
        } else if (exact <= -static_cast<long double>(most)) {
            EXPECT_LE(got, -most) << exact;
        } else {
            EXPECT_NEAR(static_cast<double>(got), static_cast<double>(exact),
                        1.0 + 1e-15 * static_cast<double>(exact < 0 ? -exact : exact));
        }
    };
    for (const Rep count : {low, high, Rep(0), Rep(1), Rep(high / 2), Rep(low / 2)}) expect(count);
}
template <class Period>
void ends_of_all_types_saturate() {
    ends_saturate<signed char, Period>();
    ends_saturate<unsigned char, Period>();
    ends_saturate<short, Period>();
    ends_saturate<unsigned short, Period>();
    ends_saturate<int, Period>();
    ends_saturate<unsigned, Period>();
    ends_saturate<long, Period>();
    ends_saturate<unsigned long, Period>();
    ends_saturate<long long, Period>();
    ends_saturate<unsigned long long, Period>();
    ends_saturate<float, Period>();
    ends_saturate<double, Period>();
    ends_saturate<long double, Period>();
}

TEST(deadline, durations_of_every_type_saturate) {
    ends_of_all_types_saturate<std::pico>();
    ends_of_all_types_saturate<std::nano>();
    ends_of_all_types_saturate<std::micro>();
    ends_of_all_types_saturate<std::ratio<1>>();
    ends_of_all_types_saturate<std::ratio<86400>>();
    ends_of_all_types_saturate<std::exa>();
    ends_of_all_types_saturate<std::ratio<1, 60>>();
}

TEST(deadline, nanoseconds_are_exact_and_unsigned_ones_do_not_wrap) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    constexpr auto beyond = static_cast<std::uint64_t>(most) + 1;
    static_assert(span_of<std::uint64_t, std::nano>(beyond - 2) == most - 1);
    static_assert(span_of<std::uint64_t, std::nano>(beyond - 1) == most);
    static_assert(span_of<std::uint64_t, std::nano>(beyond) == most);
    static_assert(span_of<std::uint64_t, std::nano>(~std::uint64_t(0)) == most);
    static_assert(span_of<std::int64_t, std::nano>(-most - 1) == -most - 1);
    using clock = std::chrono::steady_clock;
    using wide = std::chrono::duration<std::uint64_t, std::nano>;
    EXPECT_EQ(ex::instant(std::chrono::time_point<clock, wide>::max()), ex::instant::never());
}

TEST(deadline, whole_nanoseconds_of_any_period_are_exact) {
    for (std::int64_t n = -2000; n != 2000; ++n) {
        EXPECT_EQ((span_of<std::int64_t, std::pico>(n * 1000)), n);
        EXPECT_EQ((span_of<std::int64_t, std::micro>(n)), n * 1000);
        EXPECT_EQ((span_of<std::int64_t, std::ratio<1, 60>>(n * 60)), n * 1'000'000'000);
    }
    const std::int64_t far = std::numeric_limits<std::int64_t>::max() / 1000;
    EXPECT_EQ((span_of<std::int64_t, std::micro>(far)), far * 1000);
}

TEST(deadline, nan_counts_as_a_span_that_has_passed) {
    const auto nan_of = []<class Rep>(Rep) {
        constexpr Rep nan = std::numeric_limits<Rep>::quiet_NaN();
        EXPECT_EQ((span_of<Rep, std::nano>(nan)), 0);
        EXPECT_EQ((span_of<Rep, std::ratio<3600>>(-nan)), 0);
        using point =
            std::chrono::time_point<std::chrono::steady_clock, std::chrono::duration<Rep>>;
        EXPECT_EQ(ex::instant(point(std::chrono::duration<Rep>(nan))), ex::instant());
        constexpr Rep infinity = std::numeric_limits<Rep>::infinity();
        EXPECT_EQ((span_of<Rep, std::pico>(infinity)), std::numeric_limits<std::int64_t>::max());
        EXPECT_EQ((span_of<Rep, std::pico>(-infinity)), -std::numeric_limits<std::int64_t>::max());
    };
    nan_of(0.0F);
    nan_of(0.0);
    nan_of(0.0L);
}

TEST(deadline, becomes_the_nearest_duration_of_every_type) {
    const auto check = []<class Rep>(Rep) {
        using to = std::chrono::duration<Rep, std::nano>;
        using limits = std::numeric_limits<Rep>;
        const to late = ex::time_span(std::numeric_limits<std::int64_t>::max());
        const to early = ex::time_span(std::numeric_limits<std::int64_t>::min());
        EXPECT_EQ(late.count(),
                  sizeof(Rep) < 8 ? limits::max() : Rep(std::numeric_limits<std::int64_t>::max()));
        EXPECT_EQ(early.count(), limits::min());
        const to seven = ex::time_span(7);
        EXPECT_EQ(seven.count(), Rep(7));
    };
    check(std::int8_t{});
    check(std::uint8_t{});
    check(std::int16_t{});
    check(std::uint16_t{});
    check(std::int32_t{});
    check(std::uint32_t{});
    check(std::int64_t{});
    check(std::uint64_t{});
    const std::chrono::duration<double, std::nano> half = ex::time_span(1LL << 62);
    EXPECT_EQ(half.count(), 0x1p62);
}

}  // namespace
