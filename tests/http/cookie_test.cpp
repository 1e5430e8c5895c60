// http/cookie.hpp: cookies of requests, and cookies for browsers.
#include <coppice/http/cookie.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "allocations.hpp"

namespace {

using namespace coppice;
using namespace std::chrono_literals;
using http::response;
using http::same_site_rule;
using http::set_cookie;

// A request with those field lines, and its cookies as "name=value|".
class received {
public:
    explicit received(const std::string& lines)
        : bytes_("GET / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n") {
        const http::parse_result result = http::parse_head(bytes_, head_, {});
        EXPECT_EQ(result.status, http::parse_status::complete) << result.reason;
    }
    http::request request() const { return {head_, ""}; }
    std::string all() const {
        std::string text;
        for (const http::cookie_pair& c : http::cookies(request()))
            text.append(c.name).append("=").append(c.value).append("|");
        return text;
    }

private:
    std::string bytes_;
    http::request_head head_;
};

TEST(cookies, are_found_in_order_in_all_fields) {
    EXPECT_EQ(received("Cookie: a=1; b=2\r\nX: y=3\r\ncookie: c=3\r\n").all(), "a=1|b=2|c=3|");
    EXPECT_EQ(received("").all(), "");
    EXPECT_EQ(received("Cookie: \r\n").all(), "");
    static_assert(std::forward_iterator<http::cookie_range::iterator>);
}

TEST(cookies, the_first_of_a_name_is_found_case_sensitively) {
    const received r("Cookie: sid=one; SID=two; sid=three; empty=\r\n");
    EXPECT_EQ(http::cookie(r.request(), "sid"), "one");
    EXPECT_EQ(http::cookie(r.request(), "SID"), "two");
    EXPECT_EQ(http::cookie(r.request(), "empty"), "");
    EXPECT_EQ(http::cookie(r.request(), "si"), std::nullopt);
    EXPECT_EQ(http::cookie(r.request(), ""), std::nullopt);
}

TEST(cookies, malformed_ones_are_skipped_and_hide_no_other) {
    EXPECT_EQ(received("Cookie: ; ;;a=1;b ; =x; c d=2;\t e = f=g\t;(=1; h=\"i j\"\r\n").all(),
              "a=1|e=f=g|h=\"i j\"|");
    EXPECT_EQ(received("Cookie: a=\x80\xff,b; \xc3\xa9=1; =; ==; b=2\r\n").all(),
              "a=\x80\xff,b|b=2|");
}

TEST(cookies, any_byte_that_a_field_may_have_can_be_read) {
    for (int c = 0x20; c != 0x100; ++c) {
        if (c == 0x7f) continue;
        const std::string byte(1, static_cast<char>(c));
        const received r("Cookie: a" + byte + "b=c" + byte + "d; last=1\r\n");
        EXPECT_EQ(http::cookie(r.request(), "last"), "1") << c;
        for (const http::cookie_pair& each : http::cookies(r.request())) {
            EXPECT_FALSE(each.name.empty());
            EXPECT_EQ(each.value.find(';'), std::string_view::npos);
        }
    }
}

TEST(cookies, are_read_without_an_allocation) {
    const received r("Cookie: a=1; b=2; c=3\r\nCookie: d=4\r\n");
    const test::allocation_count count;
    EXPECT_EQ(http::cookie(r.request(), "d"), "4");
    EXPECT_EQ(count.so_far(), 0u);
}

TEST(set_cookie, hides_a_cookie_from_scripts_and_other_sites_by_default) {
    EXPECT_EQ((set_cookie{.name = "sid", .value = "x1"}.field_value()),
              "sid=x1; Path=/; HttpOnly; SameSite=Lax");
    EXPECT_EQ((set_cookie{.name = "theme",
                          .value = "dark",
                          .path = "",
                          .http_only = false,
                          .same_site = same_site_rule::unset}
                   .field_value()),
              "theme=dark");
}

TEST(set_cookie, writes_every_attribute) {
    EXPECT_EQ((set_cookie{.name = "sid",
                          .value = "x",
                          .path = "/a b",
                          .domain = "example.org",
                          .max_age = 1h,
                          .expires = std::chrono::sys_seconds(784'111'777s),
                          .secure = true,
                          .same_site = same_site_rule::none,
                          .partitioned = true}
                   .field_value()),
              "sid=x; Path=/a b; Domain=example.org; Max-Age=3600; "
              "Expires=Sun, 06 Nov 1994 08:49:37 GMT; Secure; HttpOnly; SameSite=None; "
              "Partitioned");
    EXPECT_NE((set_cookie{.name = "a", .same_site = same_site_rule::strict}.field_value())
                  .find("SameSite=Strict"),
              std::string::npos);
    EXPECT_NE((set_cookie{.name = "a", .max_age = std::chrono::seconds::min()}.field_value())
                  .find("Max-Age=-9223372036854775808"),
              std::string::npos);
}

bool is_refused(const set_cookie& c) {
    response answer;
    try {
        http::add_cookie(answer, c);
    } catch (const std::invalid_argument&) {
        EXPECT_EQ(answer.fields(), "");
        return true;
    }
    return false;
}

TEST(set_cookie, refuses_each_byte_that_would_end_the_name_or_the_attribute) {
    const std::string_view in_names = "!#$%&'*+-.^_`|~";
    const std::string_view not_in_values = "\",;\\ \x7f";
    for (int c = 0; c != 0x100; ++c) {
        const char byte = static_cast<char>(c);
        const std::string text = {'a', byte, 'b'};
        const bool alphanumeric =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        EXPECT_EQ(is_refused({.name = text}), !alphanumeric && in_names.find(byte) == in_names.npos)
            << c;
        EXPECT_EQ(is_refused({.name = "n", .value = text}),
                  c < 0x20 || c >= 0x7f || not_in_values.find(byte) != not_in_values.npos)
            << c;
        EXPECT_EQ(is_refused({.name = "n", .path = "/" + text}), c < 0x20 || c >= 0x7f || c == ';')
            << c;
        EXPECT_EQ(is_refused({.name = "n", .domain = text}),
                  !alphanumeric && c != '-' && c != '.' && c != '_')
            << c;
    }
}

TEST(set_cookie, refuses_cookies_that_browsers_would_drop_silently) {
    EXPECT_TRUE(is_refused({.name = ""}));
    EXPECT_TRUE(is_refused({.name = "a", .path = "x"}));
    EXPECT_TRUE(is_refused({.name = "a", .path = "/x "}));
    for (const char* const domain : {".", ".a", "a.", "a..b", "a:80", "[::1]", "a b"})
        EXPECT_TRUE(is_refused({.name = "a", .domain = domain})) << domain;
    EXPECT_TRUE(is_refused({.name = "a", .same_site = same_site_rule::none}));
    EXPECT_TRUE(is_refused({.name = "a", .partitioned = true}));
    EXPECT_TRUE(is_refused({.name = "__Secure-a"}));
    EXPECT_TRUE(is_refused({.name = "__sEcUrE-a"}));
    EXPECT_FALSE(is_refused({.name = "__Secure-a", .secure = true}));
    EXPECT_TRUE(is_refused({.name = "__Host-a"}));
    EXPECT_TRUE(is_refused({.name = "__host-a", .path = "/b", .secure = true}));
    EXPECT_TRUE(is_refused({.name = "__Host-a", .path = "", .secure = true}));
    EXPECT_TRUE(is_refused({.name = "__Host-a", .domain = "b", .secure = true}));
    EXPECT_FALSE(is_refused({.name = "__Host-a", .secure = true}));
}

TEST(set_cookie, refuses_texts_that_are_too_long_and_dates_out_of_range) {
    EXPECT_FALSE(is_refused({.name = "a", .value = std::string(4095, 'x')}));
    EXPECT_TRUE(is_refused({.name = "a", .value = std::string(4096, 'x')}));
    EXPECT_FALSE(is_refused({.name = "a", .path = "/" + std::string(1023, 'x')}));
    EXPECT_TRUE(is_refused({.name = "a", .path = "/" + std::string(1024, 'x')}));
    EXPECT_TRUE(is_refused({.name = "a", .domain = std::string(1025, 'x')}));
    using std::chrono::sys_seconds;
    EXPECT_FALSE(is_refused({.name = "a", .expires = sys_seconds(0s)}));
    EXPECT_FALSE(is_refused({.name = "a", .expires = sys_seconds(253'402'300'799s)}));
    EXPECT_TRUE(is_refused({.name = "a", .expires = sys_seconds(253'402'300'800s)}));
    EXPECT_TRUE(is_refused({.name = "a", .expires = sys_seconds(-1s)}));
    EXPECT_TRUE(is_refused({.name = "a", .expires = sys_seconds::max()}));
    EXPECT_TRUE(is_refused({.name = "a", .expires = sys_seconds::min()}));
}

TEST(set_cookie, several_cookies_are_several_fields_and_expiring_repeats_path_and_domain) {
    response answer = http::add_cookie(response::text("x"), {.name = "a", .value = "1"});
    http::expire_cookie(answer, {.name = "__Host-b", .value = "old", .secure = true});
    EXPECT_EQ(answer.fields(),
              "Set-Cookie: a=1; Path=/; HttpOnly; SameSite=Lax\r\n"
              "Set-Cookie: __Host-b=; Path=/; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; "
              "Secure; HttpOnly; SameSite=Lax\r\n");
    EXPECT_EQ(http::expire_cookie(response(204), {.name = "c"}).status(), 204);
}

}  // namespace
