// http/parse.hpp, request heads: what RFC 9110 and RFC 9112 permit is read, and what two readers
// could read differently is refused. Each text is delivered whole, at each split point, and byte by
// byte, its end against a protected page.
#include <coppice/http/parse.hpp>

#include <gtest/gtest.h>

#include <string>

#include "allocations.hpp"
#include "delivery.hpp"

namespace {

using namespace coppice;
using http::limits;
using http::method;
using http::parse_status;

test::guarded_bytes& memory() {
    static test::guarded_bytes bytes(1 << 17);
    return bytes;
}

std::string every_way(std::string_view bytes, const limits& limit = {}, std::size_t step = 1) {
    return test::parse_every_way(bytes, limit, memory(), step, [&](const std::string& complaint) {
        ADD_FAILURE() << complaint << "\nfor: " << testing::PrintToString(std::string(bytes));
    });
}

// The error code of a refusal, 0 for complete, -1 for partial.
int code(std::string_view bytes, const limits& limit = {}, std::size_t step = 1) {
    const std::string answer = every_way(bytes, limit, step);
    if (answer.starts_with("complete")) return 0;
    return answer == "partial" ? -1 : std::stoi(answer);
}

// A head that must be complete; the bytes stay in the object.
struct parsed {
    explicit parsed(std::string text) : bytes(std::move(text)) {
        EXPECT_EQ(code(bytes), 0) << bytes;
        result = http::parse_head(bytes, head, {});
    }
    std::string bytes;
    http::request_head head;
    http::parse_result result;
};

std::string request(std::string_view fields) {
    return "GET / HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
}
std::string line(std::string_view request_line) {
    return std::string(request_line) + "\r\nHost: a\r\n\r\n";
}

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

// RFC 9110 section 5.1 and RFC 9112 section 5
TEST(parse_field, a_name_is_a_token_followed_directly_by_the_colon) {
    for (const std::string_view bad :
         {"Name : v", "Name\t: v", ": v", " Name: v", "\tName: v", "Na me: v", "Na(me: v", "Name",
          "Name v", "N\x7f: v", "N\xc3\xa4: v", "N\"e: v", "N/e: v", "N[e]: v", "=: v", "@: v"}) {
        EXPECT_EQ(code(request(std::string(bad) + "\r\n")), 400) << bad;
    }
    EXPECT_EQ(code("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), 400) << "RFC 9112 section 2.2";
    const parsed p(request("!#$%&'*+-.^_`|~09azAZ: v\r\n"));
    EXPECT_EQ(p.head.fields()[1].name, "!#$%&'*+-.^_`|~09azAZ");
    for (int byte = 0; byte < 256; ++byte) {
        const bool token = std::isalnum(byte) != 0 ||
                           (byte != 0 && std::strchr("!#$%&'*+-.^_`|~", byte) != nullptr);
        if (byte == ':') continue;
        const std::string name = "N" + std::string(1, static_cast<char>(byte)) + "x";
        EXPECT_EQ(code(request(name + ": v\r\n")), token ? 0 : 400) << byte;
    }
}

// RFC 9110 section 5.5
TEST(parse_field, a_value_has_no_control_bytes) {
    for (int byte = 0; byte < 256; ++byte) {
        const bool good = (byte >= 0x20 && byte != 0x7f) || byte == '\t';
        for (const std::string_view before : {"", "1234567", "123456789012345678901234"}) {
            const std::string value =
                std::string(before) + std::string(1, static_cast<char>(byte)) + "12345678";
            EXPECT_EQ(code(request("X: " + value + "\r\n")), good ? 0 : 400) << byte;
        }
    }
    const parsed p(request("X: \xe4\xf6\xfc \t in between\r\n"));
    EXPECT_EQ(p.head.find("x"), "\xe4\xf6\xfc \t in between");
}

TEST(parse_field, whitespace_around_a_value_is_not_part_of_it) {
    EXPECT_EQ(parsed(request("X:v\r\n")).head.find("X"), "v");
    EXPECT_EQ(parsed(request("X: \t v\t \r\n")).head.find("X"), "v");
    EXPECT_EQ(parsed(request("X: \t \r\n")).head.find("X"), "");
    EXPECT_EQ(parsed(request("X:\r\n")).head.find("X"), "");
    EXPECT_EQ(parsed(request("X: a:b\r\n")).head.find("X"), "a:b");
}

// RFC 9112 section 2.2
TEST(parse_field, bare_cr_and_bare_lf_are_400) {
    for (const std::string_view bad :
         {"GET / HTTP/1.1\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\n\r\n",
          "GET / HTTP/1.1\r\nHost: a\r\n\n", "GET / HTTP/1.1\rHost: a\r\n\r\n",
          "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\rX",
          "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n",
          "GET / HTTP/1.1\r\nHost: a\r\nX\r: b\r\n\r\n", "GET /\r HTTP/1.1\r\nHost: a\r\n\r\n",
          "GET / HTTP/1.1\r\nHost: a\r\nX:\n b\r\n\r\n", "GET /\r\nHost: a\r\n\r\n",
          "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n\r\r\n"}) {
        EXPECT_EQ(code(bad), 400) << testing::PrintToString(std::string(bad));
    }
}

// RFC 9112 section 5.2
TEST(parse_field, a_folded_line_is_400) {
    for (const char* const bad :
         {"X: a\r\n b\r\n", "X: a\r\n\tb\r\n", "X: a\r\n \r\n", "Content-Length: 1\r\n 2\r\n"}) {
        EXPECT_EQ(every_way(request(bad)), "400 a field line begins with a space") << bad;
    }
}

// RFC 6585 section 5: 431
TEST(parse_field, more_than_the_limits_is_431_at_once) {
    const auto block = [](std::size_t size) {
        return "Host: a\r\nX: " + std::string(size - 14, 'x') + "\r\n";
    };
    const std::string first = "GET / HTTP/1.1\r\n";
    const limits limit{.header_bytes_max = 60};
    ASSERT_EQ(block(60).size(), 60u);
    EXPECT_EQ(code(first + block(60) + "\r\n", limit), 0);
    EXPECT_EQ(code(first + block(61) + "\r\n", limit), 431);
    EXPECT_EQ(code(first + block(62) + "\r\n", limit), 431);
    EXPECT_EQ(code(first + block(60), limit), -1);
    EXPECT_EQ(code(first + block(60) + "\r", limit), -1);
    EXPECT_EQ(code(first + block(60) + "X", limit), 431);
    EXPECT_EQ(code(first + "Host: a\r\n" + std::string(51, 'n'), limit), -1);
    EXPECT_EQ(code(first + "Host: a\r\n" + std::string(52, 'n'), limit), 431);
    EXPECT_EQ(code(first + "Host: a\r\n" + std::string(51, 'n') + "(", limit), 431);
    EXPECT_EQ(code(first + "Host: a\r\n" + std::string(50, 'n') + "(", limit), 400);
    EXPECT_EQ(code(first + block(32 * 1024) + "\r\n", {}, 331), 0);
    EXPECT_EQ(code(first + block(32 * 1024 + 1) + "\r\n", {}, 331), 431);
    EXPECT_EQ(code(first + block(40 * 1024), {}, 331), 431);
}

TEST(parse_field, more_fields_than_allowed_are_431) {
    const auto fields = [](int count) {
        std::string text = "GET / HTTP/1.1\r\nHost: a\r\n";
        for (int i = 1; i < count; ++i) text += "X: y\r\n";
        return text;
    };
    EXPECT_EQ(code(fields(100) + "\r\n"), 0);
    EXPECT_EQ(code(fields(100)), -1);
    EXPECT_EQ(code(fields(100) + "X"), 431);
    EXPECT_EQ(code(fields(101) + "\r\n"), 431);
    EXPECT_EQ(code(fields(3) + "\r\n", {.fields_max = 3}), 0);
    EXPECT_EQ(code(fields(4) + "\r\n", {.fields_max = 3}), 431);
    EXPECT_EQ(code(fields(101) + "\r\n", {.fields_max = 1000}), 431) << "the capacity is a limit";
}

// RFC 9112 section 3.2
TEST(parse_host, is_required_once_and_valid_in_1_1) {
    const auto with = [](std::string_view fields) {
        return "GET / HTTP/1.1\r\n" + std::string(fields) + "\r\n";
    };
    EXPECT_EQ(code(with("")), 400);
    EXPECT_EQ(code(with("X-Host: a\r\n")), 400);
    EXPECT_EQ(code(with("Host: a\r\nHost: a\r\n")), 400);
    EXPECT_EQ(code(with("Host: a\r\nX: y\r\nhOST: b\r\n")), 400);
    for (const std::string_view good :
         {"a", "a.b.c", "A-b_c~d", "127.0.0.1", "127.0.0.1:80", "a:", "a:0", "a:65535", "[::1]",
          "[::1]:8080", "[2001:db8::ff00:42:8329]", "[::ffff:1.2.3.4]", "%41.b", "xn--nxasmq6b"}) {
        const parsed p(with("hoSt: " + std::string(good) + "\r\n"));
        EXPECT_EQ(p.head.host(), good);
    }
    for (const std::string_view bad :
         {"",          " ",
          "a b",       "a, b",
          "a/b",       "a@b",
          "a:b",       "a:65536",
          "a:80:80",   ":80",
          "[::1",      "::1",
          "[]",        "[g]",
          "[::1]x",    "[::1]:x",
          "[1.2.3.4]", "[v1.a]",
          "a?b",       "a#b",
          "a\\b",      "%4",
          "%zz",       "a%",
          "http://a",  "a:-1",
          "a:+1",      "a:99999999999999999999",
          "\xff",      "[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]"}) {
        EXPECT_EQ(code(with("Host: " + std::string(bad) + "\r\n")), 400) << bad;
    }
}

TEST(parse_host, is_optional_in_1_0_but_never_twice) {
    EXPECT_EQ(parsed("GET / HTTP/1.0\r\n\r\n").head.host(), "");
    EXPECT_EQ(parsed("GET / HTTP/1.0\r\nHost: a\r\n\r\n").head.host(), "a");
    EXPECT_EQ(code("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"), 400);
    EXPECT_EQ(code("GET / HTTP/1.0\r\nHost: a b\r\n\r\n"), 400);
}

// RFC 9110 section 8.6, RFC 9112 section 6.3 item 5
TEST(parse_length, is_digits_once) {
    EXPECT_EQ(parsed(request("")).head.content_length(), std::nullopt);
    EXPECT_EQ(parsed(request("Content-Length: 0\r\n")).head.content_length(), 0u);
    EXPECT_EQ(parsed(request("content-length:42 \r\n")).head.content_length(), 42u);
    EXPECT_EQ(parsed(request("Content-Length: 0042\r\n")).head.content_length(), 42u);
    for (const std::string_view bad : {"",
                                       "+1",
                                       "-1",
                                       "-0",
                                       "1 1",
                                       "1,1",
                                       "1, 1",
                                       "1;",
                                       "0x1",
                                       "1a",
                                       "a",
                                       "1.0",
                                       "1e1",
                                       "\t",
                                       "18446744073709551616",
                                       "99999999999999999999999",
                                       "'1'",
                                       "\"1\"",
                                       "1\t1",
                                       ",1",
                                       "1_000",
                                       "\xd9\xa1"}) {
        EXPECT_EQ(code(request("Content-Length: " + std::string(bad) + "\r\n")), 400) << bad;
    }
    EXPECT_EQ(code(request("Content-Length: 1\r\nContent-Length: 1\r\n")), 400);
    EXPECT_EQ(code(request("Content-Length: 1\r\nContent-Length: 2\r\n")), 400);
    EXPECT_EQ(code(request("Content-Length: 0\r\nX: y\r\ncontent-length: 0\r\n")), 400);
    EXPECT_EQ(code(request("Content-Length: \x0b"
                           "1\r\n")),
              400);
    EXPECT_EQ(code("GET / HTTP/1.0\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"), 400);
}

// RFC 9110 section 15.5.14
TEST(parse_length, beyond_the_body_limit_is_413_from_the_declaration_alone) {
    EXPECT_EQ(code(request("Content-Length: 8388608\r\n")), 0);
    EXPECT_EQ(code(request("Content-Length: 8388609\r\n")), 413);
    EXPECT_EQ(code(request("Content-Length: 18446744073709551615\r\n")), 413);
    EXPECT_EQ(code(request("Expect: 100-continue\r\nContent-Length: 8388609\r\n")), 413);
    EXPECT_EQ(code(request("Content-Length: 11\r\n"), {.body_bytes_max = 10}), 413);
}

// RFC 9112 sections 6.1, 6.3 and 7
TEST(parse_coding, chunked_is_the_only_coding_and_comes_once) {
    EXPECT_TRUE(parsed(request("Transfer-Encoding: chunked\r\n")).head.chunked());
    EXPECT_TRUE(parsed(request("transfer-encoding:\tCHUNKED \r\n")).head.chunked());
    EXPECT_FALSE(parsed(request("TE: chunked\r\n")).head.chunked());
    for (const std::string_view bad :
         {"", ",", ",chunked", "chunked,", "chunked, chunked", "chunked,gzip", "chunked, identity",
          "chunked;q=1", "chunked ;", "chunked;", "\"chunked\"", "chun ked", "(chunked)",
          "gzip, chunked, chunked", "gzip,,chunked", "chunked x",
          "\x0b"
          "chunked",
          "chunked\x0b"}) {
        EXPECT_EQ(code(request("Transfer-Encoding: " + std::string(bad) + "\r\n")), 400) << bad;
    }
    EXPECT_EQ(code(request("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")), 400);
    EXPECT_EQ(code(request("Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n")), 400);
    EXPECT_EQ(code(request("Transfer-Encoding: chunked\r\nTransfer-Encoding: \r\n")), 400);
}

// RFC 9112 section 6.3 item 4: a request whose last coding is not chunked MUST get 400
TEST(parse_coding, a_body_without_a_determinable_end_is_400) {
    for (const std::string_view bad :
         {"gzip", "identity", "xchunked", "chunkedx", "x", "gzip;q=1", "chunke", "deflate, gzip"}) {
        EXPECT_EQ(code(request("Transfer-Encoding: " + std::string(bad) + "\r\n")), 400) << bad;
    }
}

// RFC 9112 section 6.1: 501 for a coding that is not understood, where the framing is sound
TEST(parse_coding, unknown_codings_before_chunked_are_501) {
    EXPECT_EQ(code(request("Transfer-Encoding: gzip, chunked\r\n")), 501);
    EXPECT_EQ(code(request("Transfer-Encoding: foo;a=\"b\" , chunked\r\n")), 501);
    EXPECT_EQ(code(request("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n")), 501);
}

// RFC 9112 section 6.1: "might indicate an attempt to perform request smuggling"
TEST(parse_coding, together_with_a_content_length_is_400_in_either_order) {
    EXPECT_EQ(code(request("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n")), 400);
    EXPECT_EQ(code(request("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")), 400);
    EXPECT_EQ(code(request("Content-Length: 0\r\nX: y\r\ntransfer-encoding: chunked\r\n")), 400);
    EXPECT_EQ(code(request("Content-Length: 5\r\nTransfer-Encoding: x\r\n")), 400);
    EXPECT_EQ(code(request("Transfer-Encoding: x\r\nContent-Length: 5\r\n")), 400);
}

// RFC 9112 section 6.1: "MUST treat the message as if the framing is faulty"
TEST(parse_coding, in_http_1_0_is_400) {
    EXPECT_EQ(code("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
    EXPECT_EQ(code("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n"), 400);
}

// Names that a lenient reader takes for the real ones are refused or plainly other fields.
TEST(parse_smuggling, disguised_framing_fields_frame_nothing) {
    for (const std::string_view bad :
         {"Transfer-Encoding : chunked", "Transfer-Encoding\t: chunked",
          " Transfer-Encoding: chunked",
          "Transfer-Encoding:\x0b"
          "chunked",
          "Transfer-Encoding: chunked\x0c", "Transfer\r-Encoding: x", "Content-Length : 5",
          "Content-Length\x85: 5", "X: y\rTransfer-Encoding: chunked",
          "X: y\nTransfer-Encoding: chunked", "Content-Length: 5\rX: y", "Content-Length:\r\n 5"}) {
        EXPECT_EQ(code(request(std::string(bad) + "\r\n")), 400)
            << testing::PrintToString(std::string(bad));
    }
    EXPECT_EQ(code(request(std::string("Transfer-Encoding\0: chunked\r\n", 29))), 400);
    EXPECT_EQ(code(request(std::string("Transfer-Encoding: chunked\0\r\n", 29))), 400);
    for (const std::string_view other :
         {"Transfer_Encoding: chunked", "Content_Length: 5", "X-Transfer-Encoding: chunked",
          "Transfer-Encodin: chunked", "Content-Lengths: 5", "Transfer-Encoding-: chunked"}) {
        const parsed p(request(std::string(other) + "\r\n"));
        EXPECT_FALSE(p.head.chunked()) << other;
        EXPECT_EQ(p.head.content_length(), std::nullopt) << other;
    }
}

// RFC 9112 section 9.3
TEST(parse_connection, close_overrides_keep_alive_and_1_0_must_ask_for_it) {
    const std::tuple<std::string_view, bool, bool> cases[] = {
        {"", true, false},
        {"Connection: close\r\n", false, false},
        {"Connection: Close\r\n", false, false},
        {"Connection: keep-alive\r\n", true, true},
        {"Connection: Keep-Alive\r\n", true, true},
        {"Connection: keep-alive, close\r\n", false, false},
        {"Connection: close\r\nConnection: keep-alive\r\n", false, false},
        {"Connection: keep-alive\r\nX: y\r\nConnection: foo,\tclose\r\n", false, false},
        {"Connection: foo, , keep-alive\r\n", true, true},
        {"Connection: closed\r\n", true, false},
        {"Connection: not-close\r\n", true, false},
        {"Proxy-Connection: close\r\n", true, false}};
    for (const auto& [fields, in_1_1, in_1_0] : cases) {
        EXPECT_EQ(parsed(request(fields)).head.keep_alive(), in_1_1) << fields;
        EXPECT_EQ(parsed("GET / HTTP/1.0\r\n" + std::string(fields) + "\r\n").head.keep_alive(),
                  in_1_0)
            << fields;
    }
}

// RFC 9110 section 10.1.1
TEST(parse_expect, continue_needs_a_declared_body_and_1_1) {
    EXPECT_TRUE(
        parsed(request("Expect: 100-Continue\r\nContent-Length: 1\r\n")).head.expects_continue());
    EXPECT_TRUE(parsed(request("Transfer-Encoding: chunked\r\nExpect: a, 100-continue\r\n"))
                    .head.expects_continue());
    EXPECT_FALSE(parsed(request("Expect: 100-continue\r\n")).head.expects_continue());
    EXPECT_FALSE(
        parsed(request("Expect: 100-continue\r\nContent-Length: 0\r\n")).head.expects_continue());
    EXPECT_FALSE(
        parsed(request("Expect: 100-continued\r\nContent-Length: 1\r\n")).head.expects_continue());
    EXPECT_FALSE(parsed("PUT / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")
                     .head.expects_continue());
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
