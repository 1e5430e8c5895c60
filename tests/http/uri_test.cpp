// http/uri.hpp: strict decoding, query parameters, and integers.
#include <coppice/http/internal/query.hpp>
#include <coppice/http/uri.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace {

using namespace coppice;

TEST(uri, percent_decode_refuses_what_is_malformed) {
    std::string out;
    EXPECT_TRUE(http::percent_decode("a%20b%2Bc+", out));
    EXPECT_EQ(out, "a b+c+");
    EXPECT_TRUE(http::percent_decode("a+b", out, http::internal::plus_sign::space));
    EXPECT_EQ(out, "a b");
    EXPECT_TRUE(http::percent_decode("%00%ff", out));
    EXPECT_EQ(out, std::string("\0\xff", 2));
    EXPECT_TRUE(http::percent_decode("", out));
    EXPECT_EQ(out, "");
    for (const char* bad : {"%", "%4", "%4g", "%g4", "a%", "%%41", "%+1"}) {
        EXPECT_FALSE(http::percent_decode(bad, out)) << bad;
    }
}

TEST(uri, decodes_to_is_equality_after_decoding) {
    EXPECT_TRUE(http::internal::decodes_to("a%62c", "abc"));
    EXPECT_FALSE(http::internal::decodes_to("a%62", "abc"));
    EXPECT_FALSE(http::internal::decodes_to("a%62cd", "abc"));
    EXPECT_FALSE(http::internal::decodes_to("abc%", "abc"));
    EXPECT_FALSE(http::internal::decodes_to("a+b", "a b"));
    EXPECT_TRUE(http::internal::decodes_to("a+b", "a b", http::internal::plus_sign::space));
}

TEST(uri, the_first_query_parameter_of_a_name_is_used) {
    const auto value = http::query_value;
    EXPECT_EQ(value("a=1&b=2&a=3", "a"), "1");
    EXPECT_EQ(value("a=1&b=2", "b"), "2");
    EXPECT_EQ(value("a=1=2", "a"), "1=2");
    EXPECT_EQ(value("a", "a"), "");
    EXPECT_EQ(value("a=", "a"), "");
    EXPECT_EQ(value("&&a=1&", "a"), "1");
    EXPECT_EQ(value("%61+b=1", "a b"), "1");
    EXPECT_EQ(value("a%=1&a=2", "a%"), std::nullopt) << "a malformed name is no name";
    EXPECT_EQ(value("aa=1", "a"), std::nullopt);
    EXPECT_EQ(value("a;b=1", "b"), std::nullopt) << "only '&' separates";
    EXPECT_EQ(value("", ""), std::nullopt);
    EXPECT_EQ(value("b", "a"), std::nullopt);
}

TEST(uri, integers_are_all_of_the_text) {
    EXPECT_EQ(http::parse_integer<int>("-12"), -12);
    EXPECT_EQ(http::parse_integer<unsigned char>("255"), 255);
    EXPECT_EQ(http::parse_integer<int>("007"), 7);
    for (const char* bad : {"", " 1", "1 ", "+1", "0x1", "1e3", "1.", "--1", "-", "2147483648"}) {
        EXPECT_EQ(http::parse_integer<int>(bad), std::nullopt) << bad;
    }
    EXPECT_EQ(http::parse_integer<unsigned char>("256"), std::nullopt);
    EXPECT_EQ(http::parse_integer<unsigned>("-1"), std::nullopt);
}

}  // namespace
