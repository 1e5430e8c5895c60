// http::client over HTTP/2, by prior knowledge: as over HTTP/1.1, with many requests on one
// connection.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/execution.hpp>
#include <coppice/http.hpp>
#include <coppice/http2.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/task/for_each_bounded.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../http/asking.hpp"
#include "../http/running_server.hpp"
#include "../http/scripted_server.hpp"
#include "client.hpp"
#include "detached.hpp"

namespace coppice::test {

using namespace internal;
namespace ex = execution;

namespace {

http::client_options speaks_http2(http2::client_limits limits = {}) {
    http::client_options o;
    o.http2 = http2::for_client(limits);
    o.http2_in_the_clear = true;
    return o;
}

struct seen {
    atomic<int> written{0};  // pieces that a producer has written
    atomic<int> waiting{0};  // handlers that wait
    atomic<int> stopped{0};  // those that were stopped
    atomic<bool> go{false};
};

http::router routes_of(seen& m) {
    http::router r;
    r.get("/", [](http::request& q) {
        const auto color = q.find("x-color").value_or("none");
        return http::response::text("hello " + std::string(color)).add("X-Seen", "yes");
    });
    r.get("/big", [](http::request&) { return http::response::text(std::string(1'000'000, 'b')); });
    r.get("/empty", [](http::request&) { return http::response(204); });
    r.get("/moved", [](http::request&) { return http::response(302).add("Location", "/"); });
    r.get("/lines", [](http::request&) {
        return http::response(200).body(http::stream([](http::body_writer& out) -> task<> {
            for (int i = 0; i != 1'000; ++i) co_await out.write("line\n");
        }));
    });
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
    // Sends the trailer of the request back as one of the answer.
    r.post("/sum", http::read_body([](http::request& q) -> task<http::response> {
               while (!(co_await q.incoming().read()).empty()) {
               }
               const std::string sum(q.trailer("x-sum").value_or("none"));
               const auto produce = [sum](http::body_writer& out) -> task<> {
                   for (int i = 0; i != 1'000; ++i) co_await out.write("line\n");
                   out.trailer("X-Sum", sum);
               };
               co_return http::response(200).body(http::stream(produce));
           }));
    r.post("/deaf", http::read_body([&m](http::request& q) -> task<http::response> {
               while (!m.go.load(acquire)) {
                   co_await io::timer(q.loop()).wait_for(std::chrono::milliseconds(1));
               }
               co_return http::response(403);
           }));
    r.get("/endless", [&m](http::request&) {
        return http::response(200).body(http::stream([&m](http::body_writer& out) -> task<> {
            const scope_exit ended([&m] { m.stopped.fetch_add(1, relaxed); });
            const std::string piece(16 * 1024, 's');
            for (;;) {
                co_await out.write(piece);
                m.written.fetch_add(1, relaxed);
            }
        }));
    });
    r.get("/waits", [&m](http::request& q) -> task<http::response> {
        const scope_exit ended([&m] { m.stopped.fetch_add(1, relaxed); });
        m.waiting.fetch_add(1, relaxed);
        co_await io::timer(q.loop()).wait_for(std::chrono::hours(1));
        co_return http::response(200);
    });
    return r;
}

http::server_options serves_http2(io::backend kind, http2::server_limits limits = {}) {
    http::server_options o = options_of({kind, http::model::single, 1});
    o.http2 = http2::for_server(limits);
    return o;
}

// Waits on the loop until the value is at least `least`.
task<> until(io::context& loop, const atomic<int>& value, int least) {
    while (value.load(relaxed) < least) {
        co_await io::timer(loop).wait_for(std::chrono::milliseconds(1));
    }
}

class http2_client_on : public testing::TestWithParam<io::backend> {};
INSTANTIATE_TEST_SUITE_P(rings, http2_client_on,
                         testing::Values(io::backend::epoll, io::backend::uring), name_of_ring);

class pieces final : public http::body_source {
public:
    explicit pieces(std::size_t n, std::optional<std::uint64_t> length = {}) noexcept
        : n_(n), length_(length) {}
    std::optional<std::uint64_t> length() const noexcept override { return length_; }
    task<> write_to(http::body_writer& out) override {
        const std::string piece(1000, 'p');
        for (; given != n_; ++given) co_await out.write(piece);
        if (!length_) out.trailer("x-sum", "42");
    }
    std::size_t given = 0;

private:
    const std::size_t n_;
    const std::optional<std::uint64_t> length_;
};

TEST_P(http2_client_on, requests_and_answers_are_as_over_http1) {
    seen m;
    running_server server(serves_http2(GetParam()), routes_of(m));
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop, speaks_http2());
        http::client_request colored = asks(to);
        colored.fields = "X-Color: red\r\nTE: gzip\r\n";
        const http::client_response first = co_await client.send(colored);
        EXPECT_EQ(first.status(), 200);
        EXPECT_EQ(first.body(), "hello red");
        EXPECT_EQ(first.find("x-seen"), "yes");
        EXPECT_EQ((co_await client.get(to, "/big")).body(), std::string(1'000'000, 'b'));
        const http::client_response lines = co_await client.get(to, "/lines");
        EXPECT_EQ(lines.body().size(), 5'000u);
        EXPECT_FALSE(lines.find("transfer-encoding"));
        EXPECT_EQ((co_await client.get(to, "/empty")).status(), 204);
        EXPECT_EQ((co_await client.get(to, "/none")).status(), 404);
        EXPECT_EQ((co_await client.send(asks(to, "/big", "HEAD"))).find("content-length"),
                  "1000000");
        EXPECT_EQ((co_await client.post(to, "/echo", "short")).body(), "short");
        const std::string large(100'000, 'l');
        EXPECT_EQ((co_await client.post(to, "/echo", large)).body(), large);
        http::client_request streamed = asks(to, "/count", "POST");
        streamed.source = std::make_shared<pieces>(900);
        EXPECT_EQ((co_await client.send(streamed)).body(), "900000 42");
        streamed.source = std::make_shared<pieces>(900, 900'000);
        EXPECT_EQ((co_await client.send(streamed)).body(), "900000 none");
        http::client_request summed = asks(to, "/sum", "POST");
        summed.source = std::make_shared<pieces>(90);
        const http::client_response both = co_await client.send(summed);
        EXPECT_EQ(both.body().size(), 5'000u);
        EXPECT_EQ(both.trailer("x-sum"), "42");
        EXPECT_EQ(both.find("x-sum"), std::nullopt);
        http::client_request moved = asks("http://" + to.to_string() + "/moved");
        moved.redirects_max = 1;
        EXPECT_EQ((co_await client.send(moved)).body(), "hello none");
        EXPECT_EQ(client.connections_made(), 1u);
        EXPECT_EQ(client.idle_connections(), 1u);
    }(net.loop, server->local()));
}

// Over HTTP/1.1, a proxy may understand such a target.
TEST_P(http2_client_on, a_target_that_is_no_url_of_http_is_an_invalid_argument) {
    seen m;
    running_server server(serves_http2(GetParam()), routes_of(m));
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop, speaks_http2());
        for (const char* target : {"ftp://a/", "http://", "urn:x"}) {
            EXPECT_EQ(co_await error_of(client, asks(to, target)), std::errc::invalid_argument)
                << target;
        }
        EXPECT_EQ((co_await client.get(to, "/")).body(), "hello none");
        EXPECT_EQ(client.connections_made(), 1u);
    }(net.loop, server->local()));
}

TEST_P(http2_client_on, a_hundred_requests_share_one_connection) {
    seen m;
    running_server server(serves_http2(GetParam(), {.streams_max = 7}), routes_of(m));
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop, speaks_http2());
        std::vector<int> numbers(100);
        std::size_t bytes = 0;
        co_await for_each_bounded(numbers, 100, [&](int) -> task<> {
            bytes += (co_await client.get(to, "/lines")).body().size();
        });
        EXPECT_EQ(bytes, 100u * 5'000u);
        EXPECT_EQ(client.connections_made(), 1u);
    }(net.loop, server->local()));
    EXPECT_EQ(server->statistics().requests, 100u);
}

TEST_P(http2_client_on, a_stop_resets_one_stream_and_leaves_the_others) {
    seen m;
    running_server server(serves_http2(GetParam()), routes_of(m));
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to, seen& marks) -> task<> {
        http::client client(loop, speaks_http2());
        http::client_answer other = co_await client.open(asks(to, "/lines"));
        const auto later = [&]() -> task<> { co_await until(loop, marks.waiting, 1); };
        const auto waits = [&]() -> task<> { (void)co_await client.get(to, "/waits"); };
        co_await ex::when_any(waits(), later());
        co_await until(loop, marks.stopped, 1);
        std::size_t bytes = 0;
        for (;;) {
            const std::string_view piece = co_await other.read();
            if (piece.empty()) break;
            bytes += piece.size();
        }
        EXPECT_EQ(bytes, 5'000u);
        EXPECT_EQ((co_await client.get(to, "/")).status(), 200);
        EXPECT_EQ(client.connections_made(), 1u);
    }(net.loop, server->local(), m));
}

TEST_P(http2_client_on, of_two_requests_the_first_answer_stops_the_other) {
    seen m;
    running_server server(serves_http2(GetParam()), routes_of(m));
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to, seen& marks) -> task<> {
        http::client client(loop, speaks_http2());
        const auto slow = [&]() -> task<> {
            (void)co_await client.get(to, "/waits");
            ADD_FAILURE();
        };
        const auto quick = [&]() -> task<> {
            co_await until(loop, marks.waiting, 1);
            (void)co_await client.get(to, "/");
        };
        co_await ex::when_any(slow(), quick());
        co_await until(loop, marks.stopped, 1);
        EXPECT_EQ(client.connections_made(), 1u);
    }(net.loop, server->local(), m));
}

TEST_P(http2_client_on, a_waiting_request_may_leave_and_the_rest_keep_their_order) {
    seen m;
    running_server server(serves_http2(GetParam(), {.streams_max = 1}), routes_of(m));
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to, seen& marks) -> task<> {
        http::client client(loop, speaks_http2());
        (void)co_await client.get(to, "/");  // the settings have come
        inplace_stop_source first, second;
        std::string order;
        const auto ask = [&](char name, std::string_view path, inplace_stop_token stop) -> task<> {
            http::client_request r = asks(to, path);
            const auto answer =
                co_await (client.send(std::move(r), stop) | ex::stopped_as_optional());
            order.push_back(answer ? name : '-');
        };
        const auto control = [&]() -> task<> {
            co_await until(loop, marks.waiting, 1);
            second.request_stop();
            first.request_stop();
            co_return;
        };
        co_await ex::when_all(ask('a', "/waits", first.get_token()),
                              ask('b', "/", second.get_token()), ask('c', "/", {}),
                              ask('d', "/", {}), control());
        EXPECT_EQ(order, "--cd");
        EXPECT_EQ(client.connections_made(), 1u);
    }(net.loop, server->local(), m));
}

TEST_P(http2_client_on, a_reader_that_does_not_read_holds_up_its_server) {
    seen m;
    running_server server(serves_http2(GetParam()), routes_of(m));
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to, seen& marks) -> task<> {
        http::client client(loop, speaks_http2({.stream_window_bytes = 64 * 1024}));
        std::optional<http::client_answer> slow = co_await client.open(asks(to, "/endless"));
        for (int i = 0; i != 20; ++i) EXPECT_EQ((co_await client.get(to, "/")).status(), 200);
        const int held = marks.written.load(relaxed);
        EXPECT_LE(held, 4 + 2);  // the window, and what the server holds
        std::size_t bytes = 0;
        while (bytes < 1'000'000) bytes += (co_await slow->read()).size();
        slow.reset();
        co_await until(loop, marks.stopped, 1);
        EXPECT_EQ(client.connections_made(), 1u);
    }(net.loop, server->local(), m));
}

TEST_P(http2_client_on, a_server_that_does_not_read_holds_up_the_source) {
    seen m;
    running_server server(serves_http2(GetParam(), {.stream_window_bytes = 64 * 1024}),
                          routes_of(m));
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to, seen& marks) -> task<> {
        http::client client(loop, speaks_http2());
        const auto source = std::make_shared<pieces>(100'000);
        http::client_request r = asks(to, "/deaf", "POST");
        r.source = source;
        const auto control = [&]() -> task<> {
            for (int i = 0; i != 20; ++i) (void)co_await client.get(to, "/");
            EXPECT_LE(source->given, 64u + 5 * 17u);
            marks.go.store(true, release);
        };
        const auto ask = [&]() -> task<> {
            EXPECT_EQ((co_await client.send(r)).status(), 403);  // the rest is not sent
        };
        co_await ex::when_all(ask(), control());
        EXPECT_LT(source->given, 100'000u);
        EXPECT_EQ(client.connections_made(), 1u);
    }(net.loop, server->local(), m));
}

TEST_P(http2_client_on, a_kept_connection_does_not_keep_the_loop_running) {
    seen m;
    running_server server(serves_http2(GetParam()), routes_of(m));
    io::context loop(GetParam());
    http::client client(loop, speaks_http2());
    for (int i = 0; i != 3; ++i) {
        int status = 0;
        [](io::context& on, http::client& c, io::endpoint to, int& got) -> detached {
            co_await on.get_scheduler().schedule();
            got = (co_await c.get(to, "/")).status();
        }(loop, client, server->local(), status);
        loop.run();
        EXPECT_EQ(status, 200);
        EXPECT_EQ(client.idle_connections(), 1u);
    }
    EXPECT_EQ(client.connections_made(), 1u);
    client.close_idle();
    EXPECT_EQ(client.idle_connections(), 0u);
}

}  // namespace

}  // namespace coppice::test
