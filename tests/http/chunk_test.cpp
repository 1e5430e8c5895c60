// http/parse.hpp, chunked bodies (RFC 9112 section 7.1). Each body is delivered whole, at each
// split point and in small pieces, the end of each piece against a protected page.
#include <coppice/http/parse.hpp>

#include <gtest/gtest.h>

#include <string>

#include "allocations.hpp"
#include "delivery.hpp"

namespace {

using namespace coppice;
using http::limits;
using http::parse_status;

std::string every_way(std::string_view bytes, const limits& limit = {}) {
    static test::guarded_bytes memory(1 << 16);
    return test::decode_every_way(bytes, limit, memory, [&](const std::string& complaint) {
        ADD_FAILURE() << complaint << "\nfor: " << testing::PrintToString(std::string(bytes));
    });
}

// The error code of a refusal, 0 for complete, -1 for partial.
int code(std::string_view bytes, const limits& limit = {}) {
    const std::string answer = every_way(bytes, limit);
    if (answer.starts_with("complete")) return 0;
    return answer.starts_with("partial") ? -1 : std::stoi(answer.substr(6));
}

TEST(chunk, the_payload_is_what_the_chunks_hold) {
    EXPECT_EQ(every_way("0\r\n\r\n"), "complete after 5: ");
    EXPECT_EQ(every_way("5\r\nhello\r\n0\r\n\r\n"), "complete after 15: hello");
    EXPECT_EQ(every_way("5\r\nhello\r\n1\r\n,\r\n6\r\n world\r\n0\r\n\r\n"),
              "complete after 32: hello, world");
    EXPECT_EQ(every_way("a\r\n0123456789\r\nA\r\nabcdefghij\r\n0\r\n\r\n"),
              "complete after 35: 0123456789abcdefghij");
    EXPECT_EQ(every_way("0005\r\nhello\r\n0000000000000000\r\n\r\n"), "complete after 33: hello");
    EXPECT_EQ(every_way("4\r\n\r\n\r\n\r\n0\r\n\r\n"), "complete after 14: \r\n\r\n")
        << "data may look like framing";
}

TEST(chunk, sizes_are_hexadecimal_in_either_case) {
    const std::string_view digits = "0123456789abcdefABCDEF";
    for (std::size_t i = 1; i < digits.size(); ++i) {
        const std::size_t value = i < 16 ? i : i - 6;
        for (const std::size_t high : {std::size_t{0}, std::size_t{1}, std::size_t{15}}) {
            const std::string payload(high * 16 + value, 'x');
            const std::string size = std::string(1, digits[high]) + digits[i];
            EXPECT_EQ(code(size + "\r\n" + payload + "\r\n0\r\n\r\n"), 0) << size;
        }
    }
}

TEST(chunk, bytes_after_the_body_are_left) {
    EXPECT_EQ(every_way("1\r\nx\r\n0\r\n\r\nGET / HTTP/1.1\r\n"), "complete after 11: x");
    EXPECT_EQ(every_way("0\r\n\r\n\r\n"), "complete after 5: ");
}

TEST(chunk, an_unfinished_body_is_partial_and_gives_its_bytes_so_far) {
    const std::string body = "5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n";
    for (std::size_t size = 0; size < body.size(); ++size) {
        const std::string payload = std::string("hello").substr(0, size < 7 ? 0 : size - 7);
        EXPECT_EQ(every_way(body.substr(0, size)),
                  "partial after " + std::to_string(size) + ": " + payload);
    }
}

TEST(chunk, malformed_sizes_are_400) {
    for (const std::string_view bad : {"",
                                       " 5",
                                       "5 ",
                                       "\t5",
                                       "5\t",
                                       "+5",
                                       "-5",
                                       "0x5",
                                       "x5",
                                       "5x",
                                       "5h",
                                       "g",
                                       "5,5",
                                       "\"5\"",
                                       "5 5",
                                       "0 ",
                                       " ",
                                       "00000000000000005",
                                       "10000000000000000",
                                       "fffffffffffffffff",
                                       "100000000000000000000000005",
                                       "\xff",
                                       "5 ;a",
                                       "5\x0b"}) {
        EXPECT_EQ(code(std::string(bad) + "\r\nhello\r\n0\r\n\r\n"), 400) << bad;
    }
    EXPECT_EQ(code("\r\n\r\n"), 400) << "no size is not the size 0";
    EXPECT_EQ(code(";a\r\n\r\n"), 400);
}

TEST(chunk, bare_cr_and_bare_lf_are_400) {
    for (const std::string_view bad :
         {"5\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhello\r\n0\n\r\n",
          "5\r\nhello\r\n0\r\n\n", "5\rhello\r\n0\r\n\r\n", "5\r\rhello\r\n0\r\n\r\n",
          "5\r\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r0\r\n\r\n", "\r\n5\r\nhello\r\n0\r\n\r\n",
          "5\r\nhello\r\n\r\n0\r\n\r\n", "5;a\nhello\r\n0\r\n\r\n", "5;a=b\nhello\r\n0\r\n\r\n",
          "5;a=\"\n\"\r\nhello\r\n0\r\n\r\n", "5;a=\"\r\n\"\r\nhello\r\n0\r\n\r\n",
          "0\r\nX: y\n\r\n", "0\r\nX: y\rZ: z\r\n\r\n", "0\r\nX: y\r\n\rx", "0\r\n\rx",
          "5;\r\nhello\r\n0\r\n\r\n"}) {
        EXPECT_EQ(code(bad), 400) << testing::PrintToString(std::string(bad));
    }
}

TEST(chunk, data_must_be_as_long_as_its_size) {
    EXPECT_EQ(code("4\r\nhello\r\n0\r\n\r\n"), 400);
    EXPECT_EQ(code("6\r\nhello\r\n0\r\n\r\n"), 400);
    EXPECT_EQ(code("5\r\nhelloX\r\n0\r\n\r\n"), 400);
    EXPECT_EQ(code("5\r\nhello0\r\n\r\n"), 400);
    EXPECT_EQ(code("5\r\nhelloX\n0\r\n\r\n"), 400);
    EXPECT_EQ(code("5\r\nhello\rX0\r\n\r\n"), 400);
}

// RFC 9112 section 7.1.1
TEST(chunk_extension, well_formed_ones_are_dropped) {
    for (const std::string_view good :
         {";a", ";a=b", ";a=\"b\"", ";a;b", ";a=b;c=\"d\"", "; a", ";\ta", ";a =b", ";a= b",
          ";a = b ; c = \"d\" ; e", ";a=\"\"", ";a=\" \t!#[]~\xff\"", ";a=\"\\\"\\\\\\a\"",
          ";a=\"5;b\"", ";!#$%&'*+-.^_`|~=1", ";a=\"x\" ;b"}) {
        EXPECT_EQ(code("5" + std::string(good) + "\r\nhello\r\n0" + std::string(good) + "\r\n\r\n"),
                  0)
            << good;
    }
}

TEST(chunk_extension, malformed_ones_are_400) {
    for (const std::string_view bad :
         {";",     ";;",          ";=",     ";=b",       ";a=",     ";a=;b",       ";a==b",
          ";a b",  ";a=b c",      ";a=\"b", ";a=\"b\"c", ";a=\"\\", ";a=\"\x01\"", ";a=\"\\\x01\"",
          ";\x01", ";a=\x7f",     ";a(",    ";a ",       ";a=b ",   ";a=\"b\" ",   ";a,b",
          "z",     ";a=\"\\\n\"", ";a;",    ";a=b;",     ";\xff",   ";\"a\""}) {
        EXPECT_EQ(code("5" + std::string(bad) + "\r\nhello\r\n0\r\n\r\n"), 400) << bad;
    }
}

// RFC 9112 section 7.1.2
TEST(chunk_trailer, well_formed_fields_are_dropped) {
    EXPECT_EQ(every_way("1\r\nx\r\n0\r\nA: b\r\nC:\r\nD: \t\xff \r\n\r\nrest"),
              "complete after 29: x");
    EXPECT_EQ(code("0\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"), 0)
        << "RFC 9110 section 6.5.1: they have no say here";
}

TEST(chunk_trailer, malformed_fields_are_400) {
    for (const std::string_view bad : {" A: b", "A : b", ": b", "A", "A b", "A: b\r\n c", "A\t: b",
                                       "A: \x01", "A: \x7f", "(: b", "A: b\r\n\tc"}) {
        EXPECT_EQ(code("0\r\n" + std::string(bad) + "\r\n\r\n"), 400) << bad;
    }
    EXPECT_EQ(code(std::string("0\r\nA: \0\r\n\r\n", 12)), 400);
}

TEST(chunk_limit, a_body_beyond_its_limit_is_413_from_the_size_alone) {
    const limits limit{.body_bytes_max = 10};
    EXPECT_EQ(code("a\r\n0123456789\r\n0\r\n\r\n", limit), 0);
    EXPECT_EQ(code("b\r\n", limit), 413);
    EXPECT_EQ(code("b\r", limit), 413);
    EXPECT_EQ(code("b", limit), -1) << "the size may still turn out to be malformed";
    EXPECT_EQ(code("b;", limit), 413);
    EXPECT_EQ(code("5\r\nhello\r\n5\r\nhello\r\n0\r\n\r\n", limit), 0);
    EXPECT_EQ(code("5\r\nhello\r\n6\r\n", limit), 413);
    EXPECT_EQ(code("ffffffffffffffff\r\n"), 413);
    EXPECT_EQ(code("7fffffffffffffff\r\n"), 413);
    EXPECT_EQ(code("800000\r\n"), -1);
    EXPECT_EQ(code("800001\r\n"), 413);
}

TEST(chunk_limit, extensions_and_trailers_share_the_header_limit) {
    const limits limit{.header_bytes_max = 20};
    const auto extension = [](std::size_t size) { return ";" + std::string(size - 1, 'a'); };
    EXPECT_EQ(code("0" + extension(20) + "\r\n\r\n", limit), 0);
    EXPECT_EQ(code("0" + extension(21) + "\r\n\r\n", limit), 431);
    EXPECT_EQ(code("0" + extension(20), limit), -1);
    EXPECT_EQ(code("0" + extension(21), limit), 431);
    EXPECT_EQ(code("1" + extension(10) + "\r\nx\r\n0" + extension(10) + "\r\n\r\n", limit), 0);
    EXPECT_EQ(code("1" + extension(10) + "\r\nx\r\n0" + extension(11) + "\r\n\r\n", limit), 431);
    EXPECT_EQ(code("0" + extension(14) + "\r\nA: b\r\n\r\n", limit), 0);
    EXPECT_EQ(code("0" + extension(15) + "\r\nA: b\r\n\r\n", limit), 431);
    const auto trailer = [](std::size_t size) {
        return "A: " + std::string(size - 5, 'a') + "\r\n";
    };
    EXPECT_EQ(code("0\r\n" + trailer(20) + "\r\n", limit), 0);
    EXPECT_EQ(code("0\r\n" + trailer(21) + "\r\n", limit), 431);
    EXPECT_EQ(code("0\r\n" + trailer(22) + "\r\n", limit), 431);
    EXPECT_EQ(code("0\r\n" + trailer(10) + trailer(10) + "\r\n", limit), 0);
    EXPECT_EQ(code("0\r\n" + trailer(10) + trailer(10) + "A", limit), 431);
}

TEST(chunk, after_the_end_a_decoder_consumes_nothing) {
    for (std::string text : {"0\r\n\r\n", "x"}) {
        http::chunk_decoder decoder({});
        const auto first = decoder.decode(text);
        EXPECT_NE(first.status, parse_status::partial);
        std::string more = "5\r\nhello";
        const auto second = decoder.decode(more);
        EXPECT_EQ(second.status, first.status);
        EXPECT_EQ(second.error, first.error);
        EXPECT_STREQ(second.reason, first.reason);
        EXPECT_EQ(second.consumed, 0u);
        EXPECT_EQ(second.produced, 0u);
        EXPECT_EQ(more, "5\r\nhello");
    }
}

TEST(chunk, allocates_nothing) {
    char bytes[] = "5;a=\"b\"\r\nhello\r\n0\r\nX: y\r\n\r\n";
    const test::allocation_count count;
    http::chunk_decoder decoder({});
    for (std::size_t i = 0; i + 1 < sizeof bytes; ++i) decoder.decode({bytes + i, 1});
    EXPECT_EQ(count.so_far(), 0u);
    EXPECT_EQ(decoder.decode({}).status, parse_status::complete);
}

}  // namespace
