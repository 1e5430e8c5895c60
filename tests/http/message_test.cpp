// http/message.hpp: what handlers read and what clients get, to the byte.
#include <coppice/http/internal/passing_view.hpp>
#include <coppice/http/message.hpp>
#include <coppice/http/request.hpp>
#include <coppice/http/response.hpp>

#include <gtest/gtest.h>

#include <ctime>
#include <stdexcept>
#include <string>

#include "allocations.hpp"

namespace {

using namespace coppice;
using http::request;
using http::response;
using http::static_text;

std::string bytes(const response& answer, const http::serialize_options& options = {}) {
    std::string out;
    http::serialize(answer, options, out);
    return out;
}

TEST(response, the_factories_set_status_type_and_body) {
    EXPECT_EQ(bytes(response::text("Hello")),
              "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
              "Content-Length: 5\r\n\r\nHello");
    EXPECT_EQ(bytes(response::json(std::string("{}"), 201)),
              "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
              "Content-Length: 2\r\n\r\n{}");
    EXPECT_EQ(bytes(response::html("<p>", 500)),
              "HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/html; charset=utf-8\r\n"
              "Content-Length: 3\r\n\r\n<p>");
    EXPECT_EQ(bytes(response::status(404)),
              "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\n"
              "Content-Length: 9\r\n\r\nNot Found");
    EXPECT_EQ(response::status(400, "n is no number").body(), "n is no number");
    EXPECT_EQ(bytes(response()), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

TEST(response, a_static_body_is_never_copied_and_an_owned_one_moves) {
    static constexpr std::string_view text = "static text that is longer than a small string holds";
    response answer = response::text(text);
    EXPECT_EQ(answer.body().data(), text.data());
    const response copy = answer;
    EXPECT_EQ(copy.body().data(), text.data());

    std::string owned(100, 'x');
    const char* const at = owned.data();
    answer.body(std::move(owned));
    const response moved = std::move(answer);
    EXPECT_EQ(moved.body().data(), at);
    EXPECT_EQ(moved.body().size(), 100u);
    // A short body lives inside its response: a copy must show its own.
    const response small = response::text(std::string("abc"));
    const response other = small;
    EXPECT_EQ(other.body(), "abc");
    EXPECT_NE(other.body().data(), small.body().data());
}

TEST(response, a_view_that_is_not_a_constant_is_copied) {
    const auto made_of = [](response (*make)(std::string_view)) {
        std::string shown = "text that is longer than a small string holds";
        const response answer = make(shown);
        EXPECT_NE(answer.body().data(), shown.data());
        shown.assign(shown.size(), 'x');
        return std::string(answer.body());
    };
    const std::string_view expected = "text that is longer than a small string holds";
    EXPECT_EQ(made_of([](std::string_view v) { return response::text(v); }), expected);
    EXPECT_EQ(made_of([](std::string_view v) { return response::html(v, 201); }), expected);
    EXPECT_EQ(made_of([](std::string_view v) { return response::json(v.substr(0)); }), expected);
    EXPECT_EQ(made_of([](std::string_view v) { return response(200).body(v); }), expected);
    EXPECT_EQ(made_of([](std::string_view v) {
                  response r;
                  r.body(v.substr(0));
                  return r;
              }),
              expected);
}

// RFC 9110 section 5.5, RFC 9112 section 11.1
TEST(response, a_field_that_could_end_early_is_refused_and_changes_nothing) {
    using namespace std::string_literals;
    response answer = response::text("x");
    answer.add("X-Good", "a b\t\xff");
    const std::string before = bytes(answer);
    for (const std::string& bad :
         {"a\r\nX: y"s, "a\r"s, "a\n"s, "\na"s, "a\0b"s, "\x01"s, "\x7f"s, " a"s, "a "s, "\ta"s}) {
        EXPECT_THROW(answer.add("X", bad), std::invalid_argument) << bad;
        EXPECT_THROW(answer.content_type(static_text::promised(bad)), std::invalid_argument);
    }
    for (const std::string& bad : {""s, "X:"s, "X Y"s, "X\r\nY"s, "X\0"s, "X\n"s, "\xff"s, " X"s}) {
        EXPECT_THROW(answer.add(bad, "v"), std::invalid_argument) << bad;
    }
    for (const char* framing :
         {"Content-Length", "transfer-encoding", "CONNECTION", "Date", "content-type"}) {
        EXPECT_THROW(answer.add(framing, "1"), std::invalid_argument) << framing;
    }
    EXPECT_EQ(bytes(answer), before);
    EXPECT_NE(before.find("\r\nX-Good: a b\t\xff\r\n"), std::string::npos);
}

TEST(response, fields_are_sent_in_the_order_they_were_added) {
    EXPECT_EQ(bytes(response::text("x").add("B", "1").add("A", "").add("B", "2")),
              "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
              "Content-Length: 1\r\nB: 1\r\nA: \r\nB: 2\r\n\r\nx");
    EXPECT_EQ(bytes(response::text("x").content_type("image/png").add("A", "1")),
              "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 1\r\nA: 1\r\n\r\nx");
}

TEST(response_death, a_status_out_of_range_stops_the_process) {
    EXPECT_DEATH(response(99), "status");
    EXPECT_DEATH(response(600), "status");
}

// RFC 9110 section 9.3.2
TEST(serialize, head_has_the_fields_of_get_and_no_body) {
    const response answer = response::text("Hello").add("X", "y");
    const std::string full = bytes(answer);
    EXPECT_EQ(bytes(answer, {.head_only = true}) + "Hello", full);
}

// RFC 9110 sections 6.4.1 and 8.6
TEST(serialize, codes_without_a_body_have_neither_body_nor_length) {
    for (const int code : {100, 101, 199, 204, 304}) {
        response answer(code);
        answer.body("ignored").content_type("text/plain").add("ETag", "\"a\"");
        const std::string text = bytes(answer);
        EXPECT_EQ(text, "HTTP/1.1 " + std::to_string(code) + " " +
                            std::string(http::reason_phrase(code)) + "\r\nETag: \"a\"\r\n\r\n");
        EXPECT_TRUE(response::status(code).body().empty());
    }
    EXPECT_EQ(bytes(response(205)), "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n");
}

// RFC 9112 section 9.3
TEST(serialize, connection_says_close_or_tells_a_1_0_client_to_keep_alive) {
    const auto connection = [](const response& answer, bool keep_alive, int minor) {
        const std::string text = bytes(answer, {.keep_alive = keep_alive, .minor_version = minor});
        const std::size_t at = text.find("Connection: ");
        return at == text.npos ? "" : text.substr(at, text.find('\r', at) - at);
    };
    EXPECT_EQ(connection(response(), true, 1), "");
    EXPECT_EQ(connection(response(), true, 0), "Connection: keep-alive");
    EXPECT_EQ(connection(response(), false, 1), "Connection: close");
    EXPECT_EQ(connection(response(), false, 0), "Connection: close");
    EXPECT_EQ(connection(response().close(), true, 1), "Connection: close");
    EXPECT_EQ(connection(response().close(), true, 0), "Connection: close");
}

TEST(serialize, appends_to_the_existing_text) {
    std::string out = "before";
    http::serialize(response(200), false, false, out);
    EXPECT_EQ(out, "beforeHTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    out.clear();
    http::serialize(response(599).close(), {.date = "D"}, out);
    EXPECT_EQ(out, "HTTP/1.1 599 \r\nDate: D\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

TEST(serialize, allocates_nothing_once_the_buffer_has_grown) {
    const response answer = response::text("Hello, World!").add("Server", "coppice");
    http::date_cache date;
    std::string out;
    const auto batch = [&] {
        out.clear();
        for (int i = 0; i < 16; ++i) {
            http::serialize(answer, {.date = date.at(i)}, out);
        }
        http::serialize(response::json("{}"), {.head_only = true}, out);
    };
    batch();
    const test::allocation_count count;
    batch();
    EXPECT_EQ(count.so_far(), 0u);
}

// RFC 9110 section 15
TEST(reason_phrase, is_the_registered_phrase) {
    EXPECT_EQ(http::reason_phrase(200), "OK");
    EXPECT_EQ(http::reason_phrase(413), "Content Too Large");
    EXPECT_EQ(http::reason_phrase(431), "Request Header Fields Too Large");
    EXPECT_EQ(http::reason_phrase(505), "HTTP Version Not Supported");
    EXPECT_EQ(http::reason_phrase(299), "");
}

// RFC 9110 section 5.6.7
TEST(date_cache, formats_imf_fixdate) {
    http::date_cache date;
    EXPECT_EQ(date.at(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
    EXPECT_EQ(date.at(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    EXPECT_EQ(date.at(951782400), "Tue, 29 Feb 2000 00:00:00 GMT");
    EXPECT_EQ(date.at(253402300799), "Fri, 31 Dec 9999 23:59:59 GMT");
}

TEST(date_cache, agrees_with_the_c_library_on_every_day_of_three_centuries_and_on_leap_years) {
    http::date_cache date;
    for (std::int64_t day = 0; day < 300 * 366; ++day) {
        const std::time_t seconds = day * 86400 + (day * 7919) % 86400;
        std::tm parts{};
        ::gmtime_r(&seconds, &parts);
        char expected[64];
        std::strftime(expected, sizeof expected, "%a, %d %b %Y %H:%M:%S GMT", &parts);
        ASSERT_EQ(date.at(seconds), expected);
    }
}

TEST(date_cache, shows_the_new_second_and_keeps_the_old_one_in_place) {
    http::date_cache date;
    const std::string_view first = date.at(100);
    EXPECT_EQ(first.substr(17, 8), "00:01:40");
    EXPECT_EQ(date.at(101).substr(17, 8), "00:01:41");
    EXPECT_EQ(date.at(100).substr(17, 8), "00:01:40");
    EXPECT_EQ(date.at(100).data(), first.data());
}

TEST(date_cache_death, a_time_out_of_range_stops_the_process) {
    http::date_cache date;
    EXPECT_DEATH(date.at(-2), "date");
    EXPECT_DEATH(date.at(253402300800), "date");
}

struct parsed_request {
    explicit parsed_request(std::string_view target)
        : bytes("GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n\r\n") {
        EXPECT_EQ(http::parse_head(bytes, head, {}).status, http::parse_status::complete);
    }
    std::string bytes;
    http::request_head head;
};

TEST(request, query_gives_text_as_sent_decoded_text_and_numbers) {
    const parsed_request p(
        "/?n=22&m=-5&name=J%c3%b6rg+%26+Co%2b&flag&empty=&n=23&big=99999999999"
        "&bad=2x&plus=+1&%6e%78=found&=anonymous");
    const request r(p.head, "body");
    EXPECT_EQ(r.body(), "body");
    EXPECT_EQ(r.query("n"), "22");
    EXPECT_EQ(r.query<int>("n"), 22);
    EXPECT_EQ(r.query<int>("m"), -5);
    EXPECT_EQ(r.query<unsigned>("m"), std::nullopt);
    EXPECT_EQ(r.query("name"), "J%c3%b6rg+%26+Co%2b");
    EXPECT_EQ(r.query<std::string>("name"), "J\xc3\xb6rg & Co+");
    EXPECT_EQ(r.query("flag"), "");
    EXPECT_EQ(r.query("empty"), "");
    EXPECT_EQ(r.query<int>("empty"), std::nullopt);
    EXPECT_EQ(r.query<int>("big"), std::nullopt);
    EXPECT_EQ(r.query<long>("big"), 99999999999);
    EXPECT_EQ(r.query<int>("bad"), std::nullopt);
    EXPECT_EQ(r.query<int>("plus"), std::nullopt);
    EXPECT_EQ(r.query("nx"), "found");
    EXPECT_EQ(r.query(""), "anonymous");
    EXPECT_EQ(r.query("absent"), std::nullopt);
    EXPECT_EQ(r.query("N"), std::nullopt);
}

TEST(request, parameters_are_decoded_on_access) {
    const parsed_request p("/");
    http::path_parameters parameters;
    parameters.push_back({"id", "42"});
    parameters.push_back({"name", "a%2fb+c"});
    const request r(p.head, {}, parameters);
    EXPECT_EQ(r.parameter<int>("id"), 42);
    EXPECT_EQ(r.parameter("name"), "a/b+c") << "a plus is a plus in a path";
    EXPECT_EQ(r.parameter<std::string_view>("name"), "a%2fb+c");
    EXPECT_EQ(r.parameter<int>("name"), std::nullopt);
    EXPECT_EQ(r.parameter("absent"), std::nullopt);
}

}  // namespace
