// http::client while it sends a large or streamed body: answers that come before the body's end.
#include <coppice/exec/just.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/client.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/stop/inplace.hpp>

#include "asking.hpp"
#include "running_server.hpp"
#include "scripted_server.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
using namespace coppice::test;

constexpr std::size_t large = 16 * 1024 * 1024;  // more than the kernel's buffers hold

class client_early_answer : public testing::TestWithParam<io::backend> {};
INSTANTIATE_TEST_SUITE_P(rings, client_early_answer,
                         testing::Values(io::backend::epoll, io::backend::uring), name_of_ring);

enum class body_kind { buffered, declared, chunked, waiting };
constexpr body_kind body_kinds[] = {body_kind::buffered, body_kind::declared, body_kind::chunked,
                                    body_kind::waiting};

struct note_end {
    bool& ended;
    ~note_end() { ended = true; }
};

// A request with a body of `large` bytes; the waiting kind writes a piece and then waits forever.
struct upload {
    upload(body_kind kind, const io::endpoint& to, io::context& loop) {
        request.to = to;
        request.method = "PUT";
        if (kind == body_kind::buffered) {
            text.assign(large, 'x');
            request.body = text;
            source_ended = true;
            return;
        }
        const bool waits = kind == body_kind::waiting;
        const auto produce = [this, waits, &loop](http::body_writer& out) -> task<> {
            const note_end at_end{source_ended};
            const std::string piece(large / 64, 'x');
            co_await out.write(piece);
            co_await out.flush();
            io::timer timer(loop);
            if (waits) co_await timer.wait_for(1h);
            for (int i = 1; i != 64; ++i) co_await out.write(piece);
        };
        const std::optional<std::uint64_t> length =
            kind == body_kind::declared ? std::optional<std::uint64_t>(large) : std::nullopt;
        request.source = http::stream(produce, length);
    }
    http::client_request request;
    std::string text;
    bool source_ended = false;
};

enum class afterwards { closes, reads_nothing, reads };
constexpr afterwards all_afterwards[] = {afterwards::closes, afterwards::reads_nothing,
                                         afterwards::reads};

void serve_early(accepted& a, std::string_view answer, afterwards then) {
    a.receive_head();
    a.send(answer);
    if (then == afterwards::reads_nothing) a.wait_for_end();
    if (then == afterwards::reads) a.receive_all();
}

const std::string too_large =
    "HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\n\r\ntoo large";

TEST_P(client_early_answer, rfc9112_9_5_a_refusal_ends_the_sending_and_is_the_answer) {
    network net(GetParam());
    const std::string answers[] = {
        too_large,
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + too_large,
        "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\n\r\ntoo large",
        "HTTP/1.1 307 Temporary Redirect\r\nTransfer-Encoding: chunked\r\n\r\n"
        "9\r\ntoo large\r\n0\r\n\r\n",
    };
    for (const std::string& answer : answers) {
        for (const afterwards then : all_afterwards) {
            // Without an end of the stream, nothing ends the body of this answer.
            const bool to_its_end = answer.find("close") != answer.npos;
            if (to_its_end && then != afterwards::closes) continue;
            for (const body_kind kind : body_kinds) {
                SCOPED_TRACE(answer);
                SCOPED_TRACE(static_cast<int>(then) * 10 + static_cast<int>(kind));
                const server_of server([&](accepted& a) { serve_early(a, answer, then); });
                net.run(
                    [](io::context& loop, body_kind k, io::endpoint to, bool may_break) -> task<> {
                        http::client client(loop);
                        upload up(k, to, loop);
                        try {
                            const http::client_response got = co_await client.send(up.request);
                            EXPECT_GE(got.status(), 300);
                            EXPECT_EQ(got.body(), "too large");
                        } catch (const std::system_error& e) {
                            // A reset instead of the end of the stream: part of it may not have
                            // arrived.
                            EXPECT_TRUE(may_break) << e.what();
                        }
                        EXPECT_TRUE(up.source_ended);
                        EXPECT_EQ(client.idle_connections(), 0u);
                    }(net.loop, kind, server.where, to_its_end));
            }
        }
    }
}

TEST_P(client_early_answer, a_success_does_not_end_the_sending) {
    network net(GetParam());
    for (const body_kind kind : {body_kind::buffered, body_kind::declared, body_kind::chunked}) {
        SCOPED_TRACE(static_cast<int>(kind));
        std::size_t received = 0;
        {
            const server_of server([&](accepted& a) {
                a.receive_head();
                a.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                a.receive_all();
                received = a.body_bytes();
            });
            net.run([](io::context& loop, body_kind k, io::endpoint to) -> task<> {
                http::client client(loop);
                upload up(k, to, loop);
                const http::client_response got = co_await client.send(up.request);
                EXPECT_EQ(got.status(), 200);
                EXPECT_EQ(got.body(), "ok");
                EXPECT_TRUE(up.source_ended);
                EXPECT_EQ(client.idle_connections(), 1u);
            }(net.loop, kind, server.where));
        }
        EXPECT_GE(received, large);
    }
}

TEST_P(client_early_answer, a_success_of_a_server_that_closes_is_the_answer) {
    network net(GetParam());
    for (const body_kind kind : body_kinds) {
        SCOPED_TRACE(static_cast<int>(kind));
        const server_of server([&](accepted& a) {
            serve_early(a, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
                        afterwards::closes);
        });
        net.run([](io::context& loop, body_kind k, io::endpoint to) -> task<> {
            http::client client(loop);
            upload up(k, to, loop);
            const http::client_response got = co_await client.send(up.request);
            EXPECT_EQ(got.body(), "ok");
            EXPECT_TRUE(up.source_ended);
            EXPECT_EQ(client.idle_connections(), 0u);
        }(net.loop, kind, server.where));
    }
}

TEST_P(client_early_answer, both_directions_flow_at_once) {
    network net(GetParam());
    for (const body_kind kind : {body_kind::buffered, body_kind::declared}) {
        SCOPED_TRACE(static_cast<int>(kind));
        const server_of server([&](accepted& a) {  // echoes, piece by piece
            a.receive_head();
            a.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(large) + "\r\n\r\n");
            a.received.erase(0, a.received.find("\r\n\r\n") + 4);
            for (std::size_t sent = 0; sent != large;) {
                if (a.received.empty() && !a.receive()) return;
                if (!a.send(a.received)) return;
                sent += a.received.size();
                a.received.clear();
            }
        });
        net.run([](io::context& loop, body_kind k, io::endpoint to) -> task<> {
            http::client client(loop);
            upload up(k, to, loop);
            std::size_t received = 0;
            up.request.sink = [&received](std::string_view piece) -> task<> {
                received += piece.size();
                co_return;
            };
            EXPECT_EQ((co_await client.send(up.request)).status(), 200);
            EXPECT_EQ(received, large);
        }(net.loop, kind, server.where));
    }
}

TEST_P(client_early_answer, a_connection_that_breaks_without_an_answer_is_an_error) {
    network net(GetParam());
    const char* const beginnings[] = {"", "HTTP/1.1 413 Content", "HTTP/1.1 100 Continue\r\n\r\n",
                                      "HTTP/1.1 413 A\r\nContent-Length: 9\r\n\r\ntoo"};
    for (const std::string_view answer : beginnings) {
        for (const body_kind kind : body_kinds) {
            SCOPED_TRACE(answer);
            SCOPED_TRACE(static_cast<int>(kind));
            const server_of server(
                [&](accepted& a) { serve_early(a, answer, afterwards::closes); });
            net.run([](io::context& loop, body_kind k, io::endpoint to) -> task<> {
                http::client client(loop);
                upload up(k, to, loop);
                const std::error_code error = co_await error_of(client, up.request);
                EXPECT_TRUE(error);
                EXPECT_TRUE(up.source_ended);
                EXPECT_EQ(client.idle_connections(), 0u);
            }(net.loop, kind, server.where));
        }
    }
}

TEST_P(client_early_answer, a_kept_connection_that_was_closed_is_replaced) {
    network net(GetParam());
    const server_of server(
        [](accepted& a) {
            a.receive_head();
            a.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            // The second connection gets the whole request; the first ends with it.
            if (a.received.starts_with("PUT")) a.receive_all();
        },
        2);
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop);
        EXPECT_EQ((co_await client.get(to, "/")).body(), "ok");
        upload up(body_kind::buffered, to, loop);
        EXPECT_EQ((co_await client.send(up.request)).body(), "ok");
        EXPECT_EQ(client.connections_made(), 2u);
    }(net.loop, server.where));
}

TEST_P(client_early_answer, a_source_that_throws_or_stops_ends_the_request_likewise) {
    network net(GetParam());
    const server_of server([](accepted& a) { a.receive_all(); }, 2);
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop);
        http::client_request up;
        up.to = to;
        up.method = "POST";
        const auto throws = [](http::body_writer& out) -> task<> {
            co_await out.write("a");
            co_await out.flush();
            throw std::runtime_error("no more");
        };
        up.source = http::stream(throws, std::nullopt);
        bool thrown = false;
        try {
            (void)co_await client.send(up);
        } catch (const std::runtime_error& e) {
            thrown = std::string_view(e.what()) == "no more";
        }
        EXPECT_TRUE(thrown);
        const auto stops = [](http::body_writer& out) -> task<> {
            co_await out.write("a");
            co_await out.flush();
            co_await execution::just_stopped();
        };
        up.source = http::stream(stops, std::nullopt);
        EXPECT_FALSE((co_await execution::stopped_as_optional(client.send(up))).has_value());
    }(net.loop, server.where));
}

// The limits of a client with short waits.
http::client_options hasty() {
    http::client_options o;
    o.body = o.answer = 200ms;
    return o;
}

TEST_P(client_early_answer, a_server_that_reads_nothing_ends_the_request_after_the_body_limit) {
    network net(GetParam());
    for (const body_kind kind : body_kinds) {
        SCOPED_TRACE(static_cast<int>(kind));
        const server_of silent([](accepted& a) { a.wait_for_end(); });
        net.run([](io::context& loop, body_kind k, io::endpoint to) -> task<> {
            http::client client(loop, hasty());
            upload up(k, to, loop);
            const std::error_code error = co_await error_of(client, up.request);
            EXPECT_EQ(error, std::errc::timed_out);
            EXPECT_TRUE(up.source_ended);
        }(net.loop, kind, silent.where));
        const server_of answering([](accepted& a) {
            serve_early(a, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
                        afterwards::reads_nothing);
        });
        net.run([](io::context& loop, body_kind k, io::endpoint to) -> task<> {
            http::client client(loop, hasty());
            upload up(k, to, loop);
            const std::error_code error = co_await error_of(client, up.request);
            // A success for a body that the server has not taken.
            EXPECT_EQ(error, std::errc::timed_out);
            EXPECT_TRUE(up.source_ended);
            EXPECT_EQ(client.idle_connections(), 0u);
        }(net.loop, kind, answering.where));
    }
}

TEST_P(client_early_answer, a_stop_in_the_middle_of_a_body_ends_the_request) {
    network net(GetParam());
    for (const body_kind kind : body_kinds) {
        SCOPED_TRACE(static_cast<int>(kind));
        inplace_stop_source stop;
        // The server stops the request, from its own thread, once the body is in flight.
        const server_of server(
            [&](accepted& a) {
                a.receive_head();
                stop.request_stop();
                a.wait_for_end();
            },
            1);
        net.run([](io::context& loop, body_kind k, io::endpoint to,
                   inplace_stop_token token) -> task<> {
            http::client client(loop);
            upload up(k, to, loop);
            const auto got =
                co_await execution::stopped_as_optional(client.send(up.request, token));
            EXPECT_FALSE(got.has_value());
            EXPECT_TRUE(up.source_ended);
        }(net.loop, kind, server.where, stop.get_token()));
        const server_of silent([](accepted& a) { a.wait_for_end(); });
        net.run([](io::context& loop, body_kind k, io::endpoint to) -> task<> {
            http::client client(loop);
            upload up(k, to, loop);
            std::error_code error;
            try {
                (void)co_await execution::timeout(client.send(up.request), 50ms);
            } catch (const std::system_error& thrown) {
                error = thrown.code();
            }
            EXPECT_EQ(error, std::errc::timed_out);
            EXPECT_TRUE(up.source_ended);
        }(net.loop, kind, silent.where));
    }
}

}  // namespace
