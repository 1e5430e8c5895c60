// http/parse.hpp, the fields of a request head: what RFC 9110 and RFC 9112 permit is read, and what
// two readers could read differently is refused. Each text is delivered as in parse_test.cpp.
#include <coppice/http/parse.hpp>

#include <gtest/gtest.h>

#include <string>

#include "parsed_head.hpp"

namespace {

using namespace coppice;
using namespace coppice::test::heads;
using http::limits;

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

}  // namespace
