// http::json_errors(): errors as JSON.
#include <coppice/http/filters.hpp>

#include "running_server.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using namespace coppice;
using namespace coppice::test;
using http::request;
using http::response;

constexpr std::string_view bytes = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

// The answer after the filter.
response filtered(response answer) {
    http::request_head head;
    EXPECT_EQ(http::parse_head(bytes, head, {}).status, http::parse_status::complete);
    http::json_errors()->after(request(head, {}), answer);
    return answer;
}
std::string told(const std::string& text) {
    const response answer = filtered(response::text(text, 400));
    EXPECT_EQ(answer.content_type(), "application/json");
    return std::string(answer.body());
}

TEST(json_errors, a_text_is_a_json_string_whatever_is_in_it) {
    EXPECT_EQ(told("plain"), R"({"error":"plain"})");
    EXPECT_EQ(told("a\"b\\c/"), R"({"error":"a\"b\\c/"})");
    EXPECT_EQ(told(std::string("\0\n\x1f\x7f", 4)), R"({"error":"\u0000\u000a\u001f\u007f"})");
    EXPECT_EQ(told("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
              "{\"error\":\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"}");
    EXPECT_EQ(told(""), R"({"error":"Bad Request"})");
}

TEST(json_errors, bytes_that_are_not_utf_8_are_replaced) {
    const std::string replaced = "\\ufffd";
    for (const char* const none : {"\x80", "\xbf", "\xc0", "\xc1", "\xc3", "\xf5", "\xff", "\xf4"})
        EXPECT_EQ(told(none), "{\"error\":\"" + replaced + "\"}") << none;
    EXPECT_EQ(told("\xc3x"), "{\"error\":\"" + replaced + "x\"}");
    // Overlong, a surrogate, beyond U+10FFFF, cut off.
    for (const char* const none : {"\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82", "\xf0\x8f\xbf\xbf",
                                   "\xf4\x90\x80\x80", "\xf0\x9f\x98"}) {
        std::string all;
        for (std::size_t i = 0; none[i] != 0; ++i) all += replaced;
        EXPECT_EQ(told(none), "{\"error\":\"" + all + "\"}") << none;
    }
    for (int first = 0x80; first != 0x100; ++first) {
        for (int second = 0x20; second != 0x100; ++second) {
            const std::string text = told({static_cast<char>(first), static_cast<char>(second)});
            const bool whole = first >= 0xc2 && first < 0xe0 && second >= 0x80 && second < 0xc0;
            EXPECT_EQ(text.find(replaced) == text.npos, whole) << first << " " << second;
        }
    }
}

TEST(json_errors, other_answers_stay_as_they_are) {
    EXPECT_EQ(filtered(response::text("fine")).body(), "fine");
    EXPECT_EQ(filtered(response::text("moved", 302)).body(), "moved");
    EXPECT_EQ(filtered(response::json("[1]", 400)).body(), "[1]");
    EXPECT_EQ(filtered(response::html("<p>", 404)).content_type(), "text/html; charset=utf-8");
    EXPECT_EQ(filtered(response(404)).body(), R"({"error":"Not Found"})");
    EXPECT_EQ(filtered(response(599)).body(), R"({"error":""})");
}

class json_errors_on : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, json_errors_on, testing::ValuesIn(every_way), name_of_way);

TEST_P(json_errors_on, the_servers_own_refusals_and_faults_are_json_too) {
    http::server_options o = options_of(GetParam());
    o.on_exception = [](std::exception_ptr) {};
    http::router routes;
    routes.use(http::json_errors());
    routes
        .get("/{n:int}",
             [](request& r) {
                 return response::text(std::to_string(r.require_parameter<int>("n")));
             })
        .get("/fault", [](request&) -> response { throw std::runtime_error("a secret"); });
    running_server server(std::move(o), std::move(routes));
    client c(server.port());
    const auto ask = [&](std::string_view method, std::string_view path) {
        std::string text(method);
        text.append(" ").append(path).append(" HTTP/1.1\r\nHost: a\r\n\r\n");
        EXPECT_TRUE(c.send(text));
        return std::string(body_of(c.receive(method == "HEAD")));
    };
    EXPECT_EQ(ask("GET", "/7"), "7");
    EXPECT_EQ(ask("GET", "/x"), R"({"error":"Not Found"})");
    EXPECT_EQ(ask("POST", "/7"), R"({"error":"Method Not Allowed"})");
    EXPECT_EQ(ask("GET", "/fault"), R"({"error":"Internal Server Error"})");
    EXPECT_EQ(ask("GET", "/99999999999"),
              R"({"error":"path parameter 'n' must be an integer from -2147483648 to 2147483647: )"
              R"('99999999999'"})");
    EXPECT_EQ(ask("GET", "/%00"), R"({"error":"the path is malformed"})");
    EXPECT_EQ(ask("HEAD", "/x"), "");
    EXPECT_EQ(ask("GET", "/7"), "7");
}

}  // namespace
