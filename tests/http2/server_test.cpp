// http::server over HTTP/2, by prior knowledge: every handler serves it as it serves HTTP/1.1.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/http.hpp>
#include <coppice/http/multiplexer.hpp>
#include <coppice/http2.hpp>
#include <coppice/http2/server.hpp>
#include <coppice/io/timer.hpp>

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "../http/running_server.hpp"
#include "client.hpp"

namespace coppice::test {

using namespace internal;

namespace {

struct marks {
    atomic<int> written{0};  // pieces that a producer has written
    atomic<bool> stopped{false};
};

http::router routes_for(marks& m) {
    http::router r;
    r.get("/", [](http::request&) { return http::response::text("hello"); });
    r.get("/host", [](http::request& q) {
        return http::response::text(std::string(q.head().host()) + " " +
                                    std::string(q.find("cookie").value_or("")) + " " +
                                    std::to_string(q.peer().port() != 0));
    });
    r.get("/big", [](http::request&) { return http::response::text(std::string(1'000'000, 'b')); });
    r.get("/empty", [](http::request&) { return http::response(204); });
    r.get("/throws", [](http::request&) -> http::response { throw std::runtime_error("no"); });
    r.get("/pool", http::offload([](http::request&) { return http::response::text("pool"); }));
    r.post("/echo", [](http::request& q) { return http::response::text(std::string(q.body())); });
    r.post("/count", http::read_body([](http::request& q) -> task<http::response> {
               std::size_t n = 0;
               for (;;) {
                   const std::string_view piece = co_await q.incoming().read();
                   if (piece.empty()) break;
                   n += piece.size();
               }
               co_return http::response::text(std::to_string(n) + " " +
                                              std::string(q.trailer("x-sum").value_or("none")));
           }));
    r.get("/endless", [&m](http::request&) {
        return http::response(200).body(http::stream([&m](http::body_writer& out) -> task<> {
            const scope_exit ended([&m] { m.stopped.store(true, relaxed); });
            const std::string piece(16 * 1024, 's');
            for (;;) {
                co_await out.write(piece);
                m.written.fetch_add(1, relaxed);
            }
        }));
    });
    r.get("/lines", [](http::request&) {
        return http::response(200).body(http::stream([](http::body_writer& out) -> task<> {
            for (int i = 0; i != 10'000; ++i) co_await out.write("line\n");
        }));
    });
    r.get("/sum/{n}", [](http::request& q) {
        const int n = q.parameter<int>("n").value();
        return http::response(200).body(http::stream([n](http::body_writer& out) -> task<> {
            for (int i = 0; i != n; ++i) co_await out.write("line\n");
            out.trailer("X-Sum", std::to_string(n));
            out.trailer("X-Last", "yes");
        }));
    });
    r.get("/waits", [&m](http::request& q) -> task<http::response> {
        const scope_exit ended([&m] { m.stopped.store(true, relaxed); });
        co_await io::timer(q.loop()).wait_for(std::chrono::hours(1));
        co_return http::response(200);
    });
    return r;
}

http::server_options over_http2(const way& w, http2::server_limits limits = {}) {
    http::server_options o = options_of(w);
    o.http2 = http2::for_server(limits);
    o.on_exception = [](std::exception_ptr) {};
    return o;
}

class Http2Server : public testing::TestWithParam<way> {
protected:
    marks m;
};
INSTANTIATE_TEST_SUITE_P(Ways, Http2Server, testing::ValuesIn(every_way), name_of_way);

TEST_P(Http2Server, handlers_answer_streams_as_they_answer_http1) {
    running_server s(over_http2(GetParam()), routes_for(m));
    h2_client c(s.port());
    EXPECT_EQ(c.get("/").body, "hello");
    EXPECT_EQ(c.get("/").fields["content-length"], "5");
    EXPECT_EQ(c.get("/missing").status, 404);
    EXPECT_EQ(c.get("/throws").status, 500);
    EXPECT_EQ(c.get("/empty").status, 204);
    EXPECT_EQ(c.get("/pool").body, "pool");
    EXPECT_EQ(c.get("/big").body.size(), 1'000'000u);
    EXPECT_EQ(c.get("/lines").body.size(), 50'000u);
    EXPECT_EQ(c.finish(c.ask("HEAD", "/big")).fields["content-length"], "1000000");
    const auto host = c.finish(c.ask("GET", "/host", {{"cookie", "a=1"}, {"cookie", "b=2"}}));
    EXPECT_EQ(host.body, "a a=1; b=2 1");
    client old(s.port());
    old.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(body_of(old.receive()), "hello");
}

TEST_P(Http2Server, bodies_arrive_whole_with_and_without_a_length) {
    running_server s(over_http2(GetParam()), routes_for(m));
    h2_client c(s.port());
    const std::string body(700'000, 'x');
    EXPECT_EQ(c.finish(c.ask("POST", "/echo", {}, body)).body, body);
    EXPECT_EQ(c.finish(c.ask("POST", "/echo", {{"content-length", "700000"}}, body)).body, body);
    EXPECT_EQ(c.finish(c.ask("POST", "/count", {}, body)).body, "700000 none");
    EXPECT_EQ(c.finish(c.ask("POST", "/echo")).body, "");
    EXPECT_EQ(c.finish(c.ask("POST", "/missing", {}, body)).status, 404);
    EXPECT_EQ(c.get("/").body, "hello");
}

TEST_P(Http2Server, rfc9113_8_1_trailers_of_a_producer_follow_its_body) {
    running_server s(over_http2(GetParam()), routes_for(m));
    h2_client c(s.port());
    for (const int n : {0, 1, 20'000, 3}) {
        const h2_client::answer a = c.get("/sum/" + std::to_string(n));
        EXPECT_EQ(a.status, 200);
        EXPECT_EQ(a.body.size(), std::size_t{5} * static_cast<std::size_t>(n));
        EXPECT_EQ(a.fields.at("x-sum"), std::to_string(n));
        EXPECT_EQ(a.fields.at("x-last"), "yes");
        EXPECT_TRUE(a.ended);
        EXPECT_EQ(a.error, 0u);
    }
    EXPECT_EQ(c.finish(c.ask("HEAD", "/sum/3")).fields.count("x-sum"), 0u);
    const std::int32_t left = c.ask("GET", "/sum/1000000");
    c.flush();
    c.reset(left);
    EXPECT_EQ(c.get("/sum/2").fields.at("x-sum"), "2");
}

TEST_P(Http2Server, many_streams_are_answered_at_once) {
    running_server s(over_http2(GetParam()), routes_for(m));
    h2_client c(s.port());
    std::vector<std::int32_t> streams;
    for (int i = 0; i != 100; ++i) {
        streams.push_back(i % 2 == 0 ? c.ask("GET", "/")
                                     : c.ask("POST", "/count", {}, std::string(20'000, 'y')));
    }
    for (std::size_t i = 0; i != streams.size(); ++i) {
        EXPECT_EQ(c.finish(streams[i]).body, i % 2 == 0 ? "hello" : "20000 none");
    }
}

TEST_P(Http2Server, a_reset_stops_the_handler_and_spares_the_other_streams) {
    running_server s(over_http2(GetParam()), routes_for(m));
    h2_client c(s.port());
    const std::int32_t waiting = c.ask("GET", "/waits");
    EXPECT_EQ(c.get("/").body, "hello");
    EXPECT_FALSE(m.stopped.load(relaxed));
    c.reset(waiting);
    EXPECT_EQ(c.get("/").body, "hello");
    while (!m.stopped.load(relaxed)) std::this_thread::yield();
}

TEST_P(Http2Server, the_end_of_the_connection_stops_its_handlers) {
    running_server s(over_http2(GetParam()), routes_for(m));
    {
        h2_client c(s.port());
        (void)c.ask("GET", "/waits");
        EXPECT_EQ(c.get("/").body, "hello");
        c.socket().reset();
    }
    while (!m.stopped.load(relaxed)) std::this_thread::yield();
}

TEST_P(Http2Server, a_closed_window_makes_the_producer_wait) {
    running_server s(over_http2(GetParam()), routes_for(m));
    h2_client c(s.port(), false);
    const std::int32_t stream = c.ask("GET", "/endless");
    c.go_on([&] { return c.at(stream).body.size() == 65'535; });
    EXPECT_EQ(c.get("/empty").status, 204);  // another stream is served meanwhile
    EXPECT_LE(m.written.load(relaxed), 6);   // the window, and what is under way
    c.open_window(stream, 65'535);
    c.go_on([&] { return c.at(stream).body.size() == 2 * 65'535; });
    EXPECT_LE(m.written.load(relaxed), 10);
    c.reset(stream);
    EXPECT_EQ(c.get("/empty").status, 204);
    while (!m.stopped.load(relaxed)) std::this_thread::yield();
}

TEST_P(Http2Server, a_drain_answers_what_was_begun_and_says_which_stream_was_the_last) {
    running_server s(over_http2(GetParam()), routes_for(m));
    h2_client c(s.port(), false);
    const std::int32_t stream = c.ask("GET", "/big");
    c.go_on([&] { return c.at(stream).body.size() == 65'535; });
    s->drain(std::chrono::seconds(10));
    EXPECT_TRUE(c.go_on([&] { return c.has_goaway(); }));
    EXPECT_EQ(c.goaway(), 0u);
    EXPECT_EQ(c.last_stream(), stream);
    for (std::size_t got = 65'535; !c.at(stream).closed;) {
        c.open_window(stream, got);
        const std::size_t before = c.at(stream).body.size();
        c.go_on([&] { return c.at(stream).body.size() != before || c.at(stream).closed; });
        got = c.at(stream).body.size() - before;
    }
    EXPECT_EQ(c.at(stream).body.size(), 1'000'000u);
    EXPECT_FALSE(c.go_on([] { return false; }));
}

TEST_P(Http2Server, a_handler_beyond_its_time_is_answered_503) {
    http::server_options o = over_http2(GetParam());
    o.timeouts.handler = std::chrono::milliseconds(20);
    running_server s(std::move(o), routes_for(m));
    h2_client c(s.port());
    EXPECT_EQ(c.get("/waits").status, 503);
    EXPECT_EQ(c.get("/").body, "hello");
}

TEST(Http2Server, without_the_option_the_preface_is_a_bad_request) {
    marks m;
    running_server s(options_of(every_way[0]), routes_for(m));
    client c(s.port());
    c.send(preface());
    EXPECT_TRUE(has_status(c.receive_all(), 400));
}

}  // namespace
}  // namespace coppice::test
