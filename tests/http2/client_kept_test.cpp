// What http::client does with a kept connection of HTTP/2: it answers, and learns of the end.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/execution.hpp>
#include <coppice/http.hpp>
#include <coppice/io/timer.hpp>

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "detached.hpp"
#include "scripted_frames.hpp"

namespace coppice::test {

using namespace internal;
using namespace std::chrono_literals;
namespace ex = execution;

namespace {

class http2_client_keeps : public testing::TestWithParam<io::backend> {};
INSTANTIATE_TEST_SUITE_P(rings, http2_client_keeps,
                         testing::Values(io::backend::epoll, io::backend::uring), name_of_ring);

// Answers the first request of a connection. Returns false if the client has left.
bool answer_one(accepted& a) {
    return receive_asked(a, 1) && a.send(settings() + hello(1));
}
// Receives until the client has sent these bytes. Returns false if it has left.
bool receive_until(accepted& a, std::string_view bytes) {
    while (a.received.find(bytes) == a.received.npos) {
        if (!a.receive()) return false;
    }
    return true;
}

// Waits on the loop until a condition holds.
template <class Condition>
task<> until(io::context& loop, Condition holds) {
    while (!holds()) co_await loop.get_scheduler().schedule_after(1ms);
}
task<> until_set(io::context& loop, const atomic<bool>& value) {
    return until(loop, [&value] { return value.load(acquire); });
}

TEST_P(http2_client_keeps, a_connection_and_answers_a_ping_on_it) {
    atomic<bool> kept{false}, answered{false};
    server_of peer([&](accepted& a) {
        if (!answer_one(a)) return;
        while (!kept.load(acquire)) std::this_thread::yield();
        (void)a.send(frame(NGHTTP2_PING, 0, 0, "12345678"));
        answered.store(receive_until(a, frame(NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, "12345678")),
                       release);
        if (receive_asked(a, 3)) (void)a.send(hello(3));
        a.receive_all();
    });
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to, atomic<bool>& is_kept,
               const atomic<bool>& is_answered) -> task<> {
        http::client client(loop, by_prior_knowledge());
        EXPECT_EQ((co_await client.get(to, "/")).body(), "hello");
        is_kept.store(true, release);
        co_await until_set(loop, is_answered);
        EXPECT_EQ((co_await client.post(to, "/", "x")).body(), "hello");
        EXPECT_EQ(client.connections_made(), 1u);
    }(net.loop, peer.where, kept, answered));
}

// POST is not sent again, so it succeeds only if the client knows of the end before.
TEST_P(http2_client_keeps, no_connection_that_its_server_ends) {
    const std::string broken = frame(NGHTTP2_DATA, 0, 0, "x");
    for (const std::string& last : {std::string(), goaway(1), broken}) {
        atomic<bool> kept{false};
        int turn = 0;
        server_of peer(
            [&](accepted& a) {
                if (!answer_one(a)) return;
                if (turn++ == 0) {
                    while (!kept.load(acquire)) std::this_thread::yield();
                    (void)(last.empty() ? ::shutdown(a.fd, SHUT_WR) == 0 : a.send(last));
                }
                a.receive_all();
            },
            2);
        network net(GetParam());
        net.run([](io::context& loop, io::endpoint to, atomic<bool>& is_kept) -> task<> {
            http::client client(loop, by_prior_knowledge());
            EXPECT_EQ((co_await client.get(to, "/")).body(), "hello");
            co_await until(loop, [&] { return client.idle_connections() == 1; });
            is_kept.store(true, release);
            co_await until(loop, [&] { return client.idle_connections() == 0; });
            EXPECT_EQ((co_await client.post(to, "/", "x")).body(), "hello");
            EXPECT_EQ(client.connections_made(), 2u);
        }(net.loop, peer.where, kept));
    }
}

// The loop runs something else meanwhile, and has not polled when the request begins.
TEST_P(http2_client_keeps, no_connection_whose_end_the_loop_has_not_yet_brought) {
    atomic<bool> kept{false}, ended{false};
    int turn = 0;
    server_of peer(
        [&](accepted& a) {
            if (!answer_one(a)) return;
            if (turn++ == 0) {
                while (!kept.load(acquire)) std::this_thread::yield();
                ::shutdown(a.fd, SHUT_WR);
                ended.store(true, release);
            }
            a.receive_all();
        },
        2);
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to, atomic<bool>& is_kept,
               const atomic<bool>& is_over) -> task<> {
        http::client client(loop, by_prior_knowledge());
        EXPECT_EQ((co_await client.get(to, "/")).body(), "hello");
        co_await until(loop, [&] { return client.idle_connections() == 1; });
        is_kept.store(true, release);
        while (!is_over.load(acquire)) std::this_thread::yield();
        EXPECT_EQ((co_await client.post(to, "/", "x")).body(), "hello");
        EXPECT_EQ(client.connections_made(), 2u);
    }(net.loop, peer.where, kept, ended));
}

TEST_P(http2_client_keeps, no_connection_that_its_server_floods) {
    std::uint32_t code = 0;
    std::optional<server_of> peer(std::in_place, [&](accepted& a) {
        if (!answer_one(a)) return;
        std::string pings;
        for (int i = 0; i != 100; ++i) pings += frame(NGHTTP2_PING, 0, 0, "12345678");
        (void)a.send(pings);
        a.receive_all();
        code = code_in(a.received.substr(NGHTTP2_CLIENT_MAGIC_LEN));
    });
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client_options o = by_prior_knowledge();
        o.http2 = http2::for_client({.idle_frames_max = 16});
        http::client client(loop, o);
        EXPECT_EQ((co_await client.get(to, "/")).body(), "hello");
        co_await until(loop, [&] { return client.idle_connections() == 0; });
    }(net.loop, peer->where));
    peer.reset();
    EXPECT_EQ(code, static_cast<std::uint32_t>(NGHTTP2_ENHANCE_YOUR_CALM));
}

detached get_in(io::context& loop, http::client& client, io::endpoint to, std::string& body) {
    co_await loop.get_scheduler().schedule();
    body = (co_await client.get(to, "/")).body();
}
detached wait_in(io::context& loop) {
    io::timer timer(loop);
    std::error_code ended;
    co_await timer.wait_for(1h, use_await[ended]);
}

TEST_P(http2_client_keeps, a_connection_that_ends_with_the_client_or_with_what_the_loop_cancels) {
    for (const bool cancels : {false, true}) {
        server_of peer([](accepted& a) {
            if (answer_one(a)) a.receive_all();
        });
        io::context loop(GetParam());
        std::optional<http::client> client(std::in_place, loop, by_prior_knowledge());
        std::string got;
        get_in(loop, *client, peer.where, got);
        loop.run();
        EXPECT_EQ(got, "hello");
        EXPECT_EQ(client->idle_connections(), 1u);
        if (cancels) {
            wait_in(loop);
            EXPECT_FALSE(loop.drain(0s));
            EXPECT_EQ(client->idle_connections(), 0u);
        }
        client.reset();
    }
}

}  // namespace

}  // namespace coppice::test
