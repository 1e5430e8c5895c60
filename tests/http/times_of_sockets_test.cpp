// The times of WebSockets and server-sent events: those out of range are refused by name, and a
// client has the whole time for its pong.
#include <coppice/http/events.hpp>
#include <coppice/http/websocket.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>

#include "running_server.hpp"
#include "served_world.hpp"
#include "websocket_frames.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;
using namespace std::chrono_literals;

// Returns why a handler with these options cannot be made, or "".
std::string refusal_of(const http::websocket_options& o) {
    try {
        (void)http::websocket_handler([](http::websocket&) -> task<> { co_return; }, o);
    } catch (const std::invalid_argument& e) {
        return e.what();
    }
    return "";
}

TEST(websocket_times, those_out_of_range_are_refused_by_name) {
    EXPECT_EQ(refusal_of({.ping_interval = 0ms}),
              "coppice: websocket_options::ping_interval is 0 ns; allowed: 1000000 or more");
    EXPECT_EQ(refusal_of({.pong_timeout = -1ns}),
              "coppice: websocket_options::pong_timeout is -1 ns; allowed: 0 or more");
    EXPECT_EQ(refusal_of({.close_timeout = -1ns}),
              "coppice: websocket_options::close_timeout is -1 ns; allowed: 0 or more");
    for (const duration wrong : {duration::min(), duration(-1), duration(999'999)}) {
        EXPECT_NE(refusal_of({.ping_interval = wrong}), "") << wrong.count();
    }
    EXPECT_NE(refusal_of({.pong_timeout = duration::min()}), "");
    EXPECT_NE(refusal_of({.close_timeout = duration::min()}), "");
    const duration most = duration::max();
    EXPECT_EQ(refusal_of({.ping_interval = 1ms, .pong_timeout = 0ms, .close_timeout = 0ms}), "");
    EXPECT_EQ(refusal_of({.ping_interval = most, .pong_timeout = most, .close_timeout = most}), "");
}

// Receives until `end` has come.
task<> receive_until(io::tcp::socket& peer, std::string_view end) {
    std::string all;
    std::array<char, 512> some;
    while (!all.ends_with(end)) {
        const std::size_t n = co_await peer.receive(std::as_writable_bytes(std::span(some)));
        EXPECT_NE(n, 0u) << "the server has ended the connection";
        if (n == 0) co_return;
        all.append(some.data(), n);
    }
}

TEST(websocket_times, a_client_has_its_whole_time_for_the_pong_after_a_handler_that_was_away) {
    io::context* here = nullptr;
    std::size_t received = 0;
    http::router r;
    r.get("/", http::websocket_handler([&](http::websocket& socket) -> task<> {
              while (const auto message = co_await socket.receive()) {
                  ++received;
                  io::timer timer(*here);
                  co_await timer.wait_for(61s);  // longer than the server waits for a client
                  (void)co_await socket.send(*message);
              }
          }));
    io::simulation world(1, io::simulated_faults::none());
    const http::server_statistics after =
        serve_in(world, {}, std::move(r), [&](io::context& loop, const io::endpoint& to) -> task<> {
            here = &loop;
            io::tcp::socket peer(loop);
            co_await peer.connect(to);
            const auto send = [&](const std::string& text) {
                return peer.send_all(std::as_bytes(std::span(text)));
            };
            const std::string first = upgrade_request() + text_frame("a");
            co_await send(first);
            co_await receive_until(peer,
                                   "\x81\x01"
                                   "a" +
                                       std::string("\x89\0", 2));
            io::timer timer(loop);
            co_await timer.wait_for(20s);
            const std::string second = frame_of({0x8a, ""}) + text_frame("b");
            co_await send(second);
            co_await receive_until(peer,
                                   "\x81\x01"
                                   "b");
        });
    EXPECT_EQ(received, 2u);
    EXPECT_EQ(after.timed_out, 0u);
}

TEST(event_times, those_out_of_range_are_refused_by_name) {
    http::router r;
    r.get("/{ns:int}", [](http::request& q) {
        try {
            const duration interval(q.parameter<int>("ns").value());
            return http::events(
                q, [](http::event_writer& out) -> task<> { co_await out.send({.data = "event"}); },
                {.comment_interval = interval});
        } catch (const std::invalid_argument& e) {
            return http::response::text(std::string(e.what()));
        }
    });
    running_server server(options_of(every_way[0]), std::move(r));
    const auto get = [&](const std::string& ns) {
        client c(server.port());
        c.send("GET /" + ns + " HTTP/1.1\r\nHost: a\r\n\r\n");
        return c.receive();
    };
    for (const std::string ns : {"-1", "0", "999999"}) {
        const std::string text =
            "coppice: events_options::comment_interval is " + ns + " ns; allowed: 1000000 or more";
        EXPECT_TRUE(get(ns).ends_with(text)) << ns;
    }
    EXPECT_NE(get("1000000").find("data: event"), std::string::npos);
}

}  // namespace
