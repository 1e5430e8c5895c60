// What http::client refuses to send, refuses to accept as complete, and stops.
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/http/client.hpp>
#include <coppice/pool/thread_pool.hpp>

#include "allocations.hpp"
#include "asking.hpp"
#include "client_safety.hpp"
#include "running_server.hpp"
#include "scripted_server.hpp"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
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

INSTANTIATE_TEST_SUITE_P(rings, client_safety,
                         testing::Values(io::backend::epoll, io::backend::uring), name_of_ring);

struct refused_request {
    std::string method = "GET", target = "/", host = {}, fields = {};
};
const std::vector<refused_request> malformed = {
    {.target = ""},
    {.target = "x"},
    {.target = "/a b"},
    {.target = "/a\tb"},
    {.target = "/#top"},
    {.target = "/%zz"},
    {.target = "/\x80"},
    {.target = std::string("/\0", 2)},
    {.target = "/ HTTP/1.1\r\nHost: a\r\n\r\nGET /smuggled"},
    {.target = "/\r\nX: y"},
    {.target = "/\nX: y"},
    {.target = "*"},
    {.target = "ftp://a/"},
    {.method = ""},
    {.method = "GE T"},
    {.method = "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET"},
    {.method = "GET\r\n"},
    {.method = " GET"},
    {.method = "CONNECT", .target = "a:80"},
    {.host = "a b"},
    {.host = "a\r\nX: y"},
    {.host = "a\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a"},
    {.host = "a/b"},
    {.host = " a"},
    {.fields = "X: y"},
    {.fields = "X: y\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n"},
    {.fields = "X : y\r\n"},
    {.fields = ": y\r\n"},
    {.fields = "X\r\n"},
    {.fields = " X: y\r\n"},
    {.fields = "X: a\r\n b\r\n"},
    {.fields = "X: a\nY: b\r\n"},
    {.fields = std::string("X: a\0b\r\n", 8)},
    {.fields = "\r\n"},
    {.fields = "Host: b\r\n"},
    {.fields = "Content-Length: 0\r\n"},
    {.fields = "content-length: 5\r\n"},
    {.fields = "Transfer-Encoding: chunked\r\n"},
    {.fields = "Connection: upgrade\r\nUpgrade: websocket\r\n"},
    {.fields = "Connection: close, content-length\r\n"},
    {.fields = "Connection: keep-alive\r\n"},
    {.fields = "connection: Keep-Alive\r\n"},
    {.fields = "Connection: close\r\nConnection: keep-alive\r\n"},
    {.fields = "Connection:\r\n"},
};

TEST_P(client_safety, what_is_not_one_request_is_never_sent) {
    atomic<int> asked{0};
    http::router routes;
    routes.any("/{path...}", [&asked](request&) {
        asked.fetch_add(1, relaxed);
        return response(204);
    });
    running_server server(options_of(every_way[0]), std::move(routes));
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop);
        for (const refused_request& each : malformed) {
            for (const char* const body : {"", "body"}) {
                http::client_request r;
                r.to = to;
                r.method = each.method;
                r.target = each.target;
                r.host = each.host;
                r.fields = each.fields;
                r.body = body;
                const std::error_code error = co_await error_of(client, r);
                EXPECT_EQ(error, std::errc::invalid_argument)
                    << each.method << " " << each.target << " " << each.host << " " << each.fields;
            }
        }
        EXPECT_EQ(client.connections_made(), 0u);
        http::client_request good;
        good.to = to;
        good.target = "http://example.org/a?b=[c]";
        good.host = "example.org:80";
        good.fields = "X: y\r\nConnection: close\r\n";
        good.body = "body";
        const std::error_code error = co_await error_of(client, good);
        EXPECT_EQ(error, std::error_code());
    }(net.loop, server->local()));
    EXPECT_EQ(asked.load(relaxed), 1);
}

// What a server sends before it ends the connection, and if that is a whole answer.
struct sent_answer {
    std::string bytes;
    bool whole_at_end, whole_at_reset;
};
const std::vector<sent_answer> answers = {
    {"", false, false},
    {"HTTP/1.1 200 OK\r\n", false, false},
    {"HTTP/1.1 200 OK\r\n\r\n", true, false},
    {"HTTP/1.1 200 OK\r\n\r\na part", true, false},
    {"HTTP/1.0 200 OK\r\n\r\na part", true, false},
    {"HTTP/1.2 200 OK\r\nContent-Length: 6\r\n\r\na part", true, true},
    {"HTTP/1.10 200 OK\r\nContent-Length: 6\r\n\r\na part", false, false},
    {"HTTP/1.x 200 OK\r\nContent-Length: 6\r\n\r\na part", false, false},
    {"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\na part", true, true},
    {"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\na part", false, false},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\na part\r\n", false, false},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\na part\r\n0\r\n", false, false},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\na part\r\n0\r\n\r\n", true, true},
    {"HTTP/1.1 204 No Content\r\n\r\n", true, true},
    {"HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", true, true},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", true, true},
    {"HTTP/1.1 100 Continue\r\n\r\n", false, false},
    {"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", true, true},
    {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nHTTP/1.1 200 OK\r\n"
     "Content-Length: 0\r\n\r\n",
     false, false},
};

TEST_P(client_safety, rfc9112_8_a_part_of_an_answer_is_an_error) {
    using ending = scripted_server::ending;
    for (const ending how : {ending::end_of_stream, ending::reset}) {
        for (const sent_answer& each : answers) {
            for (const bool in_pieces : {false, true}) {
                const scripted_server server({each.bytes}, how);
                network net(GetParam());
                const bool whole = how == ending::reset ? each.whole_at_reset : each.whole_at_end;
                net.run([](io::context& loop, io::endpoint to, bool sink, bool good,
                           std::string bytes) -> task<> {
                    http::client client(loop);
                    http::client_request r;
                    r.to = to;
                    r.method = "PATCH";  // not retried automatically
                    if (sink) r.sink = [](std::string_view) -> task<> { co_return; };
                    const std::error_code error = co_await error_of(client, r);
                    EXPECT_EQ(!error, good) << bytes << ": " << error.message();
                    EXPECT_TRUE(good || client.idle_connections() == 0);
                }(net.loop, server.where, in_pieces, whole, each.bytes));
            }
        }
    }
}

TEST_P(client_safety, interim_answers_without_end_are_an_error) {
    std::string many;
    for (int i = 0; i != 1000; ++i) many += "HTTP/1.1 102 Processing\r\n\r\n";
    const scripted_server server({many});
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop);
        http::client_request r;
        r.to = to;
        const std::error_code error = co_await error_of(client, r);
        EXPECT_EQ(error, std::errc::message_size);
    }(net.loop, server.where));
}

TEST_P(client_safety, a_body_that_breaks_its_declared_length_is_an_error) {
    http::router routes;
    routes.post("/", [](request& q) { return response::text(std::string(q.body())); });
    running_server server(options_of(every_way[0]), std::move(routes));
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client client(loop);
        for (const std::uint64_t declared : {0, 4, 6, 100'000}) {
            http::client_request r;
            r.to = to;
            r.method = "POST";
            const auto produce = [](http::body_writer& out) -> task<> {
                co_await out.write("12345");
            };
            r.source = http::stream(produce, declared);
            bool refused = false;
            try {
                (void)co_await client.send(r);
            } catch (const std::length_error&) {
                refused = true;
            }
            EXPECT_TRUE(refused) << declared;
            EXPECT_EQ(client.idle_connections(), 0u);
        }
    }(net.loop, server->local()));
}

// Answers one request, if one arrives before `over`, on the calling thread, whose allocations do
// not fail.
void answer_one(int listener, std::string_view answer, const atomic<bool>& over) {
    pollfd ready{listener, POLLIN, 0};
    while (!over.load(acquire) && ::poll(&ready, 1, 1) == 0) {
    }
    if (ready.revents == 0) return;
    const int fd = ::accept(listener, nullptr, nullptr);
    (void)read_request(fd);
    (void)::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    ::close(fd);
}

TEST_P(client_safety, a_failed_allocation_ends_at_most_one_request) {
    if (!fail_allocation(0)) GTEST_SKIP() << "operator new is the sanitizer's";
    const std::string head = "HTTP/1.1 200 OK\r\nX: " + std::string(100, 'x') + "\r\n";
    const std::string body(1000, 'b');
    const std::string answers_given[] = {
        head + "Content-Length: 1000\r\n\r\n" + body,
        head + "\r\n" + body,
        head + "Transfer-Encoding: chunked\r\n\r\n3e8\r\n" + body +
            "\r\n0\r\nY: " + std::string(100, 'y') + "\r\n\r\n",
    };
    io::endpoint where;
    const int listener = listen_anywhere(where);
    for (const std::string& answer : answers_given) {
        for (std::size_t n = 1;; ++n) {
            ASSERT_LT(n, 200u);
            network net(GetParam());
            atomic<bool> over{false};
            std::string got;
            execution::counting_scope scope;
            const auto ask = [](io::context& loop, io::endpoint to, std::string& received,
                                atomic<bool>& end) -> task<> {
                try {
                    http::client client(loop);
                    received = (co_await client.get(to, "/")).body();
                } catch (const std::bad_alloc&) {
                } catch (const std::system_error&) {
                }
                end.store(true, release);
            };
            auto work =
                execution::starts_on(net.loop.get_scheduler(), ask(net.loop, where, got, over)) |
                execution::upon_error([](auto&&) noexcept {});
            execution::spawn(std::move(work), scope.get_token());
            fail_allocation(n);
            answer_one(listener, answer, over);
            this_thread::sync_wait(scope.join());
            const bool failed = allocation_has_failed();
            EXPECT_TRUE(got.empty() || got == body) << n;
            if (failed) continue;
            EXPECT_EQ(got, body);
            break;
        }
    }
    ::close(listener);
}

// Sources and sinks may move to a pool, as senders or as tasks; the request stays on its loop.
task<> away(thread_pool& pool) {
    co_await pool.get_scheduler().schedule();
}
task<> write_away(thread_pool& pool, http::body_writer& out, bool there) {
    const std::string piece(3000, 'x');
    for (int i = 0; i != 10; ++i) {
        co_await pool.get_scheduler().schedule();
        if (there) {
            co_await execution::starts_on(pool.get_scheduler(), out.write(piece));
        } else {
            co_await out.write(piece);
        }
    }
}
task<> converse_away(http::client& client, io::endpoint to, thread_pool& pool, bool there) {
    const std::thread::id loop = std::this_thread::get_id();
    std::size_t received = 0;
    http::client_request r;
    r.to = to;
    r.target = "/size";
    r.method = "POST";
    r.source = http::stream([&](http::body_writer& out) { return write_away(pool, out, there); });
    r.sink = [&](std::string_view piece) -> task<> {
        received += piece.size();
        if (there) {
            co_await execution::starts_on(pool.get_scheduler(), away(pool));
        } else {
            co_await away(pool);
        }
    };
    const http::client_response answer = co_await client.send(std::move(r));
    EXPECT_EQ(answer.status(), 200);
    EXPECT_EQ(received, 30'000u);
    EXPECT_EQ(std::this_thread::get_id(), loop);
}

TEST_P(client_safety, sources_and_sinks_may_go_to_a_pool) {
    http::router routes;
    routes.post("/size", [](request& q) { return response::text(std::string(q.body())); });
    running_server server(options_of(every_way[0]), std::move(routes));
    thread_pool pool(2);
    network net(GetParam());
    for (const bool there : {false, true}) {
        std::optional<http::client> client;
        execution::counting_scope scope;
        net.run([](std::optional<http::client>& c, io::context& loop) -> task<> {
            c.emplace(loop);
            co_return;
        }(client, net.loop));
        for (int i = 0; i != 50; ++i) {
            execution::spawn(
                execution::starts_on(net.loop.get_scheduler(),
                                     converse_away(*client, server->local(), pool, there)) |
                    execution::upon_error([](auto&&) noexcept { ADD_FAILURE(); }),
                scope.get_token());
        }
        this_thread::sync_wait(scope.join());
        net.run([](std::optional<http::client>& c) -> task<> {
            c.reset();
            co_return;
        }(client));
    }
}

TEST_P(client_safety, bytes_that_cannot_become_an_answer_are_refused_at_once) {
    const std::pair<const char*, std::errc> beginnings[] = {
        {"<html>", std::errc::bad_message},
        {"HTTP/2 200\r\n", std::errc::bad_message},
        {"\r\n", std::errc::bad_message},
        {"HTTP/1.1 200 OK\n", std::errc::bad_message},
        {"HTTP/1.1 200 OK\r\nX: y\nContent-Length: 0\n\n", std::errc::bad_message},
        {"HTTP/1.1 200 OK\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\n\r\n", std::errc::message_size},
    };
    for (const auto& [bytes, expected] : beginnings) {
        for (const bool slowly : {false, true}) {
            io::endpoint where;
            const int listener = listen_anywhere(where);
            network net(GetParam());
            std::thread server([&] {
                const int fd = ::accept(listener, nullptr, nullptr);
                (void)read_request(fd);
                const std::string_view text = bytes;
                for (std::size_t i = 0; i < text.size(); i += slowly ? 1 : text.size()) {
                    (void)::send(fd, text.data() + i, slowly ? 1 : text.size(), MSG_NOSIGNAL);
                }
                char end;
                (void)::recv(fd, &end, 1, 0);  // until the client has gone
                ::close(fd);
            });
            net.run([](io::context& loop, io::endpoint to, std::errc error) -> task<> {
                http::client_options o;
                o.answer = 1h;
                o.limits.fields_max = 3;
                http::client client(loop, o);
                http::client_request r;
                r.to = to;
                r.method = "PATCH";  // not retried automatically
                const std::error_code got = co_await error_of(client, r);
                EXPECT_EQ(got, error);
            }(net.loop, where, expected));
            server.join();
            ::close(listener);
        }
    }
}

}  // namespace
