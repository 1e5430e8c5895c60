// server::drain_on(): the first signal drains, the second cuts off.
#include <coppice/http/pause.hpp>
#include <coppice/http/server.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>

#include "detached.hpp"
#include "running_server.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
using http::request;
using http::response;

class drain_on : public testing::TestWithParam<way> {
protected:
    http::router routes() {
        http::router r;
        r.get("/waits", [this](request& q) -> task<response> {
            entered.fetch_add(1, release);
            while (!go_on.load(acquire)) co_await http::pause(q, 1ms);
            co_return response::text("whole");
        });
        return r;
    }
    void wait_for_entry(int count) {
        while (entered.load(acquire) < count) std::this_thread::yield();
    }
    atomic<int> entered{0};
    atomic<bool> go_on{false};
};
INSTANTIATE_TEST_SUITE_P(ways, drain_on, testing::ValuesIn(every_way), name_of_way);

constexpr std::string_view get_waits = "GET /waits HTTP/1.1\r\nHost: a\r\n\r\n";

TEST_P(drain_on, the_first_signal_lets_requests_in_flight_end) {
    http::server server(options_of(GetParam()), routes());
    server.drain_on({SIGUSR1, SIGUSR2});
    std::thread runner([&] { server.run(); });
    client c(server.port());
    ASSERT_TRUE(c.send(get_waits));
    wait_for_entry(1);
    ::kill(::getpid(), SIGUSR2);
    for (;;) {  // until the port no longer accepts
        client other(server.port());
        if (!other.send(get_waits) || other.ended()) break;
    }
    go_on.store(true, release);
    const std::string answer = c.receive();
    EXPECT_EQ(body_of(answer), "whole");
    EXPECT_NE(answer.find("Connection: close"), std::string::npos);
    runner.join();
}

TEST_P(drain_on, the_second_signal_cuts_off) {
    http::server server(options_of(GetParam()), routes());
    std::vector<int> told;
    server.drain_on({SIGUSR1, SIGUSR2}, 1h, [&](int signal, int count) {
        told.push_back(signal);
        // Sent to this thread: under the thread sanitizer, a thread that waits for a futex does not
        // run a handler.
        if (count == 1) ::raise(SIGUSR2);
    });
    std::thread runner([&] { server.run(); });
    client first(server.port()), second(server.port());
    ASSERT_TRUE(first.send(get_waits));
    ASSERT_TRUE(second.send(get_waits));
    wait_for_entry(2);
    ::kill(::getpid(), SIGUSR1);
    EXPECT_TRUE(first.ended());
    EXPECT_TRUE(second.ended());
    runner.join();
    EXPECT_EQ(told, (std::vector<int>{SIGUSR1, SIGUSR2}));
}

TEST_P(drain_on, a_drain_by_other_means_also_ends_the_signal_watch) {
    struct sigaction now{};
    {
        http::server server(options_of(GetParam()), routes());
        server.drain_on({SIGUSR1});
        std::thread runner([&] { server.run(); });
        server.drain();
        runner.join();
        ::sigaction(SIGUSR1, nullptr, &now);
        EXPECT_EQ(now.sa_handler, SIG_DFL);
    }
    http::server never_run(options_of(GetParam()), routes());
    never_run.drain_on({SIGUSR1});
}

// A handler holds the loop while requests come on a kept connection and on a new one.
TEST_P(drain_on, a_request_that_has_come_before_the_drain_is_answered) {
    http::router r = routes();
    r.get("/holds", [this](request&) {
        entered.fetch_add(1, release);
        while (!go_on.load(acquire)) std::this_thread::yield();
        return response::text("held");
    });
    r.get("/plain", [](request&) { return response::text("plain"); });
    http::server_options o = options_of(GetParam());
    o.threads = 1;
    http::server server(std::move(o), std::move(r));
    std::thread runner([&] { server.run(); });
    constexpr std::string_view get_plain = "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n";
    client kept(server.port()), fresh(server.port()), busy(server.port());
    ASSERT_TRUE(kept.send(get_plain));
    EXPECT_EQ(body_of(kept.receive()), "plain");
    while (server.statistics().open < 3) std::this_thread::yield();
    ASSERT_TRUE(busy.send("GET /holds HTTP/1.1\r\nHost: a\r\n\r\n"));
    wait_for_entry(1);
    ASSERT_TRUE(kept.send(get_plain) && fresh.send(get_plain));
    server.drain();
    go_on.store(true, release);
    EXPECT_EQ(body_of(busy.receive()), "held");
    EXPECT_EQ(body_of(kept.receive()), "plain");
    EXPECT_EQ(body_of(fresh.receive()), "plain");
    runner.join();
}

// What the clients of drain_early() have got.
struct drained {
    std::string fresh, used;
    duration silent{};  // until its connection ended, from the drain on
};

task<std::string> receive_all(io::tcp::socket& from) {
    std::string all;
    for (std::error_code ec; !ec;) {
        std::array<char, 512> some;
        const auto n =
            co_await from.receive(std::as_writable_bytes(std::span(some)), use_await[ec]);
        if (n == 0) break;
        all.append(some.data(), n);
    }
    co_return all;
}

// Drains while one connection has had a request and two have had none; one of these sends a request
// half a second later.
test::detached drain_early(io::context& loop, http::server& server, drained& got) {
    constexpr std::string_view get = "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n";
    const io::endpoint to = server.local();
    std::error_code ec;
    io::tcp::socket fresh(loop), used(loop), silent(loop);
    for (io::tcp::socket* const s : {&fresh, &used, &silent}) {
        co_await s->connect(to, use_await[ec]);
    }
    co_await used.send_all(std::as_bytes(std::span(get)), use_await[ec]);
    io::timer pause(loop);
    co_await pause.wait_for(100ms, use_await[ec]);
    const time_point began = loop.now();
    server.drain(10s);
    got.used = co_await receive_all(used);
    co_await pause.wait_for(500ms, use_await[ec]);
    co_await fresh.send_all(std::as_bytes(std::span(get)), use_await[ec]);
    got.fresh = co_await receive_all(fresh);
    (void)co_await receive_all(silent);
    got.silent = loop.now() - began;
}

TEST(a_drain, gives_a_connection_without_a_request_the_time_for_one_if_it_is_told_to) {
    for (const duration time : {duration(0s), duration(2s)}) {
        io::simulation world(5);
        drained got;
        std::optional<http::server> server;
        http::server_options o;
        o.endpoint = io::loopback(0);
        o.model = http::model::single;
        o.simulation = &world;
        o.timeouts.drain_first_request = time;
        o.on_loop = [&](io::context& loop) { drain_early(loop, *server, got); };
        http::router r;
        r.get("/plain", [](request&) { return response::text("plain"); });
        server.emplace(std::move(o), std::move(r));
        server->run();
        const bool waits = time != 0s;
        EXPECT_NE(got.used.find("plain"), std::string::npos);
        EXPECT_EQ(got.used.find("Connection: close"), std::string::npos);
        EXPECT_EQ(got.fresh.find("plain") != std::string::npos, waits) << got.fresh;
        EXPECT_EQ(got.fresh.find("Connection: close") != std::string::npos, waits);
        if (waits) EXPECT_GE(got.silent, time);
        EXPECT_LT(got.silent, time + 1s);
        EXPECT_EQ(server->statistics().open, 0u);
    }
}

}  // namespace
