// http/date.hpp: RFC 9110 section 5.6.7.
#include <coppice/http/date.hpp>

#include <gtest/gtest.h>

#include <string>

namespace {

using coppice::http::date_cache;
using coppice::http::parse_date;

constexpr std::int64_t now = 1'795'000'000;  // in 2026

TEST(parse_date, rfc9110_5_6_7_all_three_forms_name_the_same_second) {
    EXPECT_EQ(parse_date("Sun, 06 Nov 1994 08:49:37 GMT", now), 784111777);
    EXPECT_EQ(parse_date("Sunday, 06-Nov-94 08:49:37 GMT", now), 784111777);
    EXPECT_EQ(parse_date("Sun Nov  6 08:49:37 1994", now), 784111777);
}

TEST(parse_date, rfc9110_5_6_7_a_two_digit_year_is_at_most_fifty_years_ahead) {
    EXPECT_EQ(parse_date("Wednesday, 01-Jan-76 00:00:00 GMT", now),
              parse_date("Wed, 01 Jan 2076 00:00:00 GMT", now));
    EXPECT_EQ(parse_date("Saturday, 01-Jan-77 00:00:00 GMT", now),
              parse_date("Sat, 01 Jan 1977 00:00:00 GMT", now));
}

TEST(parse_date, reads_what_date_cache_writes) {
    date_cache cache;
    for (std::int64_t t = 0; t < 253402300800; t += 86'399 * 37 + 12'345) {
        EXPECT_EQ(parse_date(cache.at(t), now), t) << cache.at(t);
    }
}

TEST(parse_date, nothing_else_is_a_date) {
    for (const char* const text :
         {"", "0", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC",
          "Sun, 06 Nov 1994 08:49:37 GMT ", " Sun, 06 Nov 1994 08:49:37 GMT",
          "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT",
          "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
          "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 00 Feb 1994 08:49:37 GMT",
          "Sun, 32 Jan 1994 08:49:37 GMT", "Foo, 06 Nov 1994 08:49:37 GMT",
          "Sun, 06 ovD 1994 08:49:37 GMT", "Sun, -6 Nov 1994 08:49:37 GMT",
          "Sunday, 06 Nov 1994 08:49:37 GMT"}) {
        EXPECT_EQ(parse_date(text, now), std::nullopt) << text;
    }
    const std::string whole = "Sun, 06 Nov 1994 08:49:37 GMT";
    for (std::size_t size = 0; size != whole.size(); ++size) {
        EXPECT_EQ(parse_date(whole.substr(0, size), now), std::nullopt);
    }
}

}  // namespace
