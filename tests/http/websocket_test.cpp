// WebSockets of http::server, on real sockets, in every model and on every ring.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/http/websocket.hpp>
#include <coppice/io/timer.hpp>

#include "running_server.hpp"
#include "websocket_client.hpp"

#include <gtest/gtest.h>

#include <future>
#include <string>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;
using namespace std::chrono_literals;
using namespace std::string_literals;
using http::request;
using http::response;
using http::websocket;

task<> echo(websocket& socket) {
    while (const auto message = co_await socket.receive()) co_await socket.send(*message);
}

http::router echo_routes(http::websocket_options options = {}) {
    http::router r;
    r.get("/", http::websocket_handler(&echo, std::move(options)));
    r.get("/plain", [](request&) { return response::text("plain"); });
    return r;
}

class websocket_on : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, websocket_on, testing::ValuesIn(every_way), name_of_way);

TEST_P(websocket_on, echoes_messages_of_every_size_and_cut) {
    running_server server(options_of(GetParam()), echo_routes());
    websocket_client c(server.port());
    const std::string answer = c.open();
    EXPECT_TRUE(has_status(answer, 101)) << answer;
    EXPECT_NE(answer.find("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), answer.npos);
    EXPECT_EQ(c.say(text_frame("Hello")), "1:Hello");
    EXPECT_EQ(c.say(frame_of({0x82, "\xff"})), "2:\xff");
    for (const std::size_t size : {0u, 125u, 126u, 65535u, 65536u, 1024u * 1024u}) {
        const std::string text(size, 'x');
        EXPECT_TRUE(c.say(text_frame(text)) == "1:" + text) << size;
    }
    const std::string bytes =
        frame_of({0x01, "frag"}) + frame_of({0x89, "p"}) + frame_of({0x80, "ment"});
    for (const char byte : bytes) EXPECT_TRUE(c.send({&byte, 1}));
    EXPECT_EQ(c.next(), "a:p");
    EXPECT_EQ(c.next(), "1:fragment");
    EXPECT_TRUE(c.send(text_frame("1") + text_frame("2") + text_frame("3")));
    for (const char* n : {"1:1", "1:2", "1:3"}) EXPECT_EQ(c.next(), n);
    EXPECT_EQ(c.say(close_frame(3000, "bye")), "8:" + close_payload(3000));
    EXPECT_EQ(c.next(), "end");
    EXPECT_EQ(server->statistics().exceptions, 0u);
}

TEST_P(websocket_on, bytes_behind_the_request_belong_to_the_socket) {
    running_server server(options_of(GetParam()), echo_routes());
    websocket_client c(server.port());
    ASSERT_TRUE(c.send("GET /plain HTTP/1.1\r\nHost: a\r\n\r\n" + upgrade_request() +
                       text_frame("early") + close_frame(1000)));
    EXPECT_EQ(body_of(c.receive()), "plain");
    EXPECT_TRUE(has_status(c.receive(true), 101));
    EXPECT_EQ(c.next(), "1:early");
    EXPECT_EQ(c.next(), "8:" + close_payload(1000));
    EXPECT_EQ(c.next(), "end");
}

TEST_P(websocket_on, a_handler_on_the_pool_receives_and_sends) {
    if (GetParam().model == http::model::single) GTEST_SKIP() << "there is no pool";
    thread_pool pool(2);
    http::router r;
    r.get("/", http::websocket_handler([&pool](websocket& socket) -> task<> {
              co_await pool.get_scheduler().schedule();
              while (const auto message = co_await socket.receive()) {
                  co_await socket.send(*message);
              }
          }));
    http::server_options o = options_of(GetParam());
    o.pool = &pool;
    running_server server(std::move(o), std::move(r));
    websocket_client c(server.port());
    c.open();
    for (int i = 0; i != 50; ++i) EXPECT_EQ(c.say(text_frame("hop")), "1:hop");
    EXPECT_EQ(c.say(close_frame(1000)), "8:" + close_payload(1000));
}

TEST_P(websocket_on, a_drain_closes_with_1001_and_lets_the_handler_end) {
    std::promise<unsigned> ended;
    http::router r;
    r.get("/", http::websocket_handler([&](websocket& socket) -> task<> {
              while (const auto message = co_await socket.receive()) co_await socket.send(*message);
              ended.set_value(socket.close_code());
          }));
    running_server server(options_of(GetParam()), std::move(r));
    websocket_client c(server.port());
    c.open();
    EXPECT_EQ(c.say(text_frame("a")), "1:a");
    server->drain(10s);
    EXPECT_EQ(c.next(), "8:" + close_payload(1001));
    EXPECT_EQ(c.say(text_frame("late") + close_frame(1001)), "end");
    EXPECT_EQ(ended.get_future().get(), 1001u);
}

TEST_P(websocket_on, a_reset_stops_what_the_handler_waits_for) {
    std::promise<void> began, stopped;
    http::router r;
    r.get("/", [&](request& q) {
        return http::accept_websocket(q, [&](websocket& socket) -> task<> {
            struct at_end {
                std::promise<void>& p;
                ~at_end() { p.set_value(); }
            } const told{stopped};
            EXPECT_TRUE(co_await socket.receive());
            began.set_value();
            io::timer never(socket.loop());
            co_await never.wait_for(1h);
        });
    });
    running_server server(options_of(GetParam()), std::move(r));
    websocket_client c(server.port());
    c.open();
    c.send(text_frame("a"));
    began.get_future().get();
    c.reset();
    EXPECT_EQ(stopped.get_future().wait_for(10s), std::future_status::ready);
}

TEST_P(websocket_on, a_hard_stop_stops_the_handler) {
    std::promise<void> began, stopped;
    http::router r;
    r.get("/", http::websocket_handler([&](websocket& socket) -> task<> {
              struct at_end {
                  std::promise<void>& p;
                  ~at_end() { p.set_value(); }
              } const told{stopped};
              began.set_value();
              io::timer never(socket.loop());
              co_await never.wait_for(1h);
          }));
    running_server server(options_of(GetParam()), std::move(r));
    websocket_client c(server.port());
    c.open();
    began.get_future().get();
    server->drain(0s);
    EXPECT_EQ(stopped.get_future().wait_for(10s), std::future_status::ready);
}

TEST_P(websocket_on, a_slow_reader_makes_senders_wait_and_gets_everything) {
    http::websocket_options options;
    options.unsent_bytes_max = 4096;
    atomic<int> sent{0};
    constexpr int count = 4000;
    http::router r;
    r.get("/", http::websocket_handler(
                   [&](websocket& socket) -> task<> {
                       for (int i = 0; i != count; ++i) {
                           const std::string text = std::to_string(i) + std::string(4000, ' ');
                           if (co_await socket.send(text)) co_return;
                           sent.fetch_add(1, relaxed);
                       }
                   },
                   options));
    running_server server(options_of(GetParam()), std::move(r));
    websocket_client c(server.port());
    c.open();
    EXPECT_EQ(c.next().substr(0, 4), "1:0 ");
    EXPECT_LT(sent.load(relaxed), count);  // they do not fit into the buffers of the kernel
    for (int i = 1; i != count; ++i) {
        const std::string wanted = "1:" + std::to_string(i) + " ";
        ASSERT_EQ(c.next().substr(0, wanted.size()), wanted);
    }
    EXPECT_EQ(c.next(), "8:" + close_payload(1000));
}

class websocket_server : public testing::Test {
protected:
    static http::server_options options() {
        return options_of({io::backend::automatic, http::model::single, 1});
    }
};

TEST_F(websocket_server, a_client_that_breaks_the_protocol_gets_the_code_that_says_so) {
    running_server server(options(), echo_routes());
    struct wrong {
        std::string bytes;
        unsigned code;
    };
    for (const wrong& w : {wrong{frame_of({0x81, "x", false}), 1002},
                           {frame_of({0xc1, "x"}), 1002},
                           {text_frame("\xff"), 1007},
                           {frame_of({0x88, "x"}), 1002},
                           {"\x82\xff\0\0\0\0\0\x10\0\x01"s, 1009}}) {
        websocket_client c(server.port());
        c.open();
        const std::string closed = c.say(w.bytes);
        EXPECT_EQ(closed.substr(0, 4), "8:" + close_payload(w.code));
        EXPECT_EQ(c.next(), "end");
    }
}

TEST_F(websocket_server, an_improper_handshake_is_refused) {
    http::websocket_options o;
    o.origins = {"https://app.example"};
    http::router r = echo_routes(o);
    running_server server(options(), std::move(r));
    const std::string good = upgrade_request();
    const auto with = [&](std::string_view old, std::string_view now) {
        std::string text = good;
        return text.replace(text.find(old), old.size(), now);
    };
    struct trial {
        std::string request;
        int status;
    };
    const trial trials[] = {
        {good, 101},
        {with("Upgrade: websocket\r\n", ""), 426},
        {with("websocket", "h2c"), 426},
        {with("keep-alive, Upgrade", "keep-alive"), 400},
        {with("13\r\n", "8\r\n"), 426},
        {with("HTTP/1.1", "HTTP/1.0"), 426},
        {with("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZQ="), 400},
        {with("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZR=="), 400},
        {upgrade_request("/", "Content-Length: 1\r\n") + "x", 400},
        {upgrade_request("/", "Origin: https://a.example\r\n"), 101},
        {upgrade_request("/", "Origin: https://app.example\r\n"), 101},
        {upgrade_request("/", "Origin: https://evil.example\r\n"), 403},
        {upgrade_request("/", "Origin: null\r\n"), 403},
        {upgrade_request("/", "Sec-WebSocket-Protocol: a b\r\n"), 400},
        {upgrade_request("/", "Sec-WebSocket-Extensions: a;\r\n"), 400},
        {upgrade_request("/", "Sec-WebSocket-Extensions: a; b=\"c d\"\r\n"), 400},
        {upgrade_request("/", "Sec-WebSocket-Extensions: unknown; x=1\r\n"), 101},
    };
    for (const trial& t : trials) {
        client c(server.port());
        c.send(t.request);
        const std::string answer = c.receive(t.status == 101);
        EXPECT_TRUE(has_status(answer, t.status) ||
                    answer.starts_with("HTTP/1.0 " + std::to_string(t.status)))
            << t.request << answer;
        if (t.status == 426) {
            EXPECT_NE(answer.find("Upgrade: websocket\r\n"), answer.npos);
        }
    }
}

TEST_F(websocket_server, the_first_subprotocol_of_the_server_that_is_offered_is_chosen) {
    http::websocket_options o;
    o.protocols = {"v2", "v1"};
    http::router r;
    r.get("/",
          http::websocket_handler(
              [](websocket& socket) -> task<> { co_await socket.send(socket.protocol()); }, o));
    running_server server(options(), std::move(r));
    websocket_client c(server.port());
    const std::string answer = c.open("/", "Sec-WebSocket-Protocol: v1, v3, v2\r\n");
    EXPECT_NE(answer.find("Sec-WebSocket-Protocol: v2\r\n"), answer.npos);
    EXPECT_EQ(c.next(), "1:v2");
    websocket_client other(server.port());
    EXPECT_EQ(other.open("/", "Sec-WebSocket-Protocol: v3\r\n").find("Protocol:"), answer.npos);
    EXPECT_EQ(other.next(), "1:");
}

TEST_F(websocket_server, deflate_is_negotiated_and_messages_travel_compressed) {
    http::websocket_options o;
    o.deflate = true;
    o.deflate_bytes_min = 10;
    o.context_takeover = true;
    running_server server(options(), echo_routes(o));
    struct trial {
        const char* offer;
        const char* chosen;  // "": none
    };
    for (const trial& t : {
             trial{"permessage-deflate", "permessage-deflate"},
             {"permessage-deflate; server_no_context_takeover",
              "permessage-deflate; server_no_context_takeover"},
             {"permessage-deflate; client_no_context_takeover; client_max_window_bits",
              "permessage-deflate; client_no_context_takeover"},
             {"permessage-deflate; server_max_window_bits=\"10\"",
              "permessage-deflate; server_max_window_bits=10"},
             {"permessage-deflate; client_max_window_bits=9",
              "permessage-deflate; client_max_window_bits=9"},
             {"permessage-deflate; server_max_window_bits=8, permessage-deflate",
              "permessage-deflate"},
             {"permessage-deflate; server_max_window_bits=16", ""},
             {"permessage-deflate; server_max_window_bits=010", ""},
             {"permessage-deflate; server_max_window_bits", ""},
             {"permessage-deflate; server_no_context_takeover=1", ""},
             {"permessage-deflate; unknown", ""},
             {"permessage-deflate; client_max_window_bits; client_max_window_bits", ""},
         }) {
        websocket_client c(server.port());
        const std::string answer =
            c.open("/", "Sec-WebSocket-Extensions: " + std::string(t.offer) + "\r\n");
        const std::string field = "Sec-WebSocket-Extensions: " + std::string(t.chosen) + "\r\n";
        EXPECT_EQ(answer.find(field) != answer.npos, *t.chosen != '\0') << answer;
        EXPECT_EQ(c.say(text_frame("short")), "1:short");
        const std::string text(1000, 'x');
        const std::string back = c.say(text_frame(text));
        EXPECT_EQ(back.starts_with("1*:"), *t.chosen != '\0');
        EXPECT_EQ(back.size() < 50, *t.chosen != '\0');
    }
    websocket_client c(server.port());
    c.open("/", "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n");
    http::internal::message_deflater deflater(15, true, 6);
    http::internal::message_inflater inflater(15, false);
    for (int i = 0; i != 3; ++i) {
        std::string packed;
        deflater.deflate("the same text, again and again", packed);
        const std::string back = c.say(frame_of({0xc1, packed}));
        ASSERT_EQ(back.substr(0, 3), "1*:");
        std::string plain;
        (void)inflater.add(std::string_view(back).substr(3), plain, 1000);
        (void)inflater.finish(plain, 1000);
        EXPECT_EQ(plain, "the same text, again and again");
    }
    std::string bomb;
    deflater.deflate(std::string(8'000'000, 'b'), bomb);
    EXPECT_EQ(c.say(frame_of({0xc1, bomb})).substr(0, 4), "8:" + close_payload(1009));
}

TEST_F(websocket_server, a_receive_that_is_stopped_leaves_the_message_to_the_next) {
    http::router r;
    r.get("/", http::websocket_handler([](websocket& socket) -> task<> {
              // Nothing arrives before the client has the first answer.
              bool late = false;
              try {
                  (void)co_await execution::timeout(socket.receive(), 1ms);
              } catch (const std::system_error& e) {
                  late = e.code() == std::errc::timed_out;
              }
              co_await socket.send(late ? "late" : "too early");
              const auto message = co_await socket.receive();
              co_await socket.send(message->data);
          }));
    running_server server(options(), std::move(r));
    websocket_client c(server.port());
    c.open();
    EXPECT_EQ(c.next(), "1:late");
    EXPECT_EQ(c.say(text_frame("kept")), "1:kept");
    EXPECT_EQ(c.next(), "8:" + close_payload(1000));
}

TEST_F(websocket_server, a_send_that_is_stopped_has_sent_nothing) {
    http::websocket_options o;
    o.unsent_bytes_max = 1;
    std::promise<int> sent;
    http::router r;
    r.get("/", http::websocket_handler(
                   [&](websocket& socket) -> task<> {
                       // The client reads nothing until the time of a send is up.
                       const std::string text(100'000, 'x');
                       int count = 0;
                       try {
                           for (;; ++count) co_await execution::timeout(socket.send(text), 10ms);
                       } catch (const std::system_error& e) {
                           EXPECT_EQ(e.code(), std::errc::timed_out);
                       }
                       sent.set_value(count);
                   },
                   o));
    running_server server(options(), std::move(r));
    websocket_client c(server.port());
    c.open();
    const int count = sent.get_future().get();
    for (int i = 0; i != count; ++i) ASSERT_EQ(c.next().size(), 100'002u);
    EXPECT_EQ(c.next(), "8:" + close_payload(1000));
}

TEST_F(websocket_server, sends_after_a_close_fail_and_the_client_may_still_send) {
    http::router r;
    std::promise<std::string> seen;
    r.get("/", http::websocket_handler([&](websocket& socket) -> task<> {
              co_await socket.close(4000, "enough");
              const std::error_code ec = co_await socket.send("late");
              EXPECT_EQ(ec, std::errc::connection_aborted);
              std::string all;
              while (const auto message = co_await socket.receive()) all += message->data;
              seen.set_value(all + std::to_string(socket.close_code()) +
                             std::string(socket.close_reason()));
          }));
    running_server server(options(), std::move(r));
    websocket_client c(server.port());
    c.open();
    EXPECT_EQ(c.next(), "8:" + close_payload(4000, "enough"));
    EXPECT_EQ(c.say(text_frame("last") + close_frame(4000, "yes")), "end");
    EXPECT_EQ(seen.get_future().get(), "last4000yes");
}

TEST_F(websocket_server, an_exception_of_the_handler_closes_with_1011_and_is_reported) {
    http::router r;
    r.get("/", http::websocket_handler([](websocket&) -> task<> {
              throw std::runtime_error("no");
              co_return;
          }));
    http::server_options o = options();
    atomic<int> reported{0};
    o.on_exception = [&](std::exception_ptr) { reported.fetch_add(1, relaxed); };
    running_server server(std::move(o), std::move(r));
    websocket_client c(server.port());
    c.open();
    EXPECT_EQ(c.next(), "8:" + close_payload(1011));
    c.send(close_frame(1011));
    EXPECT_EQ(c.next(), "end");
    EXPECT_EQ(reported.load(relaxed), 1);
}

TEST_F(websocket_server, a_silent_client_is_pinged) {
    http::websocket_options o;
    o.ping_interval = 1ms;
    o.pong_timeout = 1h;
    running_server server(options(), echo_routes(o));
    websocket_client c(server.port());
    c.open();
    EXPECT_EQ(c.next(), "9:");
    EXPECT_EQ(c.say(frame_of({0x8a, ""})), "9:");  // after more silence
}

TEST_F(websocket_server, a_client_that_answers_no_ping_is_ended) {
    http::websocket_options o;
    o.ping_interval = 1ms;
    o.pong_timeout = 1ms;
    std::promise<unsigned> code;
    http::router r;
    r.get("/", http::websocket_handler(
                   [&](websocket& socket) -> task<> {
                       while (co_await socket.receive()) {
                       }
                       code.set_value(socket.close_code());
                   },
                   o));
    running_server server(options(), std::move(r));
    websocket_client c(server.port());
    c.open();
    EXPECT_EQ(code.get_future().get(), 1006u);
    EXPECT_EQ(server->statistics().timed_out, 1u);
}

}  // namespace
