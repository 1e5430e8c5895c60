// What the server keeps for clients that are slow, leave, or take nothing, and how long.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/http.hpp>
#include <coppice/http2.hpp>
#include <coppice/io.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "../http/file_root.hpp"
#include "../http/running_server.hpp"
#include "answers.hpp"
#include "client.hpp"

namespace coppice::test {

using http::request;
using http::response;
using http::websocket;
using namespace internal;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t budget = 400'000;

http::server_options over_http2(http2::server_limits limits = {}) {
    http::server_options o = options_of(every_way[0]);
    o.http2 = http2::for_server(limits);
    o.on_exception = [](std::exception_ptr) {};
    return o;
}
http::router routes() {
    http::router r;
    r.get("/plain", [](request&) { return response::text("plain"); });
    r.post("/size", [](request& q) { return response::text(std::to_string(q.body().size())); });
    return r;
}

// The preface of a client that never takes a byte of a body.
std::string preface_without_window() {
    return std::string(NGHTTP2_CLIENT_MAGIC) +
           frame(NGHTTP2_SETTINGS, 0, 0, std::string("\0\x04\0\0\0\0", 6));
}
// Receives until these bytes come. Returns false if the connection ends before.
bool hears(client& c, std::string_view wanted) {
    for (std::string all; all.find(wanted) == all.npos;) {
        const std::string piece = c.receive_piece();
        if (piece.empty()) return false;
        all += piece;
    }
    return true;
}

// The first piece that exceeds the budget is let through, and so is each copy of a short answer.
TEST(Http2Kept, pieces_of_files_that_are_not_taken_count) {
    const file_root root;
    root.write("large", std::string(2u << 20, 'x'));
    http::router r = routes();
    r.get("/files/{path...}", http::files(root.path.string()));
    http::server_options o = over_http2();
    o.buffered_bytes_max = 100'000;
    running_server s(std::move(o), std::move(r));
    h2_client c(s.port(), false);
    std::vector<std::int32_t> streams;
    for (int i = 0; i != 8; ++i) streams.push_back(c.ask("GET", "/files/large"));
    const auto reset = [&] {
        return std::ranges::count_if(
            streams, [&](std::int32_t id) { return c.at(id).closed && c.at(id).error != 0; });
    };
    EXPECT_TRUE(c.go_on([&] { return reset() == 6; }));
    for (const std::int32_t id : streams) c.reset(id);
    for (int i = 0; i != 3; ++i) {
        std::size_t bytes = 0;
        while (bytes == 0) {  // another loop may still hear of the resets
            h2_client next(s.port());
            bytes = next.get("/files/large").body.size();
        }
        EXPECT_EQ(bytes, 2u << 20);
    }
}

TEST(Http2Kept, a_socket_that_is_lost_with_unsent_messages_gives_its_memory_back) {
    atomic<int> ended{0};
    http::router r = routes();
    r.get("/", http::websocket_handler([&ended](websocket& socket) -> task<> {
              const scope_exit is_over([&ended] { ended.fetch_add(1, relaxed); });
              const std::string text(10'000, 'e');
              while (!co_await socket.send(text)) {
              }
          }));
    http::server_options o = over_http2();
    o.buffered_bytes_max = budget;
    running_server s(std::move(o), std::move(r));
    const auto wait_for_end = [&](int count) {
        while (ended.load(relaxed) != count) std::this_thread::yield();
    };
    for (int i = 0; i != 20; ++i) {
        {
            websocket_client c(s.port());
            ASSERT_TRUE(has_status(c.open(), 101));
            c.reset();
        }
        wait_for_end(2 * i + 1);
        {
            h2_client c(s.port(), false);
            const std::int32_t stream = c.open();
            c.go_on([&] { return c.at(stream).body.size() == 65'535; });
            c.reset(stream);
        }
        wait_for_end(2 * i + 2);
    }
    h2_client c(s.port());
    EXPECT_EQ(c.finish(c.ask("POST", "/size", {}, std::string(100'000, 'x'))).body, "100000");
}

TEST(Http2Kept, an_answer_that_is_not_taken_is_reset_after_the_time_to_write) {
    http::server_options o = over_http2();
    o.timeouts.write = 20ms;
    http::router r;
    r.get("/", [](request&) { return response::text("hello"); });
    running_server plain(o, std::move(r));
    http::router sockets;
    sockets.get("/", http::websocket_handler([](websocket& socket) -> task<> {
                    while (co_await socket.receive()) {
                    }
                }));
    running_server tunnels(std::move(o), std::move(sockets));
    const std::string closes = frame(NGHTTP2_DATA, 0, 1, close_frame(1000));
    struct trial {
        std::uint16_t port;
        std::string bytes;
    };
    for (const trial& t : {trial{plain.port(), get_frame(1)}, trial{plain.port(), open_frame(1)},
                           trial{tunnels.port(), open_frame(1) + closes}}) {
        client c(t.port);
        c.send(preface_without_window() + t.bytes);
        EXPECT_TRUE(hears(c, reset_frame(1, NGHTTP2_CANCEL)));
        EXPECT_EQ(h2_client(plain.port()).get("/").body, "hello");
    }
}

// The handler is always behind, so that something is always unread.
TEST(Http2Kept, a_slow_handler_keeps_no_more_than_the_window) {
    http::router r = routes();
    constexpr std::size_t count = 300;
    std::size_t received = 0;
    r.get("/", http::websocket_handler([&received](websocket& socket) -> task<> {
              io::timer pause(socket.loop());
              while (const auto message = co_await socket.receive()) {
                  received += message->data.size();
                  co_await pause.wait_for(1ms);
              }
          }));
    http::server_options o = over_http2({.stream_window_bytes = 50'000});
    o.buffered_bytes_max = budget;
    running_server s(std::move(o), std::move(r));
    h2_client c(s.port());
    const std::int32_t stream = c.open();
    EXPECT_EQ(c.get("/plain").body, "plain");  // the client knows the size of the window
    std::string all;
    for (std::size_t i = 0; i != count; ++i) all += text_frame(std::string(3000, 'm'));
    c.say(stream, all);
    c.go_on([&] { return c.unsent(stream) == 0; });
    EXPECT_EQ(c.say_and_hear(stream, close_frame(1000)), "8:" + close_payload(1000));
    EXPECT_EQ(c.next(stream), "end");
    EXPECT_EQ(received, count * 3000);
}

// "Refused" would let a client send the request again.
TEST(Http2Kept, a_request_that_a_handler_has_is_not_refused_for_lack_of_memory) {
    atomic<int> begun{0};
    atomic<bool> is_over{false};
    http::router r = routes();
    r.post("/read", http::read_body([&](request& q) -> task<response> {
               begun.fetch_add(1, relaxed);
               (void)co_await q.incoming().read();
               io::timer pause(q.loop());
               while (!is_over.load(relaxed)) co_await pause.wait_for(1ms);
               co_return response(200);
           }));
    http::server_options o = over_http2({.stream_window_bytes = 1'000'000});
    o.buffered_bytes_max = budget;
    running_server s(std::move(o), std::move(r));
    h2_client c(s.port());
    EXPECT_EQ(c.get("/plain").body, "plain");
    const h2_client::answer a = c.finish(c.ask("POST", "/read", {}, std::string(900'000, 'x')));
    EXPECT_EQ(a.error, std::uint32_t{NGHTTP2_INTERNAL_ERROR});
    EXPECT_EQ(begun.load(relaxed), 1);
    is_over.store(true, relaxed);
}

TEST(Http2Kept, a_request_without_room_gets_503_like_one_of_http1) {
    http::server_options o = over_http2({.stream_window_bytes = 1'000'000});
    o.buffered_bytes_max = budget;
    running_server s(std::move(o), routes());
    h2_client c(s.port());
    EXPECT_EQ(c.get("/plain").body, "plain");
    for (int i = 0; i != 3; ++i) {
        h2_client::answer a = c.finish(c.ask("POST", "/size", {}, std::string(900'000, 'x')));
        EXPECT_EQ(a.status, 503);
        EXPECT_EQ(a.fields["retry-after"], "1");
        EXPECT_TRUE(a.ended);
        EXPECT_EQ(a.error, std::uint32_t{NGHTTP2_NO_ERROR});
        EXPECT_EQ(c.finish(c.ask("POST", "/size", {}, std::string(1000, 'x'))).body, "1000");
    }
}

// The stream's connection is made after the body has come.
TEST(Http2Kept, a_request_without_room_that_comes_at_once_gets_503) {
    http::server_options o = over_http2();
    o.buffered_bytes_max = 100;
    http::router r = routes();
    r.post("/read", http::read_body([](request& q) -> task<response> {
               while (!(co_await q.incoming().read()).empty()) {
               }
               co_return response(200);
           }));
    running_server s(std::move(o), std::move(r));
    h2_client c(s.port());
    for (const char* const path : {"/size", "/read"}) {
        const h2_client::answer& a = c.finish(c.ask("POST", path, {}, std::string(5000, 'x')));
        EXPECT_EQ(a.status, 503) << path;
        EXPECT_TRUE(a.ended);
        EXPECT_EQ(a.error, std::uint32_t{NGHTTP2_NO_ERROR});
        EXPECT_EQ(c.get("/plain").body, "plain");
    }
}

TEST(Http2Kept, a_client_that_is_too_slow_is_the_reason_of_the_reset) {
    http::server_options o = over_http2();
    o.timeouts.body = o.timeouts.write = 20ms;
    http::router r = routes();
    r.get("/events", [](request& q) {
        return http::events(q, [](http::event_writer& out) -> task<> {
            for (;;) co_await out.send({.data = std::string(10'000, 'e')});
        });
    });
    running_server s(std::move(o), std::move(r));
    const std::string post = literal(":method", "POST") + literal(":scheme", "http") +
                             literal(":path", "/size") + literal(":authority", "a");
    for (const std::string& bytes :
         {frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, post), get_frame(1, "/events")}) {
        client c(s.port());
        c.send(preface_without_window() + bytes);
        EXPECT_TRUE(hears(c, reset_frame(1, NGHTTP2_CANCEL)));
    }
}

// nghttp2 sends no more than 64 KiB of fields, and says so to the engine alone.
TEST(Http2Kept, fields_that_are_too_long_for_http2_end_the_stream) {
    http::router r = routes();
    r.get("/fields", [](request&) { return response(200).add("X", std::string(70'000, 'x')); });
    r.get("/trailers", [](request&) {
        return response(200).body(http::stream([](http::body_writer& out) -> task<> {
            co_await out.write("text");
            out.trailer("X", std::string(70'000, 'x'));
        }));
    });
    running_server s(over_http2(), std::move(r));
    h2_client c(s.port());
    for (const char* const path : {"/fields", "/trailers"}) {
        EXPECT_EQ(c.get(path).error, std::uint32_t{NGHTTP2_INTERNAL_ERROR}) << path;
        EXPECT_EQ(c.get("/plain").body, "plain");
    }
}

TEST(Http2Kept, a_connection_has_no_more_streams_than_it_may) {
    http::server_options o = over_http2();
    o.requests_per_connection_max = 3;
    running_server s(std::move(o), routes());
    client c(s.port());
    std::string all = preface();
    for (std::uint32_t id = 1; id != 15; id += 2) all += get_frame(id, "/plain");
    c.send(all);
    const connection_answer got = read_answers(c.receive_all());
    EXPECT_EQ(got.goaway, NGHTTP2_NO_ERROR);
    for (std::uint32_t id = 1; id != 15; id += 2) EXPECT_EQ(got.has_ended(id), id <= 5) << id;
    EXPECT_TRUE(c.ended());
}

TEST(Http2Kept, padding_earns_nothing) {
    http::router r;
    r.get("/", http::websocket_handler([](websocket& socket) -> task<> {
              while (co_await socket.receive()) {
              }
          }));
    running_server s(over_http2({.resets_max = 20, .idle_frames_max = 100}), std::move(r));
    const std::string padded = frame(NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 1, std::string(1, '\0'));
    const std::string ping = frame(NGHTTP2_PING, 0, 0, std::string(8, 'p'));
    for (const std::string& one : {padded, padded + ping}) {
        std::string all = preface() + open_frame(1);
        for (int i = 0; i != 300; ++i) all += one;
        EXPECT_EQ(code_after(s.port(), all), std::uint32_t{NGHTTP2_ENHANCE_YOUR_CALM});
    }
}

}  // namespace
}  // namespace coppice::test
