// What a client of HTTP/2 cannot do: each flood ends its connection, and every cut and every wrong
// byte leaves the server serving.
#include <coppice/http.hpp>
#include <coppice/http2.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "../http/running_server.hpp"
#include "client.hpp"

namespace coppice::test {
namespace {

http::server_options short_limits() {
    http::server_options o = options_of(every_way[0]);
    o.http2 = http2::for_server({.resets_max = 20, .idle_frames_max = 100});
    return o;
}
http::router routes() {
    http::router r;
    r.get("/", [](http::request&) { return http::response::text("hello"); });
    r.post("/", [](http::request& q) { return http::response::text(std::string(q.body())); });
    return r;
}

std::string times(int n, std::string_view bytes) {
    std::string all = preface();
    for (int i = 0; i != n; ++i) all += bytes;
    return all;
}

TEST(Http2Hostile, floods_end_the_connection_with_enhance_your_calm) {
    running_server s(short_limits(), routes());
    constexpr std::uint32_t calm = NGHTTP2_ENHANCE_YOUR_CALM;
    const std::string eight(8, 'p');
    EXPECT_EQ(code_after(s.port(), times(300, frame(NGHTTP2_PING, 0, 0, eight))), calm);
    EXPECT_EQ(code_after(s.port(), times(300, frame(NGHTTP2_SETTINGS, 0, 0, ""))), calm);
    const std::string priority("\0\0\0\0\x10", 5);
    EXPECT_EQ(code_after(s.port(), times(300, frame(NGHTTP2_PRIORITY, 0, 3, priority))), calm);
    const std::string window("\0\0\0\x01", 4);
    EXPECT_EQ(code_after(s.port(), times(300, frame(NGHTTP2_WINDOW_UPDATE, 0, 0, window))), calm);
    const std::string post = frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1,
                                   literal(":method", "POST") + literal(":scheme", "http") +
                                       literal(":path", "/") + literal(":authority", "a"));
    std::string empty = preface() + post;
    for (int i = 0; i != 300; ++i) empty += frame(NGHTTP2_DATA, 0, 1, "");
    EXPECT_EQ(code_after(s.port(), empty), calm);
    std::string endless = preface() + frame(NGHTTP2_HEADERS, 0, 1, get_block());
    for (int i = 0; i != 100; ++i) endless += frame(NGHTTP2_CONTINUATION, 0, 1, literal("a", "b"));
    client continued(s.port());
    continued.send(endless);
    EXPECT_EQ(continued.receive_all().find("hello"), std::string::npos);
    EXPECT_TRUE(continued.ended());
    EXPECT_EQ(h2_client(s.port()).get("/").body, "hello");
}

// nghttp2 ignores these (RFC 9113 sections 5.1 and 5.5), and does not tell the engine of them.
TEST(Http2Hostile, floods_of_frames_that_are_ignored_end_the_connection) {
    running_server s(short_limits(), routes());
    constexpr std::uint32_t calm = NGHTTP2_ENHANCE_YOUR_CALM;
    for (const int type : {0x0a, 0x0b, 0x10, 0xff}) {
        for (const std::size_t size : {0u, 1u, 100u}) {
            const std::string unknown = frame(type, 0x55, 1, std::string(size, '\0'));
            EXPECT_EQ(code_after(s.port(), times(300, unknown)), calm) << type << " " << size;
        }
    }
    // A stream that the server has reset before its body has ended.
    const std::string post =
        frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1,
              literal(":method", "POST") + literal(":scheme", "http") + literal(":path", "/") +
                  literal(":authority", "a") + literal("connection", "close"));
    const std::string reset("\0\0\x04\x03\0\0\0\0\x01", 9);
    const std::string continued =
        frame(NGHTTP2_HEADERS, 0, 1, get_block()) +
        frame(NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, 1, literal("a", "b"));
    for (const auto& [n, ignored] : {std::pair(300, frame(NGHTTP2_DATA, 0, 1, "")),
                                     std::pair(300, post), std::pair(70, continued)}) {
        client c(s.port());
        c.send(preface() + post);
        std::string all;
        while (all.find(reset) == all.npos) {
            const std::string piece = c.receive_piece();
            ASSERT_NE(piece, "");
            all += piece;
        }
        c.send(times(n, ignored).substr(preface().size()));
        c.finish_sending();
        EXPECT_EQ(code_in(all + c.receive_all()), calm) << ignored.size();
    }
}

// Sends the bytes, and returns true if an answer comes.
bool is_answered(client& c, std::string_view bytes) {
    c.send(bytes);
    std::string answer;
    while (answer.find("hello") == answer.npos) {
        const std::string piece = c.receive_piece();
        if (piece.empty()) return false;
        answer += piece;
    }
    return true;
}

TEST(Http2Hostile, frames_of_unknown_types_change_nothing_and_requests_earn_more_of_them) {
    running_server s(short_limits(), routes());
    const std::string few = frame(0xff, 0, 0, get_frame(1)) + frame(0xfe, 0, 9, "") + get_frame(1);
    for (std::size_t cut = 0; cut != few.size(); ++cut) {
        client c(s.port());
        c.send(preface() + few.substr(0, cut));
        EXPECT_TRUE(is_answered(c, few.substr(cut))) << cut;
    }
    client c(s.port());
    c.send(preface());
    const std::string three =
        frame(0xff, 0, 0, "x") + frame(0x0b, 0, 1, "") + frame(0x10, 0, 3, "y");
    for (std::uint32_t id = 1; id != 121; id += 2) {
        ASSERT_TRUE(is_answered(c, three + get_frame(id))) << id;
    }
}

TEST(Http2Hostile, rapid_resets_end_the_connection) {
    running_server s(short_limits(), routes());
    std::string rapid = preface();
    for (std::uint32_t id = 1; id != 201; id += 2) {
        rapid += frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, id,
                       literal(":method", "POST") + literal(":scheme", "http") +
                           literal(":path", "/") + literal(":authority", "a"));
        rapid += frame(NGHTTP2_RST_STREAM, 0, id, std::string("\0\0\0\x08", 4));
    }
    EXPECT_EQ(code_after(s.port(), rapid), std::uint32_t{NGHTTP2_ENHANCE_YOUR_CALM});
    // Streams that the client spoils, so that the server resets them.
    std::string spoiled = preface();
    for (std::uint32_t id = 1; id != 201; id += 2) {
        spoiled += frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, id,
                         get_block() + literal("connection", "close"));
    }
    EXPECT_EQ(code_after(s.port(), spoiled), std::uint32_t{NGHTTP2_ENHANCE_YOUR_CALM});
    EXPECT_EQ(h2_client(s.port()).get("/").body, "hello");
}

TEST(Http2Hostile, heads_beyond_the_limits_are_refused_as_in_http1) {
    running_server s(short_limits(), routes());
    h2_client c(s.port());
    EXPECT_EQ(c.get("/" + std::string(9000, 'a')).status, 414);
    h2_client::fields many;
    for (int i = 0; i != 120; ++i) many.emplace_back("x-" + std::to_string(i), "v");
    EXPECT_EQ(c.finish(c.ask("GET", "/", many)).status, 431);
    EXPECT_EQ(c.finish(c.ask("GET", "/", {{"x", std::string(40'000, 'v')}})).status, 431);
    EXPECT_EQ(c.get("/").body, "hello");
}

TEST(Http2Hostile, malformed_requests_are_reset_and_never_reach_a_handler) {
    running_server s(short_limits(), routes());
    const auto spoils = [&](const h2_client::fields& more, std::string_view path = "/") {
        h2_client c(s.port());
        const h2_client::answer a = c.finish(c.ask("GET", path, more));
        return a.status == 0 ? a.error : static_cast<std::uint32_t>(a.status);
    };
    EXPECT_EQ(spoils({{"host", "b"}}), std::uint32_t{NGHTTP2_PROTOCOL_ERROR});
    EXPECT_EQ(spoils({{"host", "A"}}), 200u);  // the same as :authority
    EXPECT_EQ(spoils({{"te", "gzip"}}), std::uint32_t{NGHTTP2_PROTOCOL_ERROR});
    EXPECT_EQ(spoils({{"content-length", "x"}}), std::uint32_t{NGHTTP2_PROTOCOL_ERROR});
    EXPECT_EQ(spoils({}, "/a b"), std::uint32_t{NGHTTP2_PROTOCOL_ERROR});
    EXPECT_EQ(spoils({}, "/%zz"), 400u);
}

TEST(Http2Hostile, every_cut_and_every_wrong_byte_leave_the_server_serving) {
    running_server s(short_limits(), routes());
    const std::string good = preface() + get_frame(1) + frame(NGHTTP2_PING, 0, 0, "12345678");
    send_cut_and_wrong(s.port(), good);
    h2_client c(s.port());
    EXPECT_EQ(c.get("/").body, "hello");
}

TEST(Http2Hostile, bytes_that_come_one_by_one_are_answered) {
    running_server s(short_limits(), routes());
    client c(s.port());
    for (const char byte : preface() + get_frame(1)) c.send({&byte, 1});
    c.finish_sending();
    EXPECT_NE(c.receive_all().find("hello"), std::string::npos);
}

TEST(Http2Hostile, limits_outside_of_their_range_are_refused) {
    EXPECT_THROW((void)http2::for_server({.streams_max = 0}), std::invalid_argument);
    EXPECT_THROW((void)http2::for_server({.stream_window_bytes = 0}), std::invalid_argument);
}

}  // namespace
}  // namespace coppice::test
