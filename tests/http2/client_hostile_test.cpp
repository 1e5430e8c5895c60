// http::client over HTTP/2 against servers that cut, break, flood, refuse, and leave.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/execution.hpp>
#include <coppice/http.hpp>
#include <coppice/http2.hpp>
#include <coppice/io/simulation.hpp>

#include <gtest/gtest.h>

#include <poll.h>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "../http/asking.hpp"
#include "../http/served_world.hpp"
#include "allocations.hpp"
#include "scripted_frames.hpp"

namespace coppice::test {

using namespace internal;
namespace ex = execution;

namespace {

class http2_client_withstands : public testing::TestWithParam<io::backend> {
protected:
    std::error_code error_against(std::function<void(accepted&)> serve, int connections = 1,
                                  std::string_view method = "GET") {
        server_of peer(std::move(serve), connections);
        network net(GetParam());
        std::error_code error;
        net.run([](io::context& loop, io::endpoint to, std::string_view verb,
                   std::error_code& got) -> task<> {
            http::client client(loop, by_prior_knowledge());
            got = co_await error_of(client, asks(to, "/", verb));
        }(net.loop, peer.where, method, error));
        return error;
    }
};
INSTANTIATE_TEST_SUITE_P(rings, http2_client_withstands,
                         testing::Values(io::backend::epoll, io::backend::uring), name_of_ring);

TEST_P(http2_client_withstands, an_answer_cut_off_anywhere_is_an_error) {
    const std::string whole = settings() + hello(1);
    for (std::size_t n = 0; n <= whole.size(); ++n) {
        const auto serve = [&](accepted& a) {
            if (receive_asked(a, 1)) (void)a.send(whole.substr(0, n));
            ::shutdown(a.fd, SHUT_WR);
            a.receive_all();
        };
        const std::error_code error = error_against(serve, 1, "POST");
        EXPECT_EQ(error, n == whole.size() ? std::error_code()
                                           : std::make_error_code(std::errc::connection_aborted))
            << n;
    }
}

TEST_P(http2_client_withstands, an_answer_that_comes_byte_by_byte_is_the_same) {
    server_of peer([](accepted& a) {
        if (!receive_asked(a, 1)) return;
        for (const char c : settings() + hello(1)) (void)a.send({&c, 1});
        a.receive_all();
    });
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop, by_prior_knowledge());
        const http::client_response got = co_await client.get(to, "/");
        EXPECT_EQ(got.body(), "hello");
        EXPECT_EQ(got.find("x-a"), "b");
    }(net.loop, peer.where));
}

TEST_P(http2_client_withstands, frames_that_are_wrong_end_the_request) {
    const std::string open = head_of(1, 0);
    const std::string window = frame(NGHTTP2_WINDOW_UPDATE, 0, 0, number(0x7fffffff));
    const std::string wrong[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        hello(1),  // without settings
        settings() + frame(NGHTTP2_DATA, 0, 0, "x"),
        settings() + frame(NGHTTP2_DATA, end_stream, 1, "x"),
        settings() + frame(NGHTTP2_HEADERS, end_headers, 1, "\xff\xff\xff\xff\xff\xff\xff"),
        settings() + frame(NGHTTP2_HEADERS, end_headers, 1, literal("x-a", "b")),
        settings() + frame(NGHTTP2_HEADERS, end_headers, 1, literal(":status", "700")) + goaway(0),
        settings() + frame(NGHTTP2_HEADERS, end_headers, 3, literal(":status", "200")),
        settings() + frame(NGHTTP2_PUSH_PROMISE, end_headers, 1, number(2) + get_block()),
        settings() + frame(NGHTTP2_CONTINUATION, end_headers, 1, literal("x-a", "b")),
        settings() + frame(NGHTTP2_HEADERS, 0, 1, literal(":status", "200")) + goaway(1),
        settings() + head_of(1, 0, literal("content-length", "3") + literal("content-length", "4")),
        settings() + head_of(1, 0, literal("content-length", "3")) +
            frame(NGHTTP2_DATA, end_stream, 1, "four"),
        settings() + head_of(1, 0, literal("content-length", "5")) +
            frame(NGHTTP2_DATA, end_stream, 1, "four"),
        settings() + head_of(1, 0, literal("X-A", "b")),
        settings() + head_of(1, 0, literal("connection", "close")),
        settings() + head_of(1, 0, literal("x-a", "b\r\nx-c: d")),
        settings() + open + head_of(1, 0),
        settings() + open + frame(NGHTTP2_DATA, 0, 1, std::string(16'385, 'x')),
        settings() + window + window,
        settings() + open + frame(NGHTTP2_WINDOW_UPDATE, 0, 1, number(0)),
        frame(NGHTTP2_SETTINGS, 0, 0, "12345"),
        frame(NGHTTP2_SETTINGS, 0, 0, std::string("\0\4", 2) + number(0x80000000)),
        settings() + open + reset_frame(1, NGHTTP2_NO_ERROR),
        settings() + open + reset_frame(1, NGHTTP2_INTERNAL_ERROR),
        settings() + reset_frame(1, NGHTTP2_CANCEL),
        settings() + goaway(0x7fffffff) + goaway(1) + reset_frame(1, NGHTTP2_CANCEL),
    };
    for (const std::string& bytes : wrong) {
        const auto serve = [&](accepted& a) {
            if (receive_asked(a, 1)) (void)a.send(bytes);
            ::shutdown(a.fd, SHUT_WR);
            a.receive_all();
        };
        const std::error_code error = error_against(serve, 1, "PATCH");
        EXPECT_TRUE(error == std::errc::bad_message || error == std::errc::connection_aborted)
            << (&bytes - wrong) << " " << error.message();
    }
}

// The head alone would be a whole answer.
TEST_P(http2_client_withstands, bytes_after_an_answer_without_a_body_are_an_error) {
    const auto head = [](std::string_view status, std::string_view more = {}) {
        return settings() +
               frame(NGHTTP2_HEADERS, end_headers, 1, literal(":status", status).append(more));
    };
    const std::string body = frame(NGHTTP2_DATA, end_stream, 1, "x");
    const std::string end = frame(NGHTTP2_DATA, end_stream, 1, "");
    const std::string none = literal("content-length", "0");
    const std::string five = literal("content-length", "5");
    const std::error_code wrong = std::make_error_code(std::errc::bad_message);
    const struct {
        std::string_view method;
        std::string head;
    } answers[] = {{"GET", head("200", none)},
                   {"GET", head("204")},
                   {"GET", head("304")},
                   {"HEAD", head("200")},
                   {"HEAD", head("200", five)}};
    for (const auto& a : answers) {
        EXPECT_EQ(error_against(sends(a.head + body), 1, a.method), wrong) << &a - answers;
        EXPECT_EQ(error_against(sends(a.head + end), 1, a.method), std::error_code());
        EXPECT_EQ(error_against(sends(a.head + reset_frame(1, NGHTTP2_NO_ERROR)), 1, a.method),
                  std::errc::connection_aborted);
    }
}

TEST_P(http2_client_withstands, a_server_that_wants_http1_is_an_error_of_its_own) {
    const std::string reset = reset_frame(1, NGHTTP2_HTTP_1_1_REQUIRED);
    EXPECT_EQ(error_against(sends(settings() + reset)), std::errc::protocol_not_supported);
    EXPECT_EQ(error_against(sends(settings() + head_of(1, 0) + reset)),
              std::errc::protocol_not_supported);
}

TEST_P(http2_client_withstands, a_flood_of_frames_ends_the_connection) {
    const std::string frames[] = {
        frame(NGHTTP2_PING, 0, 0, "12345678"),
        frame(NGHTTP2_SETTINGS, 0, 0, std::string("\0\4", 2) + number(100)),
        frame(NGHTTP2_WINDOW_UPDATE, 0, 0, number(1)),
        frame(NGHTTP2_PRIORITY, 0, 1, number(0) + "x"),
        frame(0xff, 0, 0, ""),
        frame(0x10, 0, 0, number(1) + "u=1"),
        frame(NGHTTP2_HEADERS, end_headers, 1, literal(":status", "103")),
    };
    const auto flood = [](const std::string& first, const std::string& f, int n) {
        std::string all = settings() + first;
        for (int i = 0; i != n; ++i) all += f;
        return sends(std::move(all));
    };
    for (const std::string& f : frames) {
        EXPECT_EQ(error_against(flood("", f, 3000)), std::errc::bad_message) << (&f - frames);
    }
    const std::string empty = frame(NGHTTP2_DATA, 0, 1, "");
    EXPECT_EQ(error_against(flood(head_of(1, 0), empty, 3000)), std::errc::bad_message);
    const std::string begun = frame(NGHTTP2_HEADERS, 0, 1, literal(":status", "200"));
    const std::string more = frame(NGHTTP2_CONTINUATION, 0, 1, literal("x-a", "b"));
    EXPECT_EQ(error_against(flood(begun, more, 30)), std::errc::bad_message);
}

TEST_P(http2_client_withstands, a_head_beyond_the_limits_is_refused) {
    for (const int fields : {300, 1500}) {
        std::string block = literal(":status", "200");
        for (int i = 0; i != fields; ++i) block += literal("x-a", std::string(100, 'x'));
        std::string bytes = settings();
        int type = NGHTTP2_HEADERS;
        while (!block.empty()) {
            const std::string part = block.substr(0, 16'000);
            block.erase(0, part.size());
            bytes += frame(type, block.empty() ? end_headers : 0, 1, part);
            type = NGHTTP2_CONTINUATION;
        }
        EXPECT_EQ(error_against(sends(bytes)), std::errc::message_size) << fields;
    }
}

TEST_P(http2_client_withstands, a_refused_request_is_sent_once_more) {
    std::error_code error = error_against(
        [](accepted& a) {
            if (!receive_asked(a, 1)) return;
            (void)a.send(settings() + reset_frame(1, NGHTTP2_REFUSED_STREAM));
            if (!receive_asked(a, 3)) return;
            (void)a.send(hello(3));
            a.receive_all();
        },
        1, "POST");
    EXPECT_EQ(error, std::error_code());
    error = error_against(
        [](accepted& a) {
            if (!receive_asked(a, 1)) return;
            (void)a.send(settings() + reset_frame(1, NGHTTP2_REFUSED_STREAM));
            if (receive_asked(a, 3)) (void)a.send(reset_frame(3, NGHTTP2_REFUSED_STREAM));
            EXPECT_FALSE(receive_asked(a, 5));
        },
        1, "POST");
    EXPECT_EQ(error, std::errc::connection_aborted);
}

TEST_P(http2_client_withstands, a_server_that_leaves_and_serves_on_another_connection) {
    int turn = 0;
    server_of peer(
        [&](accepted& a) {
            if (!receive_asked(a, 1)) return;
            // It leaves without the first request, then after the one that it has begun.
            const std::string first = turn == 0 ? goaway(0) : goaway(1) + hello(1);
            (void)a.send(settings() + (turn++ == 2 ? hello(1) : first));
            a.receive_all();
        },
        3);
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop, by_prior_knowledge());
        EXPECT_EQ((co_await client.post(to, "/", "x")).body(), "hello");
        EXPECT_EQ(client.connections_made(), 2u);
        EXPECT_EQ((co_await client.post(to, "/", "x")).body(), "hello");
        EXPECT_EQ(client.connections_made(), 3u);
    }(net.loop, peer.where));
}

TEST_P(http2_client_withstands, a_failed_allocation_ends_at_most_one_request) {
    if (!fail_allocation(0)) GTEST_SKIP() << "operator new is the sanitizer's";
    io::endpoint where;
    const int listener = listen_anywhere(where);
    for (std::size_t n = 1;; ++n) {
        ASSERT_LT(n, 300u);
        network net(GetParam());
        atomic<bool> over{false};
        std::string got;
        execution::counting_scope scope;
        const auto ask = [](io::context& loop, io::endpoint to, std::string& received,
                            atomic<bool>& end) -> task<> {
            try {
                http::client client(loop, by_prior_knowledge());
                received = (co_await client.get(to, "/")).body();
            } catch (const std::bad_alloc&) {
            } catch (const std::system_error&) {
            }
            end.store(true, release);
        };
        auto work = ex::starts_on(net.loop.get_scheduler(), ask(net.loop, where, got, over)) |
                    ex::upon_error([](auto&&) noexcept {});
        ex::spawn(std::move(work), scope.get_token());
        fail_allocation(n);
        pollfd ready{listener, POLLIN, 0};
        while (!over.load(acquire) && ::poll(&ready, 1, 1) == 0) {
        }
        if (ready.revents != 0) {
            accepted a{::accept(listener, nullptr, nullptr)};
            if (receive_asked(a, 1)) (void)a.send(settings() + hello(1));
            a.receive_all();
            ::close(a.fd);
        }
        this_thread::sync_wait(scope.join());
        const bool failed = allocation_has_failed();
        EXPECT_TRUE(got.empty() || got == "hello") << n;
        if (failed) continue;
        EXPECT_EQ(got, "hello");
        break;
    }
    ::close(listener);
}

// Steps over turns of the loop, and returns.
task<> after_turns(io::context& loop, int turns) {
    for (int i = 0; i != turns; ++i) co_await loop.get_scheduler().schedule();
}

TEST(http2_client_in_a_simulation, a_stop_at_any_turn_leaves_the_client_usable) {
    for (std::uint64_t seed = 1; seed != 40; ++seed) {
        io::simulation world(seed);
        http::server_options o;
        o.http2 = http2::for_server({.streams_max = 2});
        http::router r;
        r.get("/", [](http::request&) { return http::response::text(std::string(40'000, 'x')); });
        r.post("/", [](http::request& q) { return http::response::text(std::string(q.body())); });
        const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
            http::client c(loop, by_prior_knowledge());
            const std::string large(30'000, 'y');
            const auto get = [&]() -> task<> {
                EXPECT_EQ((co_await c.get(to, "/")).body().size(), 40'000u) << seed;
            };
            const auto post = [&]() -> task<> {
                EXPECT_EQ((co_await c.post(to, "/", large)).body(), large) << seed;
            };
            const int turns = static_cast<int>(seed);
            const auto stopped_get = [&]() -> task<> {
                co_await ex::when_any(get(), after_turns(loop, turns));
            };
            const auto stopped_post = [&]() -> task<> {
                co_await ex::when_any(post(), after_turns(loop, turns));
            };
            for (int i = 0; i != 3; ++i) {
                co_await ex::when_all(stopped_get(), get(), stopped_post(), post());
            }
        };
        (void)serve_in(world, std::move(o), std::move(r), client);
    }
}

}  // namespace

}  // namespace coppice::test
