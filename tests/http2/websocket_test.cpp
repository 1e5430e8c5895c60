// WebSockets over HTTP/2 (RFC 8441), in every model and on every ring: what their handlers see, and
// how they end.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/http.hpp>
#include <coppice/http2.hpp>
#include <coppice/io/timer.hpp>

#include <gtest/gtest.h>

#include <unistd.h>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../http/running_server.hpp"
#include "client.hpp"

namespace coppice::test {

using namespace internal;
using namespace std::chrono_literals;
using http::request;
using http::response;
using http::websocket;

namespace {

task<> echo(websocket& socket) {
    while (const auto message = co_await socket.receive()) co_await socket.send(*message);
}
http::server_options over_http2(const way& w, http2::server_limits limits = {}) {
    http::server_options o = options_of(w);
    o.http2 = http2::for_server(limits);
    return o;
}
http::router echo_routes(http::websocket_options options = {}) {
    http::router r;
    r.get("/", http::websocket_handler(&echo, std::move(options)));
    r.get("/plain", [](request&) { return response::text("plain"); });
    return r;
}
// Says, when it ends, that a handler has ended.
struct at_end {
    std::promise<void>& p;
    ~at_end() { p.set_value(); }
};

class http2_websocket_on : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, http2_websocket_on, testing::ValuesIn(every_way), name_of_way);

TEST_P(http2_websocket_on, rfc8441_echoes_messages_of_every_size_and_cut) {
    running_server server(over_http2(GetParam()), echo_routes());
    h2_client c(server.port());
    ASSERT_TRUE(c.may_open());
    const std::int32_t s = c.open();
    EXPECT_EQ(c.say_and_hear(s, text_frame("Hello")), "1:Hello");
    EXPECT_EQ(c.at(s).status, 200);
    for (const char* name : {"sec-websocket-accept", "upgrade", "connection"}) {
        EXPECT_EQ(c.at(s).fields.count(name), 0u) << name;
    }
    for (const std::size_t size : {0u, 125u, 126u, 65535u, 65536u, 1024u * 1024u}) {
        const std::string text(size, 'x');
        EXPECT_TRUE(c.say_and_hear(s, text_frame(text)) == "1:" + text) << size;
    }
    const std::string bytes =
        frame_of({0x01, "frag"}) + frame_of({0x89, "p"}) + frame_of({0x80, "ment"});
    for (const char byte : bytes) c.say(s, {&byte, 1});
    EXPECT_EQ(c.next(s), "a:p");
    EXPECT_EQ(c.next(s), "1:fragment");
    c.say(s, text_frame("1") + text_frame("2"));
    EXPECT_EQ(c.next(s), "1:1");
    EXPECT_EQ(c.next(s), "1:2");
    EXPECT_EQ(c.say_and_hear(s, close_frame(3000, "bye")), "8:" + close_payload(3000));
    EXPECT_EQ(c.next(s), "end");
    EXPECT_TRUE(c.finish(s).ended);
    EXPECT_EQ(c.at(s).error, std::uint32_t{NGHTTP2_NO_ERROR});
    EXPECT_EQ(server->statistics().exceptions, 0u);
}

TEST_P(http2_websocket_on, another_protocol_is_refused_as_a_request_and_is_logged_and_counted) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    {
        http::access_log log(pipe[1]);
        http::server_options o = over_http2(GetParam());
        o.access_log = &log;
        http::router r = echo_routes();
        r.use(std::make_shared<http::allowed_hosts>(std::vector<std::string>{"a"}));
        running_server server(std::move(o), std::move(r));
        h2_client c(server.port());
        ASSERT_TRUE(c.may_open());
        EXPECT_EQ(c.finish(c.open("/", {{":protocol", "connect-udp"}})).status, 501);
        EXPECT_EQ(c.finish(c.open("/none", {{":protocol", "connect-udp"}})).status, 501);
        EXPECT_EQ(c.finish(c.open("/", {{":protocol", "x"}, {":authority", "b"}})).status, 421);
        EXPECT_EQ(c.say_and_hear(c.open(), text_frame("Hello")), "1:Hello");
        EXPECT_EQ(server->statistics().by_status[501 - 100], 2u);
    }
    ::close(pipe[1]);
    std::string text(4096, ' ');
    const ssize_t n = ::read(pipe[0], text.data(), text.size());
    ::close(pipe[0]);
    ASSERT_GT(n, 0);
    text.resize(static_cast<std::size_t>(n));
    EXPECT_NE(text.find(" 501 "), text.npos) << text;
    EXPECT_NE(text.find(" 421 "), text.npos) << text;
}

TEST_P(http2_websocket_on, sockets_and_requests_share_a_connection) {
    running_server server(over_http2(GetParam()), echo_routes());
    h2_client c(server.port());
    const std::int32_t a = c.open();
    const std::int32_t b = c.open();
    for (int i = 0; i != 20; ++i) {
        c.say(a, text_frame("a"));
        EXPECT_EQ(c.say_and_hear(b, text_frame("b")), "1:b");
        EXPECT_EQ(c.get("/plain").body, "plain");
        EXPECT_EQ(c.next(a), "1:a");
    }
    EXPECT_EQ(c.say_and_hear(a, close_frame(1000)), "8:" + close_payload(1000));
    EXPECT_EQ(c.say_and_hear(b, text_frame("still")), "1:still");
    websocket_client old(server.port());
    EXPECT_TRUE(has_status(old.open(), 101));
    EXPECT_EQ(old.say(text_frame("old")), "1:old");
}

// The handler decides late; what comes before is kept, and is no request.
TEST_P(http2_websocket_on, bytes_that_come_before_the_answer_belong_to_the_socket) {
    http::router r = echo_routes();
    std::promise<void> may_answer;
    auto answers = may_answer.get_future().share();
    r.get("/late", [&](request& q) -> task<response> {
        io::timer pause(q.loop());
        while (answers.wait_for(0s) != std::future_status::ready) co_await pause.wait_for(1ms);
        co_return http::accept_websocket(q, &echo);
    });
    running_server server(over_http2(GetParam()), std::move(r));
    h2_client c(server.port());
    const std::int32_t s = c.open("/late");
    c.say(s, text_frame("GET /plain HTTP/1.1\r\nHost: a\r\n\r\n"));
    c.say(s, text_frame("second"));
    EXPECT_EQ(c.get("/plain").body, "plain");
    EXPECT_EQ(c.at(s).status, 0);
    may_answer.set_value();
    EXPECT_EQ(c.next(s), "1:GET /plain HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(c.next(s), "1:second");
}

TEST_P(http2_websocket_on, a_refused_socket_gets_one_answer_whatever_it_sends) {
    http::router r = echo_routes();
    atomic<int> asked{0};
    r.get("/secret", [&](request&) {
        asked.fetch_add(1, relaxed);
        return response::text("secret");
    });
    running_server server(over_http2(GetParam()), std::move(r));
    h2_client c(server.port());
    for (const char* path : {"/missing", "/plain"}) {
        const std::int32_t s = c.open(path);
        c.say(s, "GET /secret HTTP/1.1\r\nHost: a\r\n\r\n");
        c.say(s, "GET /secret HTTP/1.1\r\nHost: a\r\n\r\n");
        EXPECT_GE(c.finish(s).status, 400) << path;
        EXPECT_EQ(c.at(s).body.find("secret"), std::string::npos);
    }
    EXPECT_EQ(c.get("/plain").body, "plain");
    EXPECT_EQ(asked.load(relaxed), 0);
}

TEST_P(http2_websocket_on, a_drain_closes_with_1001_and_lets_the_handler_end) {
    std::promise<unsigned> ended;
    http::router r;
    r.get("/", http::websocket_handler([&](websocket& socket) -> task<> {
              while (const auto message = co_await socket.receive()) co_await socket.send(*message);
              ended.set_value(socket.close_code());
          }));
    running_server server(over_http2(GetParam()), std::move(r));
    h2_client c(server.port());
    const std::int32_t s = c.open();
    EXPECT_EQ(c.say_and_hear(s, text_frame("a")), "1:a");
    server->drain(10s);
    EXPECT_EQ(c.next(s), "8:" + close_payload(1001));
    EXPECT_TRUE(c.go_on([&] { return c.has_goaway(); }));
    EXPECT_EQ(c.say_and_hear(s, text_frame("late") + close_frame(1001)), "end");
    EXPECT_EQ(ended.get_future().get(), 1001u);
}

TEST_P(http2_websocket_on, a_reset_stops_what_the_handler_waits_for) {
    std::promise<void> began, stopped;
    http::router r = echo_routes();
    r.get("/waits", [&](request& q) {
        return http::accept_websocket(q, [&](websocket& socket) -> task<> {
            const at_end told{stopped};
            EXPECT_TRUE(co_await socket.receive());
            began.set_value();
            io::timer never(socket.loop());
            co_await never.wait_for(1h);
        });
    });
    running_server server(over_http2(GetParam()), std::move(r));
    h2_client c(server.port());
    const std::int32_t s = c.open("/waits");
    c.say(s, text_frame("a"));
    began.get_future().get();
    c.reset(s);
    EXPECT_EQ(stopped.get_future().wait_for(10s), std::future_status::ready);
    EXPECT_EQ(c.get("/plain").body, "plain");
}

TEST_P(http2_websocket_on, an_end_without_a_close_frame_is_the_code_1006) {
    std::promise<unsigned> code;
    http::router r;
    r.get("/", http::websocket_handler([&](websocket& socket) -> task<> {
              std::string all;
              while (const auto message = co_await socket.receive()) all += message->data;
              EXPECT_EQ(all, "last");
              code.set_value(socket.close_code());
              co_await socket.send("heard");  // the client may still listen
          }));
    running_server server(over_http2(GetParam()), std::move(r));
    h2_client c(server.port());
    const std::int32_t s = c.open();
    c.say(s, text_frame("last"));
    c.end(s);
    EXPECT_EQ(code.get_future().get(), 1006u);
    EXPECT_EQ(c.next(s), "1:heard");
    EXPECT_EQ(c.next(s), "8:" + close_payload(1000));
    EXPECT_EQ(c.next(s), "end");
}

TEST_P(http2_websocket_on, a_hard_stop_stops_the_handler) {
    std::promise<void> began, stopped;
    http::router r;
    r.get("/", http::websocket_handler([&](websocket& socket) -> task<> {
              const at_end told{stopped};
              began.set_value();
              io::timer never(socket.loop());
              co_await never.wait_for(1h);
          }));
    running_server server(over_http2(GetParam()), std::move(r));
    h2_client c(server.port());
    (void)c.open();
    c.flush();
    began.get_future().get();
    server->drain(0s);
    EXPECT_EQ(stopped.get_future().wait_for(10s), std::future_status::ready);
}

TEST_P(http2_websocket_on, a_server_that_ends_closes_its_sockets) {
    std::unique_ptr<h2_client> left;
    std::promise<void> stopped;
    {
        http::router r;
        r.get("/", http::websocket_handler([&](websocket& socket) -> task<> {
                  const at_end told{stopped};
                  co_await echo(socket);
              }));
        running_server server(over_http2(GetParam()), std::move(r));
        left = std::make_unique<h2_client>(server.port());
        const std::int32_t s = left->open();
        EXPECT_EQ(left->say_and_hear(s, text_frame("a")), "1:a");
        server->drain(0s);
    }
    EXPECT_EQ(stopped.get_future().wait_for(0s), std::future_status::ready);
}

TEST_P(http2_websocket_on, a_client_that_does_not_read_makes_senders_wait) {
    http::websocket_options options;
    options.unsent_bytes_max = 4096;
    atomic<int> sent{0};
    constexpr int count = 60;
    http::router r = echo_routes();
    r.get("/sends", http::websocket_handler(
                        [&](websocket& socket) -> task<> {
                            for (int i = 0; i != count; ++i) {
                                const std::string text = std::to_string(i) + std::string(4000, ' ');
                                if (co_await socket.send(text)) co_return;
                                sent.fetch_add(1, relaxed);
                            }
                        },
                        options));
    running_server server(over_http2(GetParam()), std::move(r));
    h2_client c(server.port(), false);
    const std::int32_t s = c.open("/sends");
    c.go_on([&] { return c.at(s).body.size() == 65'535; });
    EXPECT_EQ(c.finish(c.ask("HEAD", "/plain")).status, 200);  // another stream is served meanwhile
    EXPECT_LE(sent.load(relaxed), 30);                         // the window, and what is under way
    for (std::size_t got = 65'535; !c.at(s).ended && !c.at(s).closed;) {
        c.open_window(s, got);
        const std::size_t before = c.at(s).body.size();
        c.go_on([&] { return c.at(s).body.size() != before || c.at(s).ended; });
        got = c.at(s).body.size() - before;
        if (c.at(s).body.ends_with(close_payload(1000))) c.say(s, close_frame(1000));
    }
    for (int i = 0; i != count; ++i) {
        const std::string wanted = "1:" + std::to_string(i) + " ";
        ASSERT_EQ(c.next(s).substr(0, wanted.size()), wanted);
    }
    EXPECT_EQ(c.next(s), "8:" + close_payload(1000));
}

// The window of the stream closes, and what the server keeps is within it.
TEST_P(http2_websocket_on, a_handler_that_does_not_read_makes_its_client_wait) {
    std::promise<void> began;
    std::promise<void> may_read;
    auto reads = may_read.get_future().share();
    constexpr std::size_t size = 400'000;
    http::router r = echo_routes();
    r.get("/sleeps", http::websocket_handler([&](websocket& socket) -> task<> {
              began.set_value();
              io::timer pause(socket.loop());
              while (reads.wait_for(0s) != std::future_status::ready) co_await pause.wait_for(1ms);
              std::size_t n = 0;
              while (const auto message = co_await socket.receive()) n += message->data.size();
              EXPECT_EQ(n, size);
          }));
    http::server_options o = over_http2(GetParam(), {.stream_window_bytes = 50'000});
    o.buffered_bytes_max = 400'000;
    running_server server(std::move(o), std::move(r));
    h2_client c(server.port());
    const std::int32_t s = c.open("/sleeps");
    c.flush();
    began.get_future().get();
    EXPECT_EQ(c.get("/plain").body, "plain");  // the client knows the size of the window
    std::string all;
    for (std::size_t i = 0; i != size / 1000; ++i) all += text_frame(std::string(1000, 'm'));
    c.say(s, all);
    EXPECT_EQ(c.get("/plain").body, "plain");
    EXPECT_GT(c.unsent(s), size / 2);
    may_read.set_value();
    c.go_on([&] { return c.unsent(s) == 0; });
    EXPECT_EQ(c.say_and_hear(s, close_frame(1000)), "8:" + close_payload(1000));
    EXPECT_EQ(c.next(s), "end");
    EXPECT_EQ(c.at(s).error, std::uint32_t{NGHTTP2_NO_ERROR});
}

TEST_P(http2_websocket_on, a_handler_that_fails_closes_with_1011) {
    http::router r;
    r.get("/", http::websocket_handler([](websocket&) -> task<> {
              throw std::runtime_error("no");
              co_return;
          }));
    http::server_options o = over_http2(GetParam());
    atomic<int> reported{0};
    o.on_exception = [&](std::exception_ptr) { reported.fetch_add(1, relaxed); };
    running_server server(std::move(o), std::move(r));
    h2_client c(server.port());
    const std::int32_t s = c.open();
    EXPECT_EQ(c.next(s), "8:" + close_payload(1011));
    EXPECT_EQ(c.say_and_hear(s, close_frame(1011)), "end");
    EXPECT_EQ(reported.load(relaxed), 1);
}

TEST_P(http2_websocket_on, messages_travel_compressed) {
    http::websocket_options options;
    options.deflate = true;
    options.deflate_bytes_min = 10;
    running_server server(over_http2(GetParam()), echo_routes(options));
    h2_client c(server.port());
    const std::int32_t s = c.open("/", {{"sec-websocket-extensions", "permessage-deflate"}});
    const std::string back = c.say_and_hear(s, text_frame(std::string(1000, 'x')));
    EXPECT_TRUE(c.at(s).fields["sec-websocket-extensions"].starts_with("permessage-deflate"));
    EXPECT_TRUE(back.starts_with("1*:")) << back.substr(0, 10);
    EXPECT_LT(back.size(), 50u);
    http::internal::message_deflater deflater(15, true, 6);
    std::string bomb;
    deflater.deflate(std::string(8'000'000, 'b'), bomb);
    EXPECT_EQ(c.say_and_hear(s, frame_of({0xc1, bomb})).substr(0, 4), "8:" + close_payload(1009));
}

}  // namespace
}  // namespace coppice::test
