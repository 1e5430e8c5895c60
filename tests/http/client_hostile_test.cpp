// http::client against hostile servers: floods, unrequested bytes, failing memory.
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/http/client.hpp>

#include "allocations.hpp"
#include "asking.hpp"
#include "scripted_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;

class client_hostile : public testing::TestWithParam<io::backend> {
protected:
    network net{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(rings, client_hostile,
                         testing::Values(io::backend::epoll, io::backend::uring), name_of_ring);

// Each causes an error early: the server continues until the client has gone.
TEST_P(client_hostile, a_flood_of_any_kind_ends_at_a_limit) {
    const std::string ok = "HTTP/1.1 200 OK\r\n";
    const std::string chunked = ok + "Transfer-Encoding: chunked\r\n\r\n";
    struct {
        std::string begin, again;
    } const floods[] = {
        {"HTTP/1.1 200 ", std::string(1000, 'x')},
        {ok + "X: ", std::string(1000, 'x')},
        {ok + "X", std::string(1000, 'x')},
        {ok, "Set-Cookie: a=b\r\n"},
        {ok, "X: " + std::string(1000, 'x') + "\r\n"},
        {"", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"},
        {"", "HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n"},
        {chunked + "1;", std::string(1000, 'x')},
        {chunked + "1;a=\"", std::string(1000, 'x')},
        {chunked, "0"},
        {chunked, "1;a=b\r\nx\r\n"},
        {chunked, "1000\r\n" + std::string(4096, 'x') + "\r\n"},
        {chunked + "0\r\n", "X: y\r\n"},
        {chunked + "0\r\nX: ", std::string(1000, 'x')},
        {chunked + "ffffffffffffffff\r\n", std::string(4096, 'x')},
        {chunked + "10000000000000000\r\n", "x"},
        {ok + "Content-Length: 18446744073709551615\r\n\r\n", std::string(4096, 'x')},
        {ok + "Content-Length: 18446744073709551616\r\n\r\n", "x"},
        {ok + "\r\n", std::string(4096, 'x')},
    };
    for (const auto& flood : floods) {
        SCOPED_TRACE(flood.begin + flood.again.substr(0, 40));
        const server_of server([&](accepted& a) {
            a.receive_head();
            if (!a.send(flood.begin)) return;
            while (a.send(flood.again)) {
            }
        });
        net.run([](io::context& loop, io::endpoint to) -> task<> {
            http::client_options o;
            o.answer = o.body = 1h;
            o.limits.body_bytes_max = 256 * 1024;
            http::client client(loop, o);
            const std::error_code got = co_await error_of(client, asks(to, "/", "PATCH"));
            EXPECT_TRUE(got == std::errc::message_size || got == std::errc::bad_message)
                << got.message();
            EXPECT_EQ(client.idle_connections(), 0u);
        }(net.loop, server.where));
    }
}

// Bytes after an answer belong to no request: the connection is not used again.
TEST_P(client_hostile, bytes_after_an_answer_are_never_the_next_answer) {
    const std::string smuggled = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled";
    const std::pair<std::string_view, std::string> answers[] = {
        {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
        {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
        {"GET", "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n"},
        {"GET", "HTTP/1.1 304 Not Modified\r\n\r\n"},
        {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"},
        {"HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
    };
    for (const auto& [method, answer] : answers) {
        for (const bool by_pieces : {false, true}) {
            SCOPED_TRACE(answer);
            const server_of server(
                [&, first = true](accepted& a) mutable {
                    a.receive_head();
                    a.send(std::exchange(first, false) ? answer + smuggled
                                                       : "HTTP/1.1 299 Fresh\r\n\r\n");
                    if (a.received.starts_with("GET /second")) return;
                    a.wait_for_end();
                },
                2);
            net.run(
                [](io::context& loop, io::endpoint to, std::string_view m, bool pieces) -> task<> {
                    http::client client(loop);
                    if (pieces) {
                        http::client_answer opened = co_await client.open(asks(to, "/", m));
                        for (;;) {
                            const std::string_view piece = co_await opened.read();
                            EXPECT_TRUE(piece.empty() || piece == "ok");
                            if (piece.empty()) break;
                        }
                    } else {
                        const http::client_response got = co_await client.send(asks(to, "/", m));
                        EXPECT_LE(got.body().size(), 2u);
                    }
                    EXPECT_EQ(client.idle_connections(), 0u);
                    const http::client_response second = co_await client.get(to, "/second");
                    EXPECT_EQ(second.status(), 299);
                }(net.loop, server.where, method, by_pieces));
        }
    }
}

// An answer that arrives byte by byte must read as the whole answer does, in either way of reading.
TEST_P(client_hostile, an_answer_that_arrives_byte_by_byte_is_the_same_answer) {
    const std::string answers[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX: y\r\n\r\nbody",
        "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2;a=b\r\ndy\r\n0\r\nY: "
        "z\r\n\r\n",
        "HTTP/1.1 103 A\r\nLink: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody",
        "HTTP/1.0 200 OK\r\n\r\nbody",
    };
    for (const std::string& answer : answers) {
        SCOPED_TRACE(answer);
        const server_of server(
            [&](accepted& a) {
                a.receive_head();
                for (const char& byte : answer) a.send(std::string_view(&byte, 1));
            },
            2);
        net.run([](io::context& loop, io::endpoint to) -> task<> {
            http::client client(loop);
            const http::client_response whole = co_await client.get(to, "/");
            EXPECT_EQ(whole.status(), 200);
            EXPECT_EQ(whole.body(), "body");
            client.close_idle();
            http::client_answer opened = co_await client.open(asks(to));
            std::string body;
            for (;;) {
                const std::string_view piece = co_await opened.read();
                if (piece.empty()) break;
                body += piece;
            }
            EXPECT_EQ(body, "body");
        }(net.loop, server.where));
    }
}

// Answers each request on each connection until `over`, on the calling thread.
void answer_until(int listener, const atomic<bool>& over) {
    const std::string moved =
        "HTTP/1.1 307 Moved\r\nLocation: /second\r\nContent-Length: 0\r\n\r\n";
    const std::string part(300, 'b');
    const std::string last = "HTTP/1.1 200 OK\r\nX: " + std::string(100, 'x') +
                             "\r\nTransfer-Encoding: chunked\r\n\r\n12c\r\n" + part +
                             "\r\n12c\r\n" + part + "\r\n0\r\nY: z\r\n\r\n";
    std::vector<pollfd> fds{{listener, POLLIN, 0}};
    while (!over.load(acquire)) {
        if (::poll(fds.data(), fds.size(), 1) <= 0) continue;
        for (std::size_t i = 1; i != fds.size(); ++i) {
            if (fds[i].revents == 0) continue;
            accepted a{fds[i].fd};
            a.receive_head();
            if (a.received.starts_with("PUT /second")) {
                while (a.body_bytes() < 20'000 && a.receive()) {
                }
                a.send(last);
            } else if (!a.received.empty()) {
                while (a.body_bytes() < 20'000 && a.receive()) {
                }
                a.send(moved);
            } else {
                ::close(std::exchange(fds[i].fd, -1));
            }
        }
        if (fds[0].revents != 0) fds.push_back({::accept(listener, nullptr, nullptr), POLLIN, 0});
    }
    for (std::size_t i = 1; i != fds.size(); ++i) ::close(fds[i].fd);
}

// A large body, a redirect, a limit of connections, retries, and a total: everything that may
// allocate.
task<> ask_for_much(io::context& loop, io::endpoint to, bool by_pieces, std::string& got) {
    const std::string body(20'000, 'x');
    http::client_options o;
    o.redirects_max = 3;
    o.retries = 1;
    o.retry_delay = 0ms;
    o.total = 1h;
    o.connections_per_host_max = 1;
    http::client client(loop, o);
    http::client_request r = asks("http://127.0.0.1:" + std::to_string(to.port()) + "/", "PUT");
    r.fields = "X: y\r\nAuthorization: z\r\n";
    r.body = body;
    if (by_pieces) {
        http::client_answer answer = co_await client.open(std::move(r));
        std::string all;
        for (;;) {
            const std::string_view piece = co_await answer.read();
            if (piece.empty()) break;
            all += piece;
        }
        got = all;
    } else {
        got = (co_await client.send(std::move(r))).body();
    }
}

TEST_P(client_hostile, a_failed_allocation_anywhere_ends_only_the_request) {
    if (!fail_allocation(0)) GTEST_SKIP() << "operator new is the sanitizer's";
    io::endpoint where;
    const int listener = listen_anywhere(where);
    for (const bool by_pieces : {false, true}) {
        for (std::size_t n = 1;; ++n) {
            ASSERT_LT(n, 400u);
            network own(GetParam());
            atomic<bool> over{false};
            std::string got;
            execution::counting_scope scope;
            const auto ask = [](io::context& loop, io::endpoint to, bool pieces,
                                std::string& received, atomic<bool>& end) -> task<> {
                try {
                    co_await ask_for_much(loop, to, pieces, received);
                } catch (const std::bad_alloc&) {
                } catch (const std::system_error&) {
                }
                end.store(true, release);
            };
            auto work = execution::starts_on(own.loop.get_scheduler(),
                                             ask(own.loop, where, by_pieces, got, over)) |
                        execution::upon_error([](auto&&) noexcept {});
            execution::spawn(std::move(work), scope.get_token());
            fail_allocation(n);
            answer_until(listener, over);
            this_thread::sync_wait(scope.join());
            const bool failed = allocation_has_failed();
            EXPECT_TRUE(got.empty() || got == std::string(600, 'b')) << n;
            if (failed) continue;
            EXPECT_EQ(got.size(), 600u);
            break;
        }
    }
    ::close(listener);
}

}  // namespace
