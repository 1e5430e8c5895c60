// What enters by an extended CONNECT, and what does not: each refusal, each flood, each cut.
#include <coppice/http.hpp>
#include <coppice/http2.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <string>

#include "../http/running_server.hpp"
#include "client.hpp"

namespace coppice::test {

using http::request;
using http::response;
using http::websocket;

namespace {

constexpr std::uint32_t spoiled = NGHTTP2_PROTOCOL_ERROR;
constexpr std::uint32_t calm = NGHTTP2_ENHANCE_YOUR_CALM;

http::server_options over_http2(http2::server_limits limits = {}) {
    http::server_options o = options_of(every_way[0]);
    o.http2 = http2::for_server(limits);
    o.on_exception = [](std::exception_ptr) {};
    return o;
}
task<> echo(websocket& socket) {
    while (const auto message = co_await socket.receive()) co_await socket.send(*message);
}
http::router routes(http::websocket_options options = {}) {
    http::router r;
    r.get("/", http::websocket_handler(&echo, std::move(options)));
    r.get("/plain", [](request&) { return response::text("plain"); });
    r.get("/moved", [](request&) { return response(302).add("Location", "/"); });
    r.get("/interim", [](request&) { return response(103); });
    r.get("/long", [](request&) {
        return response(200).body(http::stream([](http::body_writer& out) -> task<> {
            for (;;) co_await out.write("and on");
        }));
    });
    r.get("/key", [](request& q) {
        const std::string key(q.find("Sec-WebSocket-Key").value_or("none"));
        return http::accept_websocket(
            q, [key](websocket& socket) -> task<> { co_await socket.send(key); });
    });
    r.post("/post", [](request&) { return response::text("posted"); });
    return r;
}

// Returns the status of the answer, or the code of the reset.
std::uint32_t outcome(h2_client& c, std::int32_t stream) {
    c.go_on([&] { return c.at(stream).status != 0 || c.at(stream).closed; });
    const h2_client::answer& a = c.at(stream);
    return a.status == 0 ? a.error : static_cast<std::uint32_t>(a.status);
}

TEST(Http2WebsocketHostile, each_head_opens_a_socket_or_gets_the_answer_that_says_why_not) {
    http::websocket_options options;
    options.origins = {"https://app.example"};
    running_server s(over_http2(), routes(options));
    struct trial {
        h2_client::fields changed;
        std::uint32_t outcome;
    };
    const trial trials[] = {
        {{}, 200},
        {{{":protocol", "WebSocket"}}, 200},
        {{{":protocol", "connect-udp"}}, 501},
        {{{":protocol", "websocket2"}}, 501},
        {{{":protocol", "websocket\r\nx: y"}}, spoiled},
        {{{":protocol", ""}}, spoiled},
        {{{":protocol", ""}, {":path", ""}, {":scheme", ""}, {":authority", "a:80"}}, 404},
        {{{":method", "GET"}}, spoiled},
        {{{":method", "connect"}}, spoiled},
        {{{":path", ""}}, spoiled},
        {{{":path", "*"}}, spoiled},
        {{{":path", "plain"}}, spoiled},
        {{{":scheme", ""}}, spoiled},
        {{{":scheme", "https"}}, 421},
        {{{":scheme", "wss"}}, 421},
        {{{":authority", ""}}, spoiled},
        {{{":authority", ""}, {"host", "a"}}, spoiled},
        {{{"host", "b"}}, spoiled},
        {{{"upgrade", "websocket"}}, spoiled},
        {{{"connection", "upgrade"}}, spoiled},
        {{{"transfer-encoding", "chunked"}}, spoiled},
        {{{"content-length", "0"}}, spoiled},
        {{{"content-length", "5"}}, spoiled},
        {{{"sec-websocket-key", "x"}}, 200},
        {{{"sec-websocket-version", "8"}}, 426},
        {{{"sec-websocket-version", ""}}, 426},
        {{{"origin", "http://a"}}, 200},
        {{{"origin", "https://app.example"}}, 200},
        {{{"origin", "https://evil.example"}}, 403},
        {{{"sec-websocket-protocol", "a b"}}, 400},
        {{{"sec-websocket-extensions", "a;"}}, 400},
        {{{"expect", "100-continue"}}, 200},
        {{{":path", "/missing"}}, 404},
        {{{":path", "/%zz"}}, 400},
        {{{":path", "/moved"}}, 302},
        {{{":path", "/interim"}}, 500},
        {{{":path", "/plain"}}, 405},
        {{{":path", "/long"}}, 405},
        {{{":path", "/post"}}, 405},
    };
    for (const trial& t : trials) {
        h2_client c(s.port());
        std::string text;
        for (const auto& [name, value] : t.changed) text.append(name + "=" + value + " ");
        EXPECT_EQ(outcome(c, c.open("/", t.changed)), t.outcome) << text;
        EXPECT_EQ(c.get("/plain").body, "plain");
    }
    h2_client c(s.port());
    EXPECT_EQ(c.finish(c.open("/plain")).fields["allow"], "GET, HEAD");
    const std::int32_t plain = c.ask("GET", "/");
    EXPECT_EQ(outcome(c, plain), 426u);
    EXPECT_EQ(c.get("/interim").status, 500);
    websocket_client old(s.port());
    old.send("GET /interim HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(has_status(old.receive(), 500));
    EXPECT_EQ(outcome(c, c.ask("GET", "/", {{"upgrade", "websocket"}})), spoiled);
    EXPECT_EQ(outcome(c, c.ask("GET", "/plain", {{":protocol", "websocket"}})), spoiled);
}

TEST(Http2WebsocketHostile, a_client_cannot_choose_what_stands_for_the_key) {
    running_server s(over_http2(), routes());
    h2_client c(s.port());
    const std::int32_t stream = c.open("/key", {{"sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="}});
    EXPECT_EQ(c.next(stream), "1:AAAAAAAAAAAAAAAAAAAAAA==");
}

TEST(Http2WebsocketHostile, without_the_option_no_stream_becomes_a_socket) {
    running_server s(over_http2({.websockets = false}), routes());
    h2_client c(s.port());
    EXPECT_EQ(outcome(c, c.open()), spoiled);
    EXPECT_EQ(c.get("/plain").body, "plain");
    websocket_client old(s.port());
    EXPECT_TRUE(has_status(old.open(), 101));
}

TEST(Http2WebsocketHostile, a_client_that_breaks_the_protocol_gets_the_code_that_says_so) {
    http::websocket_options options;
    options.message_bytes_max = 1000;
    running_server s(over_http2(), routes(options));
    struct wrong {
        std::string bytes;
        unsigned code;
    };
    h2_client c(s.port());
    for (const wrong& w : {wrong{frame_of({0x81, "x", false}), 1002},
                           {frame_of({0xc1, "x"}), 1002},
                           {text_frame("\xff"), 1007},
                           {frame_of({0x88, "x"}), 1002},
                           {"GET / HTTP/1.1\r\n\r\n", 1002},
                           {text_frame(std::string(1001, 'x')), 1009}}) {
        const std::int32_t stream = c.open();
        EXPECT_EQ(c.say_and_hear(stream, w.bytes).substr(0, 4), "8:" + close_payload(w.code));
        EXPECT_EQ(c.next(stream), "end");
    }
}

TEST(Http2WebsocketHostile, fields_behind_the_frames_reset_the_stream) {
    running_server s(over_http2(), routes());
    const std::string trailers = frame(
        NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1, literal("x", "y"));
    const std::string data = frame(NGHTTP2_DATA, 0, 1, text_frame("a"));
    const std::string reset("\0\0\x04\x03\0\0\0\0\x01\0\0\0\x01", 13);
    for (const std::string& all : {trailers, data + trailers}) {
        client c(s.port());
        c.send(preface() + open_frame(1) + all);
        c.finish_sending();
        EXPECT_NE(c.receive_all().find(reset), std::string::npos);
    }
}

// The client pings, and reads none of the pongs: the last of them is kept.
TEST(Http2WebsocketHostile, pings_that_are_not_read_fill_no_memory) {
    http::websocket_options options;
    options.unsent_bytes_max = 1000;
    http::server_options o = over_http2();
    o.buffered_bytes_max = 1'000'000;
    running_server s(std::move(o), routes(options));
    h2_client c(s.port(), false);
    const std::int32_t stream = c.open();
    const std::string ping = frame_of({0x89, std::string(125, 'p')});
    std::string pings;
    for (int i = 0; i != 20'000; ++i) pings += ping;
    c.say(stream, pings);
    EXPECT_TRUE(c.go_on([&] { return c.unsent(stream) == 0; }));
    EXPECT_LE(c.at(stream).body.size(), 65'535u);
    EXPECT_EQ(c.finish(c.ask("HEAD", "/plain")).status, 200);
    c.reset(stream);
    EXPECT_EQ(c.finish(c.ask("HEAD", "/plain")).status, 200);
}

TEST(Http2WebsocketHostile, a_client_that_reads_nothing_is_reset_after_the_time_to_write) {
    http::server_options o = over_http2();
    o.timeouts.write = std::chrono::milliseconds(20);
    http::router r = routes();
    r.get("/endless", http::websocket_handler([](websocket& socket) -> task<> {
              const std::string text(10'000, 'e');
              while (!co_await socket.send(text)) {
              }
          }));
    running_server s(std::move(o), std::move(r));
    h2_client c(s.port(), false);
    EXPECT_EQ(c.finish(c.open("/endless")).error, std::uint32_t{NGHTTP2_CANCEL});
    EXPECT_EQ(c.finish(c.ask("HEAD", "/plain")).status, 200);
}

TEST(Http2WebsocketHostile, a_client_that_answers_no_close_frame_is_reset) {
    http::websocket_options options;
    options.close_timeout = std::chrono::milliseconds(1);
    http::router r = routes();
    r.get("/short", http::websocket_handler([](websocket&) -> task<> { co_return; }, options));
    running_server s(over_http2(), std::move(r));
    h2_client c(s.port());
    EXPECT_EQ(c.finish(c.open("/short")).error, std::uint32_t{NGHTTP2_CANCEL});
    EXPECT_EQ(c.get("/plain").body, "plain");
}

TEST(Http2WebsocketHostile, floods_end_the_connection_with_enhance_your_calm) {
    running_server s(over_http2({.resets_max = 20, .idle_frames_max = 100}), routes());
    std::string empty = preface() + open_frame(1);
    for (int i = 0; i != 300; ++i) empty += frame(NGHTTP2_DATA, 0, 1, "");
    EXPECT_EQ(code_after(s.port(), empty), calm);
    std::string rapid = preface();
    std::string trailing = preface();
    std::string malformed = preface();
    for (std::uint32_t id = 1; id != 201; id += 2) {
        rapid += open_frame(id) + frame(NGHTTP2_RST_STREAM, 0, id, std::string("\0\0\0\x08", 4));
        trailing += open_frame(id) + frame(NGHTTP2_HEADERS,
                                           NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, id,
                                           literal("x", "y"));
        malformed += open_frame(id, literal("content-length", "0"));
    }
    EXPECT_EQ(code_after(s.port(), rapid), calm);
    EXPECT_EQ(code_after(s.port(), trailing), calm);
    EXPECT_EQ(code_after(s.port(), malformed), calm);
    EXPECT_EQ(h2_client(s.port()).get("/plain").body, "plain");
}

std::string conversation() {
    return preface() + open_frame(1) + frame(NGHTTP2_DATA, 0, 1, text_frame("hello")) +
           frame(NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, close_frame(1000));
}

TEST(Http2WebsocketHostile, every_cut_and_every_wrong_byte_leave_the_server_serving) {
    running_server s(over_http2(), routes());
    send_cut_and_wrong(s.port(), conversation());
    h2_client c(s.port());
    EXPECT_EQ(c.get("/plain").body, "plain");
}

TEST(Http2WebsocketHostile, bytes_that_come_one_by_one_are_echoed) {
    running_server s(over_http2(), routes());
    client c(s.port());
    for (const char byte : conversation()) c.send({&byte, 1});
    std::string all;
    while (all.find("\x81\x05hello") == all.npos) {
        const std::string piece = c.receive_piece();
        ASSERT_NE(piece, "");
        all += piece;
    }
}

}  // namespace
}  // namespace coppice::test
