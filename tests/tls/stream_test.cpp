// tls/stream.hpp over sockets: handshakes, bytes both ways, ends, and peers that do not speak TLS.
#include "streams.hpp"

#include "../io/rings.hpp"

#include <coppice/pool.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

namespace {

using namespace coppice;
using namespace coppice::test;
using namespace std::chrono_literals;

class tls_stream : public testing::TestWithParam<io::backend> {
protected:
    io::context loop{GetParam()};
    usual u;
};
INSTANTIATE_TEST_SUITE_P(rings, tls_stream, all_rings, ring_name);

std::string pattern(std::size_t size, unsigned seed) {
    std::string text(size, '\0');
    for (char& c : text) c = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
    return text;
}

TEST_P(tls_stream, passes_bytes_both_ways_after_the_handshake) {
    u.server.protocols = u.client.protocols = {"h2"};
    joined_streams both(loop, u);
    ASSERT_TRUE(run_on(loop, both.shake()));
    EXPECT_EQ(both.client.agreed().protocol(), "h2");
    EXPECT_EQ(both.server.agreed().host(), "server.example");
    EXPECT_TRUE(run_on(loop, [](joined_streams& s) -> task<> {
        for (int i = 0; i != 10; ++i) {
            co_await send_text(s.client, "question");
            EXPECT_EQ(co_await receive_some(s.server), "question");
            co_await send_text(s.server, "answer");
            EXPECT_EQ(co_await receive_some(s.client), "answer");
        }
    }(both)));
}

TEST_P(tls_stream, passes_much_both_ways_at_the_same_time) {
    joined_streams both(loop, u);
    ASSERT_TRUE(run_on(loop, both.shake()));
    const std::string there = pattern(1'000'000, 1);
    const std::string back = pattern(700'001, 2);
    const auto send = [](tls::stream<>& to, std::string_view text) -> task<> {
        co_await send_text(to, text);
        co_await to.shutdown_send();
    };
    EXPECT_TRUE(run_on(
        loop, ex::when_all(send(both.client, there), send(both.server, back),
                           receive_to_end(both.server) | ex::then([&](std::string got) noexcept {
                               EXPECT_TRUE(got == there);
                           }),
                           receive_to_end(both.client) | ex::then([&](std::string got) noexcept {
                               EXPECT_TRUE(got == back);
                           }))));
}

TEST_P(tls_stream, ends_one_way_and_goes_on_the_other_way) {
    joined_streams both(loop, u);
    ASSERT_TRUE(run_on(loop, both.shake()));
    EXPECT_TRUE(run_on(loop, [](joined_streams& s) -> task<> {
        co_await s.client.shutdown_send();
        EXPECT_EQ(co_await receive_some(s.server), "");
        EXPECT_EQ(co_await receive_some(s.server), "");  // still
        co_await send_text(s.server, "more");
        EXPECT_EQ(co_await receive_some(s.client), "more");
        std::error_code ec;
        co_await s.client.send(bytes_in("x"), use_await[ec]);
        EXPECT_EQ(ec, std::errc::broken_pipe);
        co_await ex::when_all(s.server.shutdown(), s.client.shutdown());
    }(both)));
}

TEST_P(tls_stream, shutdown_drops_what_the_peer_has_sent_before_its_end) {
    joined_streams both(loop, u);
    ASSERT_TRUE(run_on(loop, both.shake()));
    const auto serve = [](tls::stream<>& server) -> task<> {
        co_await send_text(server, std::string(50'000, 'x'));
        co_await server.shutdown();
    };
    EXPECT_TRUE(run_on(loop, ex::when_all(serve(both.server), both.client.shutdown())));
}

TEST_P(tls_stream, an_end_without_close_notify_is_an_error) {
    joined_streams both(loop, u);
    ASSERT_TRUE(run_on(loop, both.shake()));
    EXPECT_TRUE(run_on(loop, [](joined_streams& s) -> task<> {
        co_await send_text(s.client, "a part");
        s.client.next().shutdown_send();
        EXPECT_EQ(co_await receive_some(s.server), "a part");
        std::array<std::byte, 10> bytes;
        for (int i = 0; i != 2; ++i) {
            std::error_code ec;
            co_await s.server.receive(bytes, use_await[ec]);
            EXPECT_EQ(ec, tls::errc::truncated);
        }
    }(both)));
}

TEST_P(tls_stream, an_end_without_close_notify_leaves_sending_as_it_is) {
    for (const bool client_ends : {false, true}) {
        joined_streams both(loop, u);
        ASSERT_TRUE(run_on(loop, both.shake()));
        tls::stream<>& ends = client_ends ? both.client : both.server;
        tls::stream<>& other = client_ends ? both.server : both.client;
        EXPECT_TRUE(run_on(loop, [](tls::stream<>& cut, tls::stream<>& sends) -> task<> {
            cut.next().shutdown_send();
            std::array<std::byte, 10> bytes;
            std::error_code ec;
            co_await sends.receive(bytes, use_await[ec]);
            EXPECT_EQ(ec, tls::errc::truncated);
            const std::string text(40'000, 'x');
            std::string received;
            co_await ex::when_all(
                send_text(sends, text),
                [](tls::stream<>& from, std::string& to, std::size_t all) -> task<> {
                    while (to.size() != all) to += co_await receive_some(from);
                }(cut, received, text.size()));
            EXPECT_EQ(received, text);
            co_await sends.shutdown(use_await[ec]);  // says its end, and hears of none
            EXPECT_EQ(ec, tls::errc::truncated);
            EXPECT_EQ(co_await receive_to_end(cut), "");
        }(ends, other)));
    }
}

TEST_P(tls_stream, nothing_is_sent_or_received_before_the_handshake) {
    joined_streams both(loop, u);
    EXPECT_TRUE(run_on(loop, [](joined_streams& s) -> task<> {
        std::array<std::byte, 10> bytes;
        std::error_code ec;
        co_await s.client.send(bytes_in("x"), use_await[ec]);
        EXPECT_EQ(ec, tls::errc::handshake_required);
        co_await s.client.receive(bytes, use_await[ec]);
        EXPECT_EQ(ec, tls::errc::handshake_required);
        co_await s.client.shutdown(use_await[ec]);
        EXPECT_EQ(ec, tls::errc::handshake_required);
        co_await s.shake();  // and this is still possible
    }(both)));
}

TEST_P(tls_stream, a_refused_certificate_is_an_error_of_both_sides) {
    joined_streams both(loop, u, "other.example");
    EXPECT_TRUE(run_on(loop, [](joined_streams& s) -> task<> {
        std::error_code client, server;
        co_await ex::when_all(s.client.handshake(use_await[client]),
                              s.server.handshake(use_await[server]));
        EXPECT_EQ(client, tls::errc::wrong_host);
        EXPECT_EQ(server.message(), "sslv3 alert bad certificate");
        co_await s.client.send(bytes_in("x"), use_await[client]);
        EXPECT_EQ(client, tls::errc::wrong_host);
    }(both)));
}

TEST_P(tls_stream, a_closed_stream_ends_its_operations_as_canceled) {
    joined_streams both(loop, u);
    std::error_code shaking, receiving, sending;
    both.client.handshake([&](std::error_code ec) { shaking = ec; });
    both.client.close();
    loop.run();
    loop.restart();
    EXPECT_EQ(shaking, std::errc::operation_canceled);

    joined_streams other(loop, u);
    ASSERT_TRUE(run_on(loop, other.shake()));
    std::array<std::byte, 10> bytes;
    const std::string much(20'000'000, 'x');
    other.server.receive(bytes, [&](std::error_code ec, std::size_t) { receiving = ec; });
    other.server.send_all(bytes_in(much), [&](std::error_code ec) { sending = ec; });
    {
        const tls::stream<> gone = std::move(other.server);
    }  // as a destructor does
    loop.run();
    loop.restart();
    EXPECT_EQ(receiving, std::errc::operation_canceled);
    EXPECT_EQ(sending, std::errc::operation_canceled);
    std::error_code ec;
    both.client.receive(bytes, [&](std::error_code e, std::size_t) { ec = e; });
    loop.run();
    loop.restart();
    EXPECT_EQ(ec, std::errc::bad_file_descriptor);
}

// What a server answers to bytes that are no handshake.
std::error_code answer_to(io::context& loop, const usual& u, std::string_view bytes) {
    joined_sockets sockets(loop);
    tls::stream<> server(std::move(sockets.far), tls::server_context(u.server));
    std::error_code ec;
    const auto send = [](io::tcp::socket& c, std::string_view text) -> task<> {
        std::error_code of_sending;  // the server may close before it has read everything
        co_await c.send_all(bytes_in(text), use_await[of_sending]);
        c.shutdown_send();
    };
    const auto serve = [](tls::stream<>& s, std::error_code& error) -> task<> {
        co_await s.handshake(use_await[error]);
        s.close();
    };
    run_on(loop, ex::when_all(send(sockets.near, bytes), serve(server, ec)));
    return ec;
}

TEST_P(tls_stream, a_peer_that_does_not_speak_tls_is_refused_with_a_reason) {
    EXPECT_EQ(answer_to(loop, u, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"), tls::errc::not_encrypted);
    EXPECT_EQ(answer_to(loop, u, ""), tls::errc::truncated);
    EXPECT_EQ(answer_to(loop, u, "\x16\x03\x01"), tls::errc::truncated);
    EXPECT_EQ(answer_to(loop, u, pattern(100, 7)).message(), "wrong version number");
    EXPECT_TRUE(answer_to(loop, u, std::string("\x16\x03\x01\xff\xff") + std::string(70'000, 'x')));
}

TEST_P(tls_stream, a_client_that_is_slow_or_silent_is_given_up_at_its_limit) {
    joined_sockets sockets(loop);
    tls::stream<> server(std::move(sockets.far), tls::server_context(u.server));
    EXPECT_TRUE(run_on(loop, [](tls::stream<>& s, io::tcp::socket& c) -> task<> {
        co_await c.send_all(bytes_in("\x16\x03\x01"));
        try {
            co_await ex::timeout(s.handshake(), 5ms);
            ADD_FAILURE() << "it has shaken hands with nothing";
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), std::errc::timed_out);
        }
    }(server, sockets.near)));
}

TEST(tls_stream_in_time, a_client_that_sends_a_byte_a_minute_is_given_up_at_its_limit) {
    io::context loop(io::backend::sim);
    const usual u;
    joined_sockets sockets(loop);
    tls::stream<> server(std::move(sockets.far), tls::server_context(u.server));
    int sent = 0;
    const auto drip = [&]() -> task<> {
        for (const char c : std::string_view("\x16\x03\x01\x02\0\1\0\1\xfc\3\3", 11)) {
            co_await loop.get_scheduler().schedule_after(1min);
            co_await sockets.near.send_all(bytes_in(std::string_view(&c, 1)));
            ++sent;
        }
    };
    EXPECT_TRUE(run_on(loop, [](tls::stream<>& s, auto dripping) -> task<> {
        try {
            co_await ex::when_any(ex::timeout(s.handshake(), 5min), dripping());
            ADD_FAILURE() << "it has shaken hands with nothing";
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), std::errc::timed_out);
        }
    }(server, drip)));
    EXPECT_GE(sent, 3);
    EXPECT_LE(sent, 5);
}

TEST_P(tls_stream, shakes_hands_on_a_pool_while_its_loop_goes_on) {
    if (GetParam() == io::backend::sim) GTEST_SKIP() << "a simulation has one thread";
    thread_pool pool({.threads = 2});
    joined_streams both(loop, u);
    EXPECT_TRUE(run_on(loop, [](joined_streams& s, thread_pool& p) -> task<> {
        co_await ex::when_all(s.client.handshake_on(p.get_scheduler()),
                              s.server.handshake_on(p.get_scheduler()));
        co_await ex::when_all(s.client.handshake_on(p.get_scheduler()),  // done already
                              s.server.handshake());
        co_await send_text(s.client, "question");
        EXPECT_EQ(co_await receive_some(s.server), "question");
    }(both, pool)));
}

TEST_P(tls_stream, a_handshake_on_a_pool_is_stopped_and_goes_on) {
    if (GetParam() == io::backend::sim) GTEST_SKIP() << "a simulation has one thread";
    thread_pool pool({.threads = 1});
    for (int i = 0; i != 20; ++i) {
        joined_streams both(loop, u);
        EXPECT_TRUE(run_on(loop, [](joined_streams& s, thread_pool& p, int turns) -> task<> {
            io::context& here = s.client.owner();
            const auto some_turns = [](io::context& l, int n) -> task<> {
                while (n-- > 0) co_await ex::schedule(l.get_scheduler());
            };
            co_await ex::when_any(s.server.handshake_on(p.get_scheduler()),
                                  some_turns(here, turns));
            co_await ex::when_all(s.client.handshake(), s.server.handshake_on(p.get_scheduler()));
            co_await send_text(s.client, "question");
            EXPECT_EQ(co_await receive_some(s.server), "question");
        }(both, pool, i)));
    }
}

TEST_P(tls_stream, a_stream_is_destroyed_while_it_shakes_hands_on_a_pool) {
    if (GetParam() == io::backend::sim) GTEST_SKIP() << "a simulation has one thread";
    thread_pool pool({.threads = 1});
    for (int i = 0; i != 20; ++i) {
        joined_streams both(loop, u);
        int ended = 0;
        std::optional<tls::stream<>> server(std::move(both.server));
        server->handshake_on(pool.get_scheduler(), [&ended](std::error_code error) {
            ++ended;
            if (error) EXPECT_EQ(error, std::errc::operation_canceled);
        });
        both.client.handshake([&ended](std::error_code) { ++ended; });
        (void)loop.run_for(i * 50us);
        server.reset();
        loop.run();
        loop.restart();
        EXPECT_EQ(ended, 2);
    }
}

// A scheduler that takes nothing.
struct ended_scheduler {
    using scheduler_concept = ex::scheduler_tag;
    bool operator==(const ended_scheduler&) const noexcept = default;
    auto schedule() const noexcept { return ex::just_stopped(); }
};

TEST_P(tls_stream, the_loop_shakes_hands_if_the_scheduler_has_ended) {
    joined_streams both(loop, u);
    int good = 0;
    for (tls::stream<>* each : {&both.client, &both.server})
        each->handshake_on(ended_scheduler(), [&good](std::error_code ec) { good += !ec ? 1 : 0; });
    loop.run();
    EXPECT_EQ(good, 2);
}

TEST_P(tls_stream, a_stream_moves_while_its_operations_are_pending) {
    joined_streams both(loop, u);
    ASSERT_TRUE(run_on(loop, both.shake()));
    std::array<std::byte, 10> bytes;
    std::size_t received = 0;
    both.server.receive(bytes, [&](std::error_code, std::size_t n) { received = n; });
    tls::stream<> moved = std::move(both.server);
    EXPECT_TRUE(run_on(loop, send_text(both.client, "moved")));
    EXPECT_EQ(received, 5u);
    EXPECT_FALSE(both.server.is_open());
    EXPECT_TRUE(moved.is_open());
}

}  // namespace
