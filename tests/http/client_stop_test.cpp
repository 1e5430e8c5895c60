// What http::client stops: requests whose awaiter stops them, and those whose time is up.
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/when_any.hpp>
#include <coppice/http/client.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/io/timer.hpp>

#include "asking.hpp"
#include "client_safety.hpp"
#include "running_server.hpp"
#include "scripted_server.hpp"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
using http::request;
using http::response;

http::router waiting_routes() {
    http::router r;
    const auto forever = [](request& q) -> task<response> {
        co_await http::pause(q, 1h);
        co_return response(204);
    };
    const auto endless = [](request&) {
        return response().body(http::stream([](http::body_writer& out) -> task<> {
            for (;;) co_await out.write("0123456789");
        }));
    };
    r.get("/forever", forever)
        .post("/forever", http::read_body(forever))
        .get("/endless", endless)
        .get("/plain", [](request&) { return response::text("plain"); });
    return r;
}

// Requests that end only if they are stopped: while they wait, send, receive, or a sink runs.
task<http::client_response> endless_request(io::context& loop, http::client& client,
                                            io::endpoint to, int phase) {
    http::client_request r;
    r.to = to;
    r.target = phase < 2 ? "/forever" : "/endless";
    if (phase == 1) {
        r.method = "POST";
        r.source = http::stream([](http::body_writer& out) -> task<> {
            for (;;) co_await out.write("0123456789");
        });
    }
    if (phase == 2) r.sink = [](std::string_view) -> task<> { co_return; };
    if (phase == 3) {
        r.sink = [&loop](std::string_view) -> task<> {
            io::timer timer(loop);
            co_await timer.wait_for(1h);
        };
    }
    co_return co_await client.send(std::move(r));
}

TEST_P(client_safety, a_success_whose_body_is_not_taken_in_time_is_an_error) {
    io::endpoint where;
    const int listener = listen_anywhere(where);
    network net(GetParam());
    std::thread server([&] {
        const int fd = ::accept(listener, nullptr, nullptr);
        (void)read_request(fd);
        const std::string_view answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        (void)::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
        char end;
        pollfd over{fd, POLLRDHUP, 0};  // reads nothing until the client has gone
        while (::poll(&over, 1, -1) < 0) {
        }
        (void)::recv(fd, &end, 0, 0);
        ::close(fd);
    });
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client_options o;
        o.body = 50ms;
        http::client client(loop, o);
        http::client_request r;
        r.to = to;
        r.method = "POST";
        r.source = http::stream([](http::body_writer& out) -> task<> {
            for (;;) co_await out.write("0123456789");
        });
        const std::error_code error = co_await error_of(client, r);
        EXPECT_EQ(error, std::errc::timed_out);
        EXPECT_EQ(client.idle_connections(), 0u);
    }(net.loop, where));
    server.join();
    ::close(listener);
}

// Otherwise the server's handler would continue: a client that only ends its sending side may be
// waiting.
TEST_P(client_safety, a_stopped_request_also_stops_the_servers_handler_and_is_not_retried) {
    running_server server(options_of(every_way[0]), waiting_routes());
    network net(GetParam());
    std::uint64_t stopped = 0;
    for (const bool kept : {false, true}) {
        for (int how = 0; how != 3; ++how) {
            net.run([](io::context& loop, io::endpoint to, bool first, int h) -> task<> {
                http::client client(loop);
                if (first) (void)co_await client.get(to, "/plain");
                io::timer timer(loop);
                inplace_stop_source source;
                const auto ask = [&](inplace_stop_token token) {
                    return execution::then(client.get(to, "/forever", token),
                                           [](auto&&) noexcept {});
                };
                try {
                    if (h == 0) {
                        co_await execution::timeout(ask({}), 20ms);
                    } else if (h == 1) {
                        co_await execution::when_any(timer.wait_for(20ms), ask({}));
                    } else {
                        const auto request_stop = [&]() noexcept { source.request_stop(); };
                        co_await execution::when_all(
                            execution::then(timer.wait_for(20ms), request_stop),
                            execution::upon_stopped(ask(source.get_token()), []() noexcept {}));
                    }
                } catch (...) {
                    EXPECT_EQ(h, 0);
                }
                EXPECT_EQ(client.connections_made(), 1u) << first << h;
                EXPECT_EQ(client.idle_connections(), 0u) << first << h;
            }(net.loop, server->local(), kept, how));
            // The test's timeout bounds this wait. A request whose handler has not begun is not
            // counted.
            ++stopped;
            while (server->statistics().open != 0) std::this_thread::yield();
        }
    }
    EXPECT_GE(server->statistics().stopped, 1u);
    EXPECT_LE(server->statistics().stopped, stopped);
}

TEST_P(client_safety, the_awaiter_of_a_request_can_stop_it_in_every_phase) {
    running_server server(options_of(every_way[0]), waiting_routes());
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop);
        for (int phase = 0; phase != 4; ++phase) {
            std::error_code error;
            try {
                (void)co_await execution::timeout(endless_request(loop, client, to, phase), 5ms);
            } catch (const std::error_code& thrown) {
                error = thrown;
            } catch (const std::system_error& thrown) {
                error = thrown.code();
            }
            EXPECT_EQ(error, std::errc::timed_out) << phase;
            io::timer timer(loop);
            // The timer wins, and the request ends with it.
            co_await execution::when_any(
                timer.wait_for(5ms),
                execution::then(endless_request(loop, client, to, phase), [](auto&&) noexcept {}));
            EXPECT_EQ(client.idle_connections(), 0u);
            const http::client_response after = co_await client.get(to, "/plain");
            EXPECT_EQ(after.body(), "plain");
            client.close_idle();
        }
    }(net.loop, server->local()));
}

}  // namespace
