// http/client.hpp against coppice's server and against scripted servers.
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/http/client.hpp>
#include <coppice/http/client_message.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/stop/shared.hpp>

#include "asking.hpp"
#include "running_server.hpp"
#include "scripted_server.hpp"

#include <gtest/gtest.h>

#include <future>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
using http::request;
using http::response;

class client_on : public testing::TestWithParam<io::backend> {
protected:
    http::router routes() {
        http::router r;
        r.get("/plain", [](request&) { return response::text("plain").add("X-A", "b"); })
            .get("/close", [](request&) { return response::text("bye").close(); })
            .get("/empty", [](request&) { return response(204); })
            .get("/pause",
                 [this](request& q) -> task<response> {
                     entered.fetch_add(1, release);
                     co_await http::pause(q, 1h);
                     co_return response::text("never");
                 })
            .get("/stream",
                 [](request&) {
                     const auto produce = [](http::body_writer& out) -> task<> {
                         for (int i = 0; i != 10'000; ++i) co_await out.write("0123456789");
                         out.trailer("X-End", "yes");
                     };
                     return response(200).body(http::stream(produce));
                 })
            .post("/echo", [](request& q) { return response::text(std::string(q.body())); });
        return r;
    }
    static http::server_options options() { return options_of(every_way[0]); }
    atomic<int> entered{0};
};
INSTANTIATE_TEST_SUITE_P(rings, client_on, testing::Values(io::backend::epoll, io::backend::uring),
                         name_of_ring);

TEST_P(client_on, sends_many_requests_over_one_connection) {
    running_server server(options(), routes());
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop);
        for (int i = 0; i != 10; ++i) {
            const http::client_response plain = co_await client.get(to, "/plain");
            EXPECT_EQ(plain.status(), 200);
            EXPECT_EQ(plain.body(), "plain");
            EXPECT_EQ(plain.find("x-a"), "b");
            const http::client_response echo = co_await client.post(to, "/echo", "hello");
            EXPECT_EQ(echo.body(), "hello");
            const http::client_response empty = co_await client.get(to, "/empty");
            EXPECT_EQ(empty.status(), 204);
            http::client_request head;
            head.to = to;
            head.method = "HEAD";
            head.target = "/plain";
            const http::client_response answer = co_await client.send(head);
            EXPECT_EQ(answer.find("Content-Length"), "5");
            EXPECT_EQ(answer.body(), "");
        }
        EXPECT_EQ(client.connections_made(), 1u);
        EXPECT_EQ(client.idle_connections(), 1u);
        const http::client_response last = co_await client.get(to, "/close");
        EXPECT_EQ(last.body(), "bye");
        EXPECT_EQ(client.idle_connections(), 0u);
    }(net.loop, server->local()));
}

TEST_P(client_on, bodies_are_streamed_both_ways) {
    running_server server(options(), routes());
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop);
        const http::client_response whole = co_await client.get(to, "/stream");
        EXPECT_EQ(whole.body().size(), 100'000u);
        EXPECT_EQ(whole.trailer("X-End"), "yes");
        http::client_request down;
        down.to = to;
        down.target = "/stream";
        std::size_t received = 0;
        down.sink = [&received](std::string_view piece) -> task<> {
            received += piece.size();
            co_return;
        };
        const http::client_response streamed = co_await client.send(down);
        EXPECT_EQ(received, 100'000u);
        EXPECT_EQ(streamed.body(), "");
        for (const std::optional<std::uint64_t> length :
             {std::optional<std::uint64_t>(50'000), std::optional<std::uint64_t>()}) {
            http::client_request up;
            up.to = to;
            up.method = "POST";
            up.target = "/echo";
            const auto produce = [](http::body_writer& out) -> task<> {
                for (int i = 0; i != 5'000; ++i) co_await out.write("0123456789");
            };
            up.source = http::stream(produce, length);
            const http::client_response echoed = co_await client.send(up);
            EXPECT_EQ(echoed.body().size(), 50'000u);
        }
        EXPECT_EQ(client.connections_made(), 1u);
    }(net.loop, server->local()));
}

template <class Token>
task<> is_stopped(http::client& client, io::endpoint to, Token token) {
    const std::optional<http::client_response> answer =
        co_await execution::stopped_as_optional(client.get(to, "/pause", token));
    EXPECT_FALSE(answer.has_value());
}

TEST_P(client_on, a_stop_from_any_thread_ends_a_request_that_waits) {
    running_server server(options(), routes());
    network net(GetParam());
    for (int i = 0; i != 20; ++i) {
        inplace_stop_source inplace;
        stop_source shared;
        std::thread other([&] {
            while (entered.load(acquire) < 2 * i + 2) std::this_thread::yield();
            shared.request_stop();
        });
        std::thread first([&] {
            while (entered.load(acquire) < 2 * i + 1) std::this_thread::yield();
            inplace.request_stop();
        });
        http::client client(net.loop);
        net.run(is_stopped(client, server->local(), inplace.get_token()));
        net.run(is_stopped(client, server->local(), shared.get_token()));
        // A request that was stopped before it began makes no connection.
        const std::size_t made = client.connections_made();
        net.run(is_stopped(client, server->local(), shared.get_token()));
        EXPECT_EQ(client.connections_made(), made);
        EXPECT_EQ(client.idle_connections(), 0u);
        other.join();
        first.join();
    }
    // Their handlers were stopped too, because the clients went away and not because their time was
    // up.
    while (server->statistics().open != 0) std::this_thread::yield();
    EXPECT_EQ(server->statistics().stopped, 40u);
    EXPECT_EQ(server->statistics().timed_out, 0u);
}

TEST_P(client_on, an_answer_that_does_not_arrive_in_time_is_an_error) {
    running_server server(options(), routes());
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client_options o;
        o.answer = 300ms;  // enough for the second answer on a loaded machine
        http::client client(loop, o);
        EXPECT_EQ(co_await error_of(client, asks(to, "/pause")), std::errc::timed_out);
        const http::client_response plain = co_await client.get(to, "/plain");
        EXPECT_EQ(plain.body(), "plain");
    }(net.loop, server->local()));
}

TEST_P(client_on, a_kept_connection_that_was_closed_is_replaced) {
    network net(GetParam());
    http::client client(net.loop);
    auto first = std::make_unique<running_server>(options(), routes());
    const io::endpoint where = (*first)->local();
    const auto get = [](http::client& c, io::endpoint to) -> task<> {
        const http::client_response plain = co_await c.get(to, "/plain");
        EXPECT_EQ(plain.body(), "plain");
    };
    net.run(get(client, where));
    first.reset();
    http::server_options o = options();
    o.endpoint = where;
    running_server second(std::move(o), routes());
    net.run(get(client, where));
    EXPECT_EQ(client.connections_made(), 2u);
    // Idle connections end on their loop.
    net.run([](http::client& c) -> task<> {
        c.close_idle();
        EXPECT_EQ(c.idle_connections(), 0u);
        co_return;
    }(client));
}

TEST_P(client_on, rfc9112_6_3_answers_that_can_be_read_in_two_ways_are_errors) {
    const std::vector<std::string> wrong = {
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: "
        "chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na",
        "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\na",
        "HTTP/1.1 200 OK\r\nX : a\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\nY: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
    };
    scripted_server server(wrong);
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to, std::size_t count) -> task<> {
        for (std::size_t i = 0; i != count; ++i) {
            http::client client(loop);
            const std::error_code error = co_await error_of(client, asks(to));
            EXPECT_EQ(error, std::errc::bad_message) << i << error.message();
            EXPECT_EQ(client.idle_connections(), 0u);
        }
    }(net.loop, server.where, wrong.size()));
}

TEST_P(client_on, rfc9112_8_an_answer_that_ends_too_early_is_an_error) {
    const std::vector<std::string> early = {
        "", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"};
    scripted_server server(early);
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to, std::size_t count) -> task<> {
        for (std::size_t i = 0; i != count; ++i) {
            http::client client(loop);
            EXPECT_EQ(co_await error_of(client, asks(to)), std::errc::connection_aborted) << i;
        }
    }(net.loop, server.where, early.size()));
}

TEST_P(client_on, interim_answers_are_skipped_and_the_connections_end_can_end_a_body) {
    scripted_server server(
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
         "HTTP/1.1 200 OK\r\n\r\nuntil the end"});
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop);
        const http::client_response answer = co_await client.get(to, "/");
        EXPECT_EQ(answer.status(), 200);
        EXPECT_EQ(answer.body(), "until the end");
        EXPECT_EQ(answer.find("Link"), std::nullopt);
        EXPECT_EQ(client.idle_connections(), 0u);
    }(net.loop, server.where));
}

}  // namespace
