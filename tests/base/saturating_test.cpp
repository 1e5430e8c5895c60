// Plan: every pair of 8-bit numbers, compared with int arithmetic; durations and time points at
// their ends; rates, compared with 128-bit arithmetic.
#include <coppice/base/clock.hpp>
#include <coppice/base/saturating.hpp>
#include <coppice/base/saturating_cast.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace {

using namespace coppice;
using namespace coppice::internal;

template <class T>
constexpr T clamp(int wide) {
    return static_cast<T>(
        std::clamp<int>(wide, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

template <class T>
void expect_wide_arithmetic() {
    for (int a = std::numeric_limits<T>::min(); a <= std::numeric_limits<T>::max(); ++a) {
        for (int b = std::numeric_limits<T>::min(); b <= std::numeric_limits<T>::max(); ++b) {
            const T x = static_cast<T>(a);
            const T y = static_cast<T>(b);
            ASSERT_EQ(saturating_add(x, y), clamp<T>(a + b)) << a << " " << b;
            ASSERT_EQ(saturating_sub(x, y), clamp<T>(a - b)) << a << " " << b;
            ASSERT_EQ(saturating_mul(x, y), clamp<T>(a * b)) << a << " " << b;
        }
    }
}

TEST(saturating, every_sum_difference_and_product_of_bytes_is_the_nearest_value) {
    expect_wide_arithmetic<std::int8_t>();
    expect_wide_arithmetic<std::uint8_t>();
}

TEST(saturating, a_cast_returns_the_nearest_value) {
    for (int v = -70'000; v <= 70'000; ++v) {
        ASSERT_EQ(saturating_cast<std::int8_t>(v), clamp<std::int8_t>(v));
        ASSERT_EQ(saturating_cast<std::uint8_t>(v), clamp<std::uint8_t>(v));
        ASSERT_EQ(saturating_cast<std::int16_t>(v), clamp<std::int16_t>(v));
        ASSERT_EQ(saturating_cast<std::uint16_t>(v), clamp<std::uint16_t>(v));
        ASSERT_EQ(saturating_cast<std::uint64_t>(v), static_cast<std::uint64_t>(std::max(v, 0)));
    }
    constexpr auto most = std::numeric_limits<std::uint64_t>::max();
    EXPECT_EQ(saturating_cast<std::int64_t>(most), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(saturating_cast<std::uint64_t>(most), most);
    EXPECT_EQ(saturating_cast<int>(std::numeric_limits<std::int64_t>::min()),
              std::numeric_limits<int>::min());
}

TEST(saturating, durations_and_deadlines_stop_at_the_ends_of_their_range) {
    constexpr time_point now{duration(1'000)};
    static_assert(saturating_add(now, duration::max()) == time_point::max());
    static_assert(saturating_add(now, duration::max() - duration(1'001)) ==
                  time_point::max() - duration(1));
    static_assert(saturating_add(now, duration::min()) ==
                  time_point(duration::min() + duration(1'000)));
    static_assert(saturating_add(time_point(duration(-1)), duration::min()) == time_point::min());
    static_assert(saturating_sub(time_point::max(), time_point(duration(-1))) == duration::max());
    static_assert(saturating_sub(time_point::min(), now) == duration::min());
    static_assert(saturating_sub(now, duration::min()) == time_point::max());
    static_assert(saturating_add(duration::max(), duration(1)) == duration::max());
    static_assert(saturating_sub(duration::min(), duration(1)) == duration::min());
    static_assert(saturating_mul(std::chrono::seconds::max(), 2) == std::chrono::seconds::max());
    static_assert(saturating_add(std::chrono::steady_clock::time_point::max(),
                                 std::chrono::steady_clock::duration(1)) ==
                  std::chrono::steady_clock::time_point::max());
}

TEST(saturating, time_at_rate_agrees_with_128_bit_arithmetic) {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t numbers[] = {0,         1,         2,           999,          1'000,
                                     16 * 1024, 1'000'000, 999'999'999, 1u << 30,     most / 2,
                                     most - 1,  most,      8'388'608u,  1'000'000'001};
    for (const std::uint64_t units : numbers) {
        for (const std::uint64_t rate : numbers) {
            const duration time = time_at_rate<duration>(units, rate);
            if (units == 0) {
                ASSERT_EQ(time, duration::zero());
            } else if (rate == 0) {
                ASSERT_EQ(time, duration::max());
            } else {
                __extension__ using wide = unsigned __int128;
                const wide exact = wide{units} * 1'000'000'000 / rate;
                const auto end = static_cast<wide>(duration::max().count());
                const auto expected = static_cast<std::int64_t>(std::min(exact, end));
                // Rates beyond what 64 bits hold in nanoseconds are off by a nanosecond or two.
                const std::int64_t slack = rate > most / 1'000'000'000 ? 2 : 0;
                ASSERT_LE(std::abs(time.count() - expected), slack) << units << " " << rate;
            }
        }
    }
    static_assert(time_at_rate<std::chrono::seconds>(100, 30) == std::chrono::seconds(3));
}

}  // namespace
