// http/parse.hpp, request heads: what RFC 9110 and RFC 9112 permit is read, and what two readers
// could read differently is refused. Each text is delivered whole, at each split point, and byte by
// byte, its end against a protected page.
#include <coppice/http/parse.hpp>

#include <gtest/gtest.h>

#include <string>

#include "allocations.hpp"
#include "parsed_head.hpp"

namespace {

using namespace coppice;
using namespace coppice::test::heads;
using http::limits;
using http::method;
using http::parse_status;

TEST(parse, reads_a_whole_request) {
    const parsed p(
        "POST /a/b?x=1&y HTTP/1.1\r\nHost: example.com:8080\r\nContent-Length: 5\r\n"
        "X-Empty:\r\nX-Spaced: \t two words \t\r\n\r\nhello");
    EXPECT_EQ(p.result.consumed, p.bytes.size() - 5);
    EXPECT_EQ(p.head.verb(), method::post);
    EXPECT_EQ(p.head.method_text(), "POST");
    EXPECT_EQ(p.head.target(), "/a/b?x=1&y");
    EXPECT_EQ(p.head.path(), "/a/b");
    EXPECT_EQ(p.head.query(), "x=1&y");
    EXPECT_EQ(p.head.host(), "example.com:8080");
    EXPECT_EQ(p.head.minor_version(), 1);
    EXPECT_EQ(p.head.content_length(), 5u);
    ASSERT_EQ(p.head.fields().size(), 4u);
    EXPECT_EQ(p.head.find("x-empty"), "");
    EXPECT_EQ(p.head.find("X-SPACED"), "two words");
    EXPECT_EQ(p.head.find("X-Space"), std::nullopt);
}

TEST(parse, leaves_the_next_request_alone) {
    const std::string one = request("");
    for (const std::string& next : {one, std::string("\x01garbage"), std::string("\r\n")}) {
        const std::string both = one + next;
        http::request_head head;
        const auto result = http::parse_head(both, head, {});
        EXPECT_EQ(result.status, parse_status::complete);
        EXPECT_EQ(result.consumed, one.size());
    }
}

TEST(parse, reuses_a_head_without_a_trace_of_the_last_request) {
    http::request_head head;
    const std::string first =
        "POST http://x/?q HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nConnection: close\r\n"
        "Expect: 100-continue\r\n\r\n";
    for (const std::string& before : {first, request("Transfer-Encoding: chunked\r\n")}) {
        for (const std::string& after :
             {std::string("GET / HTTP/1.0\r\n\r\n"), request("Content-Length: 1\r\n")}) {
            ASSERT_EQ(http::parse_head(before, head, {}).status, parse_status::complete);
            const auto reused = http::parse_head(after, head, {});
            http::request_head fresh;
            EXPECT_EQ(test::describe(reused, head),
                      test::describe(http::parse_head(after, fresh, {}), fresh));
        }
    }
}

TEST(parse, allocates_nothing) {
    const std::string bytes = request("Content-Length: 3\r\nAccept: */*\r\nX-Long-Name: value\r\n");
    http::request_head head;
    http::head_parser parser({});
    const test::allocation_count count;
    for (std::size_t size = 0; size <= bytes.size(); ++size) {
        http::parse_head(std::string_view(bytes).substr(0, size), head, {});
        parser.parse(std::string_view(bytes).substr(0, size));
    }
    EXPECT_EQ(count.so_far(), 0u);
}

// RFC 9110 section 9.1 and RFC 9112 section 3.1
TEST(parse_method, known_names_are_told_apart_by_case) {
    const std::pair<std::string_view, method> known[] = {{"GET", method::get},
                                                         {"HEAD", method::head},
                                                         {"POST", method::post},
                                                         {"PUT", method::put},
                                                         {"DELETE", method::del},
                                                         {"OPTIONS", method::options},
                                                         {"TRACE", method::trace},
                                                         {"PATCH", method::patch},
                                                         {"get", method::other},
                                                         {"BREW", method::other},
                                                         {"GETT", method::other},
                                                         {"GE", method::other},
                                                         {"!#$%&'*+-.^_`|~9aZ", method::other}};
    for (const auto& [name, verb] : known) {
        const parsed p(line(std::string(name) + " / HTTP/1.1"));
        EXPECT_EQ(p.head.verb(), verb) << name;
        EXPECT_EQ(p.head.method_text(), name);
        EXPECT_EQ(http::to_string(verb), verb == method::other ? "" : name);
    }
}

TEST(parse_method, is_a_token_that_is_not_empty) {
    for (const std::string_view bad :
         {"", " ", "G(T", "GET:", "G\x7fT", "G\x80T", "G\tT", "\"GET\"", "GET\r", "G,T", "{}"}) {
        EXPECT_EQ(code(line(std::string(bad) + " / HTTP/1.1")), 400) << bad;
    }
}

// RFC 9112 section 3: "a method longer than any that it implements SHOULD" be answered with 501
TEST(parse_method, longer_than_any_known_one_is_501_at_once) {
    EXPECT_EQ(code(line(std::string(32, 'A') + " / HTTP/1.1")), 0);
    EXPECT_EQ(code(line(std::string(33, 'A') + " / HTTP/1.1")), 501);
    EXPECT_EQ(code(std::string(32, 'A')), -1);
    EXPECT_EQ(code(std::string(33, 'A')), 501);
}

// RFC 9112 section 3: one SP between the parts, nothing else
TEST(parse_request_line, has_exactly_one_space_between_its_parts) {
    for (const std::string_view bad :
         {" GET / HTTP/1.1", "GET  / HTTP/1.1", "GET /  HTTP/1.1", "GET / HTTP/1.1 ",
          "GET\t/ HTTP/1.1", "GET /\tHTTP/1.1", "GET /\x0bHTTP/1.1", "GET / x HTTP/1.1", "GET /",
          "GET / ", "GET", "GET ", "GET /HTTP/1.1", "GET / HTTP/1.1\t", "GET  HTTP/1.1"}) {
        EXPECT_EQ(code(line(bad)), 400) << bad;
    }
}

// RFC 9112 section 2.2: "SHOULD ignore at least one empty line (CRLF) received prior"
TEST(parse_request_line, one_empty_line_before_it_is_ignored_and_consumed) {
    const std::string text = line("GET / HTTP/1.1");
    const parsed p("\r\n" + text);
    EXPECT_EQ(p.result.consumed, text.size() + 2);
    EXPECT_EQ(code("\r\n\r\n" + text), 400);
    EXPECT_EQ(code("\n" + text), 400);
    EXPECT_EQ(code("\r" + text), 400);
    EXPECT_EQ(code("\r\n"), -1);
    EXPECT_EQ(code(""), -1);
}

// RFC 9112 section 2.3 and RFC 9110 section 2.5
TEST(parse_version, is_read_as_1_0_or_1_1) {
    EXPECT_EQ(parsed(line("GET / HTTP/1.0")).head.minor_version(), 0);
    EXPECT_EQ(parsed(line("GET / HTTP/1.1")).head.minor_version(), 1);
    EXPECT_EQ(parsed(line("GET / HTTP/1.2")).head.minor_version(), 1);
    EXPECT_EQ(parsed(line("GET / HTTP/1.9")).head.minor_version(), 1);
}

TEST(parse_version, malformed_is_400) {
    for (const std::string_view bad :
         {"http/1.1",  "Http/1.1",  "HTTP/1.10", "HTTP/1.01", "HTTP/01.1",
          "HTTP/11.1", "HTTP/1",    "HTTP/1.",   "HTTP/.1",   "HTTP/1,1",
          "HTTP 1.1",  "HTTP/1.1x", "HTTP/1.x",  "HTTP/x.1",  "HTTP/-1.1",
          "HTTP/+1.1", "HTTP/1. 1", "HTTPS/1.1", "XTTP/1.1",  "HTTP/1.1\x01"}) {
        EXPECT_EQ(code(line("GET / " + std::string(bad))), 400) << bad;
    }
}

TEST(parse_version, another_major_version_is_505) {
    for (const std::string_view bad : {"HTTP/0.9", "HTTP/2.0", "HTTP/3.0", "HTTP/9.9"}) {
        EXPECT_EQ(code(line("GET / " + std::string(bad))), 505) << bad;
    }
    // RFC 9113 section 3.4: the preface is meant to be refused
    EXPECT_EQ(code("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 400);
    EXPECT_EQ(code("OPTIONS * HTTP/2.0\r\n\r\n"), 505);
}

// RFC 9112 section 3.2.1
TEST(parse_target, origin_form_is_split_at_the_first_question_mark) {
    const std::tuple<std::string_view, std::string_view, std::string_view> good[] = {
        {"/", "/", ""},
        {"/?", "/", ""},
        {"/?a?b/c", "/", "a?b/c"},
        {"//", "//", ""},
        {"//host/x", "//host/x", ""},
        {"/http://x/", "/http://x/", ""},
        {"/%41%zz?", "", ""},
        {"/a;b=c,d:e@f!$&'()*+~_-.9Z", "/a;b=c,d:e@f!$&'()*+~_-.9Z", ""},
        {"/%00%2f%FF?%3f", "/%00%2f%FF", "%3f"},
        {"/../..", "/../..", ""},
        {"/*", "/*", ""}};
    for (const auto& [target, path, query] : good) {
        const std::string text = line("GET " + std::string(target) + " HTTP/1.1");
        if (path.empty()) {
            EXPECT_EQ(code(text), 400) << target;
            continue;
        }
        const parsed p(text);
        EXPECT_EQ(p.head.target(), target);
        EXPECT_EQ(p.head.path(), path);
        EXPECT_EQ(p.head.query(), query);
    }
}

TEST(parse_target, bytes_outside_the_grammar_are_400) {
    for (int byte = 0; byte < 256; ++byte) {
        const std::string one(1, static_cast<char>(byte));
        const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
        const bool digit = byte >= '0' && byte <= '9';
        // RFC 3986 section 3.3: pchar and '/'; '?' ends the path.
        const bool in_path =
            letter || digit || (byte != 0 && std::strchr("-._~!$&'()*+,;=:@/?", byte) != nullptr);
        // Section 3.4, and what browsers send unescaped.
        const bool in_query = in_path || (byte != 0 && std::strchr("[]{}|\\^`", byte) != nullptr);
        if (one == " ") continue;
        EXPECT_EQ(code(line("GET /a" + one + "b HTTP/1.1")), in_path ? 0 : 400) << byte;
        EXPECT_EQ(code(line("GET /?a" + one + "b HTTP/1.1")), in_query ? 0 : 400) << byte;
        EXPECT_EQ(code(line("GET http://a/a" + one + "b HTTP/1.1")), in_path ? 0 : 400) << byte;
    }
}

// RFC 3986 section 2.1
TEST(parse_target, a_percent_sign_needs_two_hexadecimal_digits) {
    for (const std::string_view bad :
         {"/%", "/%4", "/%4g", "/%g4", "/%%41", "/%u0041", "/?%", "/?a=%1", "/% 41", "/%-1"}) {
        EXPECT_EQ(code(line("GET " + std::string(bad) + " HTTP/1.1")), 400) << bad;
    }
    EXPECT_EQ(code("GET /%"), -1);
    EXPECT_EQ(code("GET /%4"), -1);
    EXPECT_EQ(code("GET /%x"), 400);
    EXPECT_EQ(code("GET /%4x"), 400);
}

// RFC 9112 section 3.2.2: the target's authority overrides Host
TEST(parse_target, absolute_form_names_the_host) {
    const parsed p("GET HTTP://example.com:80/x?y HTTP/1.1\r\nHost: other\r\n\r\n");
    EXPECT_EQ(p.head.scheme(), "HTTP");
    EXPECT_EQ(p.head.host(), "example.com:80");
    EXPECT_EQ(p.head.path(), "/x");
    EXPECT_EQ(p.head.query(), "y");
    EXPECT_EQ(parsed(line("GET http://a HTTP/1.1")).head.path(), "/");
    EXPECT_EQ(parsed(line("GET http://a?b HTTP/1.1")).head.path(), "/");
    EXPECT_EQ(parsed(line("GET http://a?b HTTP/1.1")).head.query(), "b");
    EXPECT_EQ(parsed(line("GET https://[::1]:1/ HTTP/1.1")).head.host(), "[::1]:1");
    // RFC 9112 section 3.2.4
    EXPECT_EQ(parsed(line("OPTIONS http://a HTTP/1.1")).head.path(), "*");
    EXPECT_EQ(parsed(line("OPTIONS http://a/ HTTP/1.1")).head.path(), "/");
    EXPECT_EQ(parsed(line("OPTIONS http://a? HTTP/1.1")).head.path(), "/");
    EXPECT_EQ(code("GET http://a/ HTTP/1.1\r\n\r\n"), 400) << "Host is needed all the same";
}

TEST(parse_target, other_forms_are_400) {
    for (const std::string_view bad : {"a",
                                       "a/b",
                                       "example.com",
                                       "example.com:80",
                                       "*",
                                       "?",
                                       "?a",
                                       "http:/a",
                                       "http:a",
                                       "http://",
                                       "http:///x",
                                       "http://:80/",
                                       "http://user@a/",
                                       "http://user:pass@a/",
                                       "http://a:b/",
                                       "http://a:65536/",
                                       "http://[::1/",
                                       "http://[x]/",
                                       "http://a\\b/",
                                       "http://a/[",
                                       "http://a[/",
                                       "ftp://a/",
                                       "file:///x",
                                       "http//a",
                                       "://a",
                                       "/#f",
                                       "#",
                                       "http://a/#f",
                                       "http://[::1]x/",
                                       "http://a:80:80/",
                                       "http://a%/",
                                       "http://a|b/"}) {
        EXPECT_EQ(code(line("GET " + std::string(bad) + " HTTP/1.1")), 400) << bad;
    }
}

// RFC 9112 section 3.2.3
TEST(parse_target, authority_form_is_only_for_connect) {
    const parsed p(line("CONNECT example.com:443 HTTP/1.1"));
    EXPECT_EQ(p.head.verb(), method::connect);
    EXPECT_EQ(p.head.host(), "example.com:443");
    EXPECT_EQ(p.head.path(), "");
    EXPECT_EQ(code(line("CONNECT [2001:db8::1]:443 HTTP/1.1")), 0);
    for (const std::string_view bad : {"/", "*", "example.com", "example.com:", ":443",
                                       "http://a:1/", "a@b:1", "a:1/", "a:1?", "a:x", "[::1]"}) {
        EXPECT_EQ(code(line("CONNECT " + std::string(bad) + " HTTP/1.1")), 400) << bad;
    }
}

// RFC 9112 section 3.2.4
TEST(parse_target, asterisk_form_is_only_for_options) {
    EXPECT_EQ(parsed(line("OPTIONS * HTTP/1.1")).head.path(), "*");
    EXPECT_EQ(parsed(line("OPTIONS / HTTP/1.1")).head.path(), "/");
    for (const std::string_view bad :
         {"GET *", "POST *", "OPTIONS **", "OPTIONS *?", "OPTIONS */"}) {
        EXPECT_EQ(code(line(std::string(bad) + " HTTP/1.1")), 400) << bad;
    }
}

// RFC 9112 section 3: 414
TEST(parse_target, longer_than_its_limit_is_414_at_once) {
    const limits limit{.target_bytes_max = 100};
    const auto target = [](std::size_t size) { return "GET /" + std::string(size - 1, 'a'); };
    EXPECT_EQ(code(line(target(100) + " HTTP/1.1"), limit), 0);
    EXPECT_EQ(code(line(target(101) + " HTTP/1.1"), limit), 414);
    EXPECT_EQ(code(target(100), limit), -1);
    EXPECT_EQ(code(target(101), limit), 414);
    EXPECT_EQ(code(target(99) + "%41", limit), 414);
    EXPECT_EQ(code(target(99) + "?a", limit), 414);
    EXPECT_EQ(code(target(99) + "#", limit), 400);
    EXPECT_EQ(code(line(target(8192) + " HTTP/1.1"), {}, 91), 0);
    EXPECT_EQ(code(line(target(8193) + " HTTP/1.1"), {}, 91), 414);
    const limits unlimited{.target_bytes_max = SIZE_MAX, .header_bytes_max = SIZE_MAX};
    EXPECT_EQ(code(line(target(20000) + " HTTP/1.1"), unlimited, 197), 0);
}

// A parser that starts over at each byte of this head would read five million million bytes and
// exceed the suite's timeout. This parser reads three million.
TEST(parse_pieces, each_byte_of_a_slow_sender_is_read_once) {
    const limits limit{.header_bytes_max = 4 << 20};
    const std::string bytes =
        "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(3 << 20, 'x') + "\r\n\r\n";
    http::head_parser parser(limit);
    http::parse_result result;
    for (std::size_t size = 0; size <= bytes.size(); ++size) {
        result = parser.parse(std::string_view(bytes).substr(0, size));
    }
    EXPECT_EQ(result.status, parse_status::complete);
    EXPECT_EQ(result.consumed, bytes.size());
}

}  // namespace
