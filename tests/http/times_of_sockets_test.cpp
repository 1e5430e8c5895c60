// The times of WebSockets and server-sent events: those out of range are refused by name.
#include <coppice/http/events.hpp>
#include <coppice/http/websocket.hpp>

#include "running_server.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

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
