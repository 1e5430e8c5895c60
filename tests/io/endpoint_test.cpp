// io/endpoint.hpp: strict parsing and printing.
#include <coppice/io/endpoint.hpp>

#include <gtest/gtest.h>

namespace {

using coppice::io::endpoint;

TEST(endpoint, parses_what_it_prints) {
    EXPECT_EQ(endpoint::parse("127.0.0.1", 80).value().to_string(), "127.0.0.1:80");
    EXPECT_EQ(endpoint::parse("::1", 65535).value().to_string(), "[::1]:65535");
    EXPECT_EQ(endpoint::parse("[fe80::2]", 1).value().to_string(), "[fe80::2]:1");
    EXPECT_EQ(endpoint::parse("::1", 5).value(), endpoint::parse("[::1]", 5).value());
    EXPECT_NE(endpoint::parse("::1", 5).value(), endpoint::parse("::1", 6).value());
    EXPECT_NE(endpoint::parse("127.0.0.1", 5).value(), endpoint::parse("127.0.0.2", 5).value());
    EXPECT_EQ(coppice::io::loopback(8080).to_string(), "127.0.0.1:8080");
    EXPECT_EQ(endpoint().to_string(), "unspecified");
}

TEST(endpoint, refuses_anything_that_is_not_an_address) {
    using namespace std::string_view_literals;
    for (const std::string_view bad :
         {""sv, "localhost"sv, "127.0.0"sv, "127.0.0.1 "sv, " 127.0.0.1"sv, "127.0.0.256"sv,
          "0127.0.0.1"sv, "127.1"sv, "[127.0.0.1]"sv, "[::1"sv, "::1]"sv, ":::"sv, "[]"sv,
          "127.0.0.1\0"sv, "::1%lo"sv, "1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16:17:18:19:20"sv}) {
        EXPECT_FALSE(endpoint::parse(bad, 1)) << bad;
        EXPECT_EQ(endpoint::parse(bad, 1).error(), std::errc::invalid_argument);
    }
}

TEST(endpoint, parses_an_address_with_its_port_as_it_prints_it) {
    for (const char* const text : {"127.0.0.1:80", "[::1]:65535", "0.0.0.0:0", "unix:/run/x.sock",
                                   "unix:@name", "unix:relative:with:colons"}) {
        EXPECT_EQ(endpoint::parse(text).value().to_string(), text);
        EXPECT_EQ(endpoint::parse(text).value(), endpoint::parse(text).value());
    }
    EXPECT_NE(endpoint::parse("unix:/a").value(), endpoint::parse("unix:/b").value());
    EXPECT_NE(endpoint::parse("unix:@a").value(), endpoint::parse("unix:a").value());
}

TEST(endpoint, refuses_an_address_whose_port_is_not_a_port) {
    using namespace std::string_view_literals;
    for (const std::string_view bad :
         {""sv, "127.0.0.1"sv, "127.0.0.1:"sv, ":80"sv, "127.0.0.1:+80"sv, "127.0.0.1:080"sv,
          "127.0.0.1:65536"sv, "127.0.0.1: 80"sv, "127.0.0.1:80 "sv, "127.0.0.1:8x"sv, "::1:80"sv,
          "[::1]80"sv, "[::1]"sv, "localhost:80"sv, "unix:"sv, "unix:@"sv, "unix:a\0b"sv,
          "127.0.0.1:-1"sv, "127.0.0.1:80\0"sv}) {
        EXPECT_EQ(endpoint::parse(bad).error(), std::errc::invalid_argument) << bad;
    }
    EXPECT_EQ(endpoint::unix_path(std::string(108, 'x')).error(), std::errc::filename_too_long);
    EXPECT_EQ(endpoint::unix_path(std::string(107, 'x')).value().path(), std::string(107, 'x'));
    EXPECT_EQ(endpoint::unix_path("@abstract").value().path(), "@abstract");
}

TEST(endpoint, with_another_port_keeps_its_address) {
    EXPECT_EQ(endpoint::parse("[::1]:80").value().with_port(81).to_string(), "[::1]:81");
    EXPECT_EQ(coppice::io::loopback(80).with_port(81), coppice::io::loopback(81));
    const endpoint path = endpoint::unix_path("/run/x").value();
    EXPECT_EQ(path.with_port(81), path);
}

}  // namespace
