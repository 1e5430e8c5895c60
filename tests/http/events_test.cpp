// Server-sent events of http::server: their format, comments between them, and how they end.
#include <coppice/exec/when_any.hpp>
#include <coppice/http/events.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/io/timer.hpp>

#include "running_server.hpp"

#include <gtest/gtest.h>

#include <future>
#include <string>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;
using namespace std::chrono_literals;
using http::event_writer;
using http::request;

constexpr std::string_view get_events =
    "GET /events HTTP/1.1\r\nHost: a\r\nLast-Event-ID: 41\r\n\r\n";

class events_on : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, events_on, testing::ValuesIn(every_way), name_of_way);

TEST_P(events_on, events_are_split_into_lines) {
    http::router r;
    r.get("/events", [](request& q) {
        return http::events(
            q, [last = std::string(http::last_event_id(q))](event_writer& out) -> task<> {
                co_await out.send({.data = last});
                co_await out.send({.data = "a\nb\r\nc\rd\n"});
                co_await out.send({.data = "", .name = "tick", .id = "42"});
                co_await out.send({.retry = 1500ms});
                bool refused = false;
                try {
                    co_await out.send({.data = "x", .name = "two\nlines"});
                } catch (const std::invalid_argument&) {
                    refused = true;
                }
                co_await out.send({.data = refused ? "refused" : "sent"});
            });
    });
    running_server server(options_of(GetParam()), std::move(r));
    client c(server.port());
    c.send(get_events);
    const std::string answer = c.receive();
    EXPECT_NE(answer.find("Content-Type: text/event-stream\r\n"), answer.npos);
    EXPECT_NE(answer.find("Cache-Control: no-store\r\n"), answer.npos);
    EXPECT_EQ(body_of(answer),
              "data: 41\n\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"
              "id: 42\nevent: tick\ndata: \n\nretry: 1500\n\ndata: refused\n\n");
}

TEST_P(events_on, a_drain_stops_the_producer_and_ends_the_answer_properly) {
    std::promise<void> began;
    http::router r;
    r.get("/events", [&](request& q) {
        return http::events(q, [&, &loop = q.loop()](event_writer& out) -> task<> {
            co_await out.send({.data = "first"});
            began.set_value();
            io::timer never(loop);
            co_await never.wait_for(1h);
        });
    });
    running_server server(options_of(GetParam()), std::move(r));
    client c(server.port());
    c.send(get_events);
    began.get_future().get();
    server->drain(10s);
    EXPECT_EQ(body_of(c.receive()), "data: first\n\n");
    EXPECT_TRUE(c.ended());
}

TEST_P(events_on, a_producer_may_say_goodbye_when_it_is_told_of_a_drain) {
    std::promise<void> began;
    http::router r;
    r.get("/events", [&](request& q) {
        return http::events(q,
                            [&, &loop = q.loop()](event_writer& out) -> task<> {
                                co_await out.send({.data = "first"});
                                began.set_value();
                                while (!out.drain_token().stop_requested()) {
                                    io::timer a_while(loop);
                                    co_await a_while.wait_for(1ms);
                                }
                                co_await out.send({.data = "bye"});
                            },
                            {.end_at_drain = false});
    });
    running_server server(options_of(GetParam()), std::move(r));
    client c(server.port());
    c.send(get_events);
    began.get_future().get();
    server->drain(10s);
    EXPECT_EQ(body_of(c.receive()), "data: first\n\ndata: bye\n\n");
}

TEST_P(events_on, comments_come_while_the_producer_waits_and_a_reset_stops_it) {
    std::promise<void> stopped;
    http::router r;
    r.get("/events", [&](request& q) {
        return http::events(q,
                            [&, &loop = q.loop()](event_writer&) -> task<> {
                                struct at_end {
                                    std::promise<void>& p;
                                    ~at_end() { p.set_value(); }
                                } const told{stopped};
                                io::timer never(loop);
                                co_await never.wait_for(1h);
                            },
                            {.comment_interval = 1ms});
    });
    running_server server(options_of(GetParam()), std::move(r));
    client c(server.port());
    c.send(get_events);
    std::string all;
    while (all.find(":\n\n\r\n3\r\n:\n\n") == all.npos) {
        const std::string more = c.receive_piece();
        ASSERT_NE(more, "");
        all += more;
    }
    c.reset();
    EXPECT_EQ(stopped.get_future().wait_for(10s), std::future_status::ready);
}

// The send takes the socket's error before the loop looks at the socket again, so that the pending
// receive sees an end of input and no error.
TEST_P(events_on, a_send_that_finds_the_client_gone_stops_what_else_the_producer_waits_for) {
    std::promise<void> began, reset, stopped;
    http::router r;
    r.get("/events", [&](request& q) {
        return http::events(q, [&, &loop = q.loop()](event_writer& out) -> task<> {
            co_await out.send({.data = "first"});
            io::timer never(loop);
            const auto send_late = [](event_writer& to, std::promise<void>& ready,
                                      std::promise<void>& gone) -> task<> {
                ready.set_value();
                gone.get_future().wait();
                co_await to.send({.data = "second"});
            };
            struct at_end {
                std::promise<void>& p;
                ~at_end() { p.set_value(); }
            } const told{stopped};
            // A sender that is stopped does not win.
            co_await execution::when_any(never.wait_for(1h), send_late(out, began, reset));
        });
    });
    running_server server(options_of(GetParam()), std::move(r));
    client c(server.port());
    c.send(get_events);
    EXPECT_NE(c.receive_piece(), "");
    began.get_future().get();
    c.reset();
    reset.set_value();
    EXPECT_EQ(stopped.get_future().wait_for(10s), std::future_status::ready);
}

}  // namespace
