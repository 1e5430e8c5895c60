// What http::client does over HTTP/2 when a server closes, resets, stops reading, or lets it wait.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/execution.hpp>
#include <coppice/http.hpp>

#include <gtest/gtest.h>

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <optional>
#include <string>
#include <thread>

#include "detached.hpp"
#include "scripted_frames.hpp"

namespace coppice::test {

using namespace internal;
using namespace std::chrono_literals;
namespace ex = execution;

namespace {

class http2_client_loses : public testing::TestWithParam<io::backend> {};
INSTANTIATE_TEST_SUITE_P(rings, http2_client_loses,
                         testing::Values(io::backend::epoll, io::backend::uring), name_of_ring);

void wait_for(const atomic<bool>& value) {
    while (!value.load(acquire)) std::this_thread::yield();
}
task<> set(atomic<bool>& value) {
    value.store(true, release);
    co_return;
}
// Steps over turns of the loop, and returns.
task<> after_turns(io::context& loop, int turns) {
    for (int i = 0; i != turns; ++i) co_await loop.get_scheduler().schedule();
}

// A server that permits no stream for a time, while the client has none.
TEST_P(http2_client_loses, no_time_while_a_server_permits_no_stream) {
    atomic<bool> waits{false};
    server_of peer([&](accepted& a) {
        if (!receive_asked(a, 1)) return;
        (void)a.send(settings(streams_setting(0)) + hello(1));
        wait_for(waits);
        (void)a.send(frame(NGHTTP2_PING, 0, 0, "12345678"));
        while (a.received.find("12345678") == a.received.npos && a.receive()) {
        }
        (void)a.send(settings(streams_setting(1)));
        for (std::uint32_t stream = 3; receive_asked(a, stream); stream += 2) {
            (void)a.send(hello(stream));
        }
    });
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to, atomic<bool>& waiting) -> task<> {
        http::client_options o = by_prior_knowledge();
        o.total = 20s;  // instead of forever
        http::client client(loop, o);
        EXPECT_EQ((co_await client.get(to, "/")).body(), "hello");
        const auto ask = [&]() -> task<> {
            EXPECT_EQ((co_await client.get(to, "/")).body(), "hello");
        };
        co_await ex::when_all(ask(), ask(), set(waiting));
        EXPECT_EQ(client.connections_made(), 1u);
    }(net.loop, peer.where, waits));
}

// The loop ends by itself when nothing waits any longer.
TEST_P(http2_client_loses, nothing_when_a_request_stops_waiting_for_a_stream) {
    server_of peer([&](accepted& a) {
        if (!receive_asked(a, 1)) return;
        (void)a.send(settings(streams_setting(0)) + hello(1));
        a.receive_all();
    });
    io::context loop(GetParam());
    http::client client(loop, by_prior_knowledge());
    std::string got;
    const auto talk = [&]() -> task<> {
        got = (co_await client.get(peer.where, "/")).body();
        const auto ask = [&]() -> task<> { (void)co_await client.get(peer.where, "/"); };
        co_await ex::when_any(ask(), after_turns(loop, 10));
    };
    [](io::context& on, task<> t) -> detached {
        co_await on.get_scheduler().schedule();
        co_await std::move(t);
    }(loop, talk());
    loop.run();
    EXPECT_EQ(got, "hello");
    EXPECT_EQ(client.idle_connections(), 1u);
    client.close_idle();
}

// Asks with a method on a connection on which one request was answered. Returns the error.
std::error_code second_error(io::backend ring, const server_of& peer, std::string_view method) {
    network net(ring);
    std::error_code error;
    net.run([](io::context& loop, io::endpoint to, std::string_view verb,
               std::error_code& got) -> task<> {
        http::client client(loop, by_prior_knowledge());
        EXPECT_EQ((co_await client.get(to, "/")).body(), "hello");
        got = co_await error_of(client, asks(to, "/", verb));
    }(net.loop, peer.where, method, error));
    return error;
}

TEST_P(http2_client_loses, rfc9110_9_2_2_a_kept_connection_that_was_closed_and_asks_once_more) {
    for (const std::string_view method : {"GET", "POST"}) {
        int turn = 0;
        server_of peer(
            [&](accepted& a) {
                if (!receive_asked(a, 1)) return;
                (void)a.send(settings() + hello(1));
                if (turn++ == 0) {
                    (void)receive_asked(a, 3);
                } else {
                    a.receive_all();
                }
            },
            method == "GET" ? 2 : 1);
        const std::error_code error = second_error(GetParam(), peer, method);
        EXPECT_EQ(error, method == "GET" ? std::error_code()
                                         : std::make_error_code(std::errc::connection_aborted));
    }
}

// The server has it, and may have acted on it.
TEST_P(http2_client_loses, rfc9113_8_7_a_stream_that_was_reset_and_does_not_ask_again) {
    for (const std::uint32_t code : {NGHTTP2_INTERNAL_ERROR, NGHTTP2_CANCEL, NGHTTP2_NO_ERROR}) {
        server_of peer([&](accepted& a) {
            if (!receive_asked(a, 1)) return;
            (void)a.send(settings() + hello(1));
            if (!receive_asked(a, 3)) return;
            (void)a.send(reset_frame(3, code));
            EXPECT_FALSE(receive_asked(a, 5));
        });
        EXPECT_EQ(second_error(GetParam(), peer, "GET"), std::errc::connection_aborted) << code;
    }
}

TEST_P(http2_client_loses, rfc9110_9_2_2_a_new_connection_and_does_not_ask_again) {
    for (const bool says_something : {false, true}) {
        server_of peer([&](accepted& a) {
            if (!receive_asked(a, 3)) return;
            if (says_something) (void)a.send(settings());
        });
        network net(GetParam());
        net.run([](io::context& loop, io::endpoint to) -> task<> {
            http::client client(loop, by_prior_knowledge());
            const auto ask = [&]() -> task<> {
                EXPECT_EQ(co_await error_of(client, asks(to)), std::errc::connection_aborted);
            };
            co_await ex::when_all(ask(), ask());
            EXPECT_EQ(client.connections_made(), 1u);
        }(net.loop, peer.where));
    }
}

// What was not yet sent is asked on another connection, whatever its method.
TEST_P(http2_client_loses, a_connection_at_once_and_at_most_what_it_has_sent) {
    int turn = 0;
    server_of peer(
        [&](accepted& a) {
            if (turn++ == 0) return;
            for (std::uint32_t stream = 1; receive_asked(a, stream); stream += 2) {
                (void)a.send((stream == 1 ? settings() : "") + hello(stream));
            }
        },
        2);
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop, by_prior_knowledge());
        const auto ask = [&]() -> task<> {
            const std::error_code error = co_await error_of(client, asks(to, "/", "POST"));
            EXPECT_TRUE(!error || error == std::errc::connection_aborted) << error.message();
        };
        co_await ex::when_all(ask(), ask(), ask());
        EXPECT_EQ((co_await client.get(to, "/")).body(), "hello");
        EXPECT_EQ(client.connections_made(), 2u);
    }(net.loop, peer.where));
}

// It stops reading, so that what the client has to say cannot leave.
TEST_P(http2_client_loses, a_server_that_floods_and_does_not_read) {
    server_of peer([](accepted& a) {
        if (!receive_asked(a, 1)) return;
        const std::string window = number(0x7fff0000);
        std::string flood =
            settings(std::string("\0\4", 2) + window) + frame(NGHTTP2_WINDOW_UPDATE, 0, 0, window);
        (void)a.send(flood);
        // More than the first window: from now on the client sends as much as the sockets hold, and
        // only then reads.
        while (a.received.size() < 80'000 && a.receive()) {
        }
        flood.clear();
        for (int i = 0; i != 1000; ++i) flood += frame(0xff, 0, 0, "");
        while (a.send(flood)) {
        }
    });
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop, by_prior_knowledge());
        const std::string large(30'000'000, 'x');
        http::client_request r = asks(to, "/", "POST");
        r.body = large;
        EXPECT_EQ(co_await error_of(client, r), std::errc::bad_message);
    }(net.loop, peer.where));
}

// The rest of the answer has come when the client finds that it cannot send.
TEST_P(http2_client_loses, no_answer_that_has_come_when_a_send_fails) {
    const std::string body(40'000, 'b');
    atomic<bool> may_end{false}, has_ended{false};
    server_of peer([&](accepted& a) {
        if (!receive_asked(a, 1)) return;
        (void)a.send(settings() + head_of(1, 0));
        wait_for(may_end);
        std::string rest;
        for (std::size_t at = 0; at != body.size(); at += 10'000) {
            rest += frame(NGHTTP2_DATA, at + 10'000 == body.size() ? end_stream : 0, 1,
                          body.substr(at, 10'000));
        }
        (void)a.send(rest);
        // The client has all of it, so that the reset takes nothing away.
        for (int unread = 1; ::ioctl(a.fd, SIOCOUTQ, &unread) == 0 && unread != 0;) {
            std::this_thread::yield();
        }
        const linger now{1, 0};
        ::setsockopt(a.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        ::close(std::exchange(a.fd, -1));
        has_ended.store(true, release);
    });
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to, const std::string& whole, atomic<bool>& end,
               const atomic<bool>& ended) -> task<> {
        http::client client(loop, by_prior_knowledge());
        http::client_answer answer = co_await client.open(asks(to));
        const auto ask = [&]() -> task<> {
            EXPECT_EQ(co_await error_of(client, asks(to, "/", "POST")),
                      std::errc::connection_aborted);
        };
        const auto block = [&]() -> task<> {
            end.store(true, release);
            wait_for(ended);  // the loop does nothing meanwhile
            co_return;
        };
        co_await ex::when_all(ask(), block());
        std::string got;
        for (;;) {
            const std::string_view piece = co_await answer.read();
            if (piece.empty()) break;
            got += piece;
        }
        EXPECT_TRUE(got == whole);
    }(net.loop, peer.where, body, may_end, has_ended));
}

}  // namespace

}  // namespace coppice::test
