// The engine of a server of HTTP/2 by itself: which streams it refuses, and what it makes of heads.
#include <coppice/http/multiplexer.hpp>
#include <coppice/http2.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frames.hpp"

namespace coppice::test {
namespace {

constexpr int end_headers = NGHTTP2_FLAG_END_HEADERS;
constexpr int end_stream = NGHTTP2_FLAG_END_STREAM;
constexpr auto most = std::size_t(-1);

struct noted_stream final : http::multiplexed_stream {
    bool input(std::string_view bytes) noexcept override {
        body.append(bytes);
        return true;
    }
    bool end_input(std::string_view) noexcept override { return has_ended = true; }
    void closed(bool reset) noexcept override { is_reset = reset; }
    taken take(std::span<std::byte>) noexcept override { return {0, true}; }
    std::string_view trailers() noexcept override { return {}; }

    std::string head;
    std::string body;
    bool has_ended = false;
    bool is_reset = false;
};

// A connection without a socket. Notes the requests.
class engine_on final : http::multiplexed_streams {
public:
    explicit engine_on(const http2::server_limits& limits = {}, const http::limits& of_heads = {})
        : engine(http2::for_server(limits)->accept(*this, false, of_heads)) {
        receive(preface());
    }
    http::multiplexed_stream* begin(std::int32_t number, std::string_view head,
                                    bool ended) noexcept override {
        noted_stream& s = streams[number];
        s.head = head;
        s.has_ended = ended;
        return &s;
    }
    void receive(std::string_view bytes) {
        take(bytes);
        send();
    }
    void take(std::string_view bytes) {
        if (!engine->receive(std::as_bytes(std::span(bytes)))) is_over = true;
    }
    void send() {
        while (engine->write(output)) {
        }
        if (engine->is_finished()) is_over = true;
    }
    void answer(std::int32_t number) {
        EXPECT_TRUE(engine->answer(number, "HTTP/1.1 200 OK\r\n\r\n", true));
        send();
    }
    // Returns the codes of the RST_STREAM frames for a stream.
    std::vector<std::uint32_t> resets_of(std::uint32_t number) const {
        std::vector<std::uint32_t> codes;
        for (std::size_t at = 0; at + 9 <= output.size(); at += 9 + (value(at, 4) >> 8)) {
            if (output[at + 3] != NGHTTP2_RST_STREAM || value(at + 5, 4) != number) continue;
            codes.push_back(value(at + 9, 4));
        }
        return codes;
    }

    std::map<std::int32_t, noted_stream> streams;
    std::string output;
    bool is_over = false;
    const std::unique_ptr<http::multiplexer> engine;

private:
    std::uint32_t value(std::size_t at, std::size_t bytes) const {
        std::uint32_t all = 0;
        for (const char c : output.substr(at, bytes)) {
            all = all << 8 | static_cast<unsigned char>(c);
        }
        return all;
    }
};

std::string post_frame(std::uint32_t stream, std::string_view more) {
    std::string block = literal(":method", "POST") + literal(":scheme", "http") +
                        literal(":path", "/") + literal(":authority", "a");
    return frame(NGHTTP2_HEADERS, end_headers, stream, block.append(more));
}
std::string acknowledged() {
    return frame(NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, "");
}
using codes = std::vector<std::uint32_t>;
const codes refused = {NGHTTP2_REFUSED_STREAM};
const codes malformed = {NGHTTP2_PROTOCOL_ERROR};

TEST(http2_engine, the_largest_limits_are_no_limits) {
    engine_on c({.resets_max = most, .idle_frames_max = most}, {.header_bytes_max = most / 4});
    const std::string ping = frame(NGHTTP2_PING, 0, 0, "12345678");
    c.receive(get_frame(1) + ping + ping + ping);
    c.answer(1);
    for (std::uint32_t id = 3; id != 13; id += 2) {
        c.receive(get_frame(id) + reset_frame(id, NGHTTP2_CANCEL) + ping);
    }
    EXPECT_EQ(code_in(c.output), ~0u);
    EXPECT_FALSE(c.is_over);
    EXPECT_EQ(c.streams.size(), 6u);
}

TEST(http2_engine, a_stream_too_many_is_refused_alone) {
    for (const bool knows : {false, true}) {
        engine_on c({.streams_max = 2, .resets_max = 20});
        const std::string announced = std::string("\0\3", 2) + number(2);
        EXPECT_NE(c.output.find(announced), std::string::npos);
        if (knows) c.receive(acknowledged());
        c.receive(get_frame(1) + get_frame(3) + get_frame(5) + post_frame(7, {}) +
                  frame(NGHTTP2_DATA, end_stream, 7, "x"));
        EXPECT_EQ(c.streams.size(), 2u);
        EXPECT_EQ(c.resets_of(5), refused);
        EXPECT_EQ(c.resets_of(7), refused);
        c.answer(1);
        c.receive(get_frame(9) + get_frame(11));
        EXPECT_EQ(c.streams.count(9), 1u);
        EXPECT_EQ(c.resets_of(11), refused);
        EXPECT_EQ(code_in(c.output), ~0u);
        EXPECT_FALSE(c.is_over);
        for (std::uint32_t id = 13; id != 113; id += 2) c.receive(get_frame(id));
        EXPECT_EQ(code_in(c.output), std::uint32_t{NGHTTP2_ENHANCE_YOUR_CALM});
    }
}

// A client repeats what is beyond the last stream of the GOAWAY, so no handler may have had it.
TEST(http2_engine, a_stream_that_arrives_before_the_end_is_sent_is_refused) {
    const std::string third = get_frame(3);
    for (const std::size_t before : {std::size_t{0}, std::size_t{5}, std::size_t{20}}) {
        engine_on c;
        c.receive(get_frame(1) + third.substr(0, before));
        c.engine->shut_down();
        c.take(third.substr(before) + get_frame(5));
        c.send();
        EXPECT_EQ(c.streams.size(), 1u) << before;
        EXPECT_NE(c.output.find(goaway(1)), std::string::npos);
        EXPECT_FALSE(c.is_over);
        c.answer(1);
        EXPECT_EQ(c.resets_of(1), codes());
        EXPECT_TRUE(c.is_over);
    }
    engine_on c;
    c.receive(third.substr(0, 20));
    c.engine->shut_down();
    c.send();
    c.receive(third.substr(20));
    EXPECT_TRUE(c.streams.empty());
    EXPECT_NE(c.output.find(goaway(0)), std::string::npos);
}

TEST(http2_engine, a_malformed_request_costs_one_reset) {
    const std::string fields[] = {literal("connection", "close"), literal("host", "b"),
                                  literal("te", "gzip")};
    for (const std::string& field : fields) {
        engine_on c({.resets_max = 20});
        std::uint32_t id = 1;
        for (; id != 41; id += 2) c.receive(post_frame(id, field));
        EXPECT_EQ(code_in(c.output), ~0u) << &field - fields;
        c.receive(post_frame(id, field));
        EXPECT_EQ(code_in(c.output), std::uint32_t{NGHTTP2_ENHANCE_YOUR_CALM}) << &field - fields;
    }
}

TEST(http2_engine, a_malformed_request_is_reset_once) {
    const std::string fields[] = {
        literal("connection", "close"), literal("X-A", "b"),   literal(":path", "/b"),
        literal("host", "b"),           literal("te", "gzip"), literal("x-a", "b\nc"),
        literal(":other", "b"),         literal("x-a:y", "b"), literal("content-length", "x"),
    };
    for (const std::string& field : fields) {
        engine_on c;
        c.receive(post_frame(1, field) + frame(NGHTTP2_DATA, 0, 1, "x") +
                  frame(NGHTTP2_DATA, end_stream, 1, "x"));
        EXPECT_EQ(c.resets_of(1), malformed) << &field - fields;
        EXPECT_TRUE(c.streams.empty());
        c.receive(get_frame(3));
        EXPECT_EQ(c.streams.size(), 1u);
    }
}

// nghttp2 resets the stream, and then cannot send what the server has answered meanwhile.
TEST(http2_engine, a_stream_with_a_wrong_body_is_reset_once) {
    engine_on c;
    c.receive(post_frame(1, literal("content-length", "3")));
    c.take(frame(NGHTTP2_DATA, end_stream, 1, "four"));
    c.answer(1);
    EXPECT_EQ(c.resets_of(1), malformed);
    EXPECT_TRUE(c.streams[1].is_reset);
}

TEST(http2_engine, a_body_that_is_to_have_no_bytes_is_awaited) {
    for (const char* const zero : {"0", "00"}) {
        const std::string length = literal("content-length", zero) + literal("x-a", "b");
        engine_on c;
        c.receive(post_frame(1, length) + post_frame(3, length));
        EXPECT_EQ(c.streams[1].head,
                  "POST / HTTP/1.1\r\nhost: a\r\nx-a: b\r\ntransfer-encoding: chunked\r\n\r\n");
        c.receive(frame(NGHTTP2_DATA, 0, 1, "") + frame(NGHTTP2_DATA, end_stream, 1, ""));
        EXPECT_TRUE(c.streams[1].has_ended);
        EXPECT_EQ(c.resets_of(1), codes());
        c.receive(frame(NGHTTP2_DATA, end_stream, 3, "x"));
        EXPECT_FALSE(c.streams[3].has_ended);
        EXPECT_TRUE(c.streams[3].is_reset);
        EXPECT_EQ(c.streams[3].body, "");
        EXPECT_EQ(c.resets_of(3), malformed);
        std::string whole = post_frame(5, length);
        whole[4] |= end_stream;
        c.receive(whole);
        EXPECT_NE(c.streams[5].head.find("content-length: 0"), std::string::npos);
    }
}

TEST(http2_engine, a_scheme_that_is_not_the_connections_is_written_as_the_other_one) {
    for (const char* const scheme : {"https", "ftp", "wss"}) {
        engine_on c;
        c.receive(frame(NGHTTP2_HEADERS, end_headers | end_stream, 1,
                        literal(":method", "GET") + literal(":scheme", scheme) +
                            literal(":path", "/b") + literal(":authority", "a")));
        EXPECT_EQ(c.streams[1].head, "GET https://a/b HTTP/1.1\r\nhost: a\r\n\r\n") << scheme;
    }
}

}  // namespace
}  // namespace coppice::test
