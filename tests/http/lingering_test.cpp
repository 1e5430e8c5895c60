// What a server does after its last answer: the client sees all of it, then the end, and no reset.
#include <coppice/http/body.hpp>
#include <coppice/http/files.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>

#include "detached.hpp"
#include "file_root.hpp"
#include "running_server.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <optional>
#include <string>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using coppice::test::client;
using coppice::test::detached;
using coppice::test::every_way;
using coppice::test::file_root;
using coppice::test::running_server;
using coppice::test::way;
using http::request;
using http::response;

const std::string content(40'000, 'c');

http::router routes(const file_root& root) {
    http::router r;
    r.get("/plain", [](request&) { return response::text("plain"); })
        .get("/large", [](request&) { return response::text(content); })
        .get("/slow",
             [](request& q) -> task<response> {
                 co_await http::pause(q, 2ms);  // what arrives meanwhile is read ahead in part
                 co_return response::text("slow");
             })
        .get("/stream",
             [](request&) {
                 return response(200).body(http::stream([](http::body_writer& out) -> task<> {
                     for (int i = 0; i != 40; ++i) co_await out.write(content.substr(0, 1000));
                 }));
             })
        .get("/throws", [](request&) -> response { throw std::runtime_error("on purpose"); })
        .post("/read", http::read_body([](request& q) -> task<response> {
                  while (!(co_await q.incoming().read()).empty()) {
                  }
                  co_return response::text("read");
              }))
        .get("/files/{path...}", http::files(root.path.string()));
    return r;
}

struct asked {
    const char* head;  // without its last line ends
    int status;
    std::string_view body_end;
};
const asked questions[] = {
    {"GET /plain HTTP/1.1\r\nHost: x\r\nConnection: close", 200, "plain"},
    {"GET /plain HTTP/1.0\r\nHost: x", 200, "plain"},
    {"HEAD /plain HTTP/1.1\r\nHost: x\r\nConnection: close", 200, "\r\n\r\n"},
    {"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close", 200, "ccc"},
    {"GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close", 200, "slow"},
    {"GET /stream HTTP/1.1\r\nHost: x\r\nConnection: close", 200, "ccc\r\n0\r\n\r\n"},
    {"GET /stream HTTP/1.0\r\nHost: x", 200, "ccc"},
    {"GET /files/large HTTP/1.1\r\nHost: x\r\nConnection: close", 200, "ccc"},
    {"GET /throws HTTP/1.1\r\nHost: x\r\nConnection: close", 500, ""},
    {"GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close", 404, ""},
    {"POST /read HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0", 200, "read"},
};

class lingering : public testing::TestWithParam<way> {
protected:
    lingering() { root.write("large", content); }
    http::server_options options() const {
        http::server_options o = coppice::test::options_of(GetParam());
        o.on_exception = [](std::exception_ptr) {};
        return o;
    }
    file_root root;
};
INSTANTIATE_TEST_SUITE_P(ways, lingering, testing::ValuesIn(every_way), coppice::test::name_of_way);

// In one send and in two, so that the bytes after the request sometimes arrive with it.
TEST_P(lingering, bytes_after_a_request_that_closes_destroy_no_byte_of_its_answer) {
    running_server server(options(), routes(root));
    const std::string more(32 * 1024, 'x');
    int round = 0;
    for (const asked& question : questions) {
        SCOPED_TRACE(question.head);
        for (int i = 0; i != 200; ++i) {
            client c(server.port());
            const std::string head = std::string(question.head) + "\r\n\r\n";
            if (++round % 2 == 0) {
                (void)c.send(head + more);
            } else {
                (void)c.send(head);
                (void)c.send(more);
            }
            bool reset = true;
            const std::string answer = c.receive_all(&reset);
            ASSERT_FALSE(reset) << i;
            ASSERT_EQ(answer.substr(8, 5), " " + std::to_string(question.status) + " ") << i;
            ASSERT_TRUE(answer.ends_with(question.body_end)) << i;
        }
    }
    EXPECT_EQ(server->statistics().timed_out, 0u);
}

// The connection is gone long before the two seconds for which a server waits for others.
TEST_P(lingering, ends_at_once_when_the_client_closes_after_its_answer) {
    running_server server(options(), routes(root));
    const auto began = std::chrono::steady_clock::now();
    for (const asked& question : questions) {
        client c(server.port());
        ASSERT_TRUE(c.send(std::string(question.head) + "\r\n\r\n"));
        bool reset = true;
        EXPECT_TRUE(c.receive_all(&reset).ends_with(question.body_end));
        EXPECT_FALSE(reset);
    }
    while (server->statistics().open != 0) std::this_thread::yield();
    EXPECT_LT(std::chrono::steady_clock::now() - began, 2s);
    EXPECT_EQ(server->statistics().timed_out, 0u);
}

// A client that had asked for the close, and then sends forever.
TEST_P(lingering, reads_at_most_a_bounded_amount) {
    running_server server(options(), routes(root));
    client c(server.port());
    ASSERT_TRUE(c.send("GET /plain HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    EXPECT_FALSE(c.send(std::string(64 * 1024 * 1024, 'x')));
    while (server->statistics().open != 0) std::this_thread::yield();
    EXPECT_LT(server->statistics().bytes_received, 512u * 1024);
    EXPECT_EQ(server->statistics().timed_out, 0u);
}

// In virtual time, with a client that does not close its end.

using talk = std::function<task<>(io::context& loop, http::server& server)>;

detached converse(io::context& loop, http::server& server, const talk& part, bool& ended) {
    co_await part(loop, server);
    ended = true;
    server.drain(10s);
}
http::server_statistics in_a_world(std::uint64_t seed, const talk& part) {
    io::simulation world(seed, io::simulated_faults::none());
    bool ended = false;
    std::optional<http::server> server;
    http::server_options o;
    o.endpoint = io::loopback(0);
    o.model = http::model::single;
    o.simulation = &world;
    o.on_loop = [&](io::context& loop) { converse(loop, *server, part, ended); };
    http::router r;
    r.get("/plain", [](request&) { return response::text("plain"); });
    server.emplace(std::move(o), std::move(r));
    server->run();
    EXPECT_TRUE(ended) << seed;
    return server->statistics();
}
// Sends a request and reads to the end. `in_between` is called when half of the request has
// arrived.
task<> ask(io::context& loop, io::tcp::socket& socket, io::endpoint to,
           std::function<void()> in_between) {
    co_await socket.connect(to);
    const std::string_view halves[] = {"GET /plain HTTP/1.1\r\nHost: x\r\n",
                                       "Connection: close\r\n\r\n"};
    co_await socket.send_all(std::as_bytes(std::span(halves[0])));
    io::timer timer(loop);
    co_await timer.wait_for(10ms);
    in_between();
    co_await socket.send_all(std::as_bytes(std::span(halves[1])));
    std::string answer;
    std::array<std::byte, 512> buffer;
    while (const std::size_t n = co_await socket.receive(buffer)) {
        answer.append(reinterpret_cast<const char*>(buffer.data()), n);
    }
    EXPECT_TRUE(answer.ends_with("plain"));
}
task<duration> time_until_closed(io::context& loop, http::server& server) {
    const time_point began = loop.now();
    io::timer timer(loop);
    while (server.statistics().open != 0) co_await timer.wait_for(10ms);
    co_return loop.now() - began;
}

TEST(lingering_in_a_simulation, ends_after_two_seconds_and_does_not_count_as_a_timeout) {
    duration taken{};
    const talk part = [&](io::context& loop, http::server& server) -> task<> {
        io::tcp::socket socket(loop);
        co_await ask(loop, socket, server.local(), [] {});
        taken = co_await time_until_closed(loop, server);
    };
    const http::server_statistics s = in_a_world(1, part);
    EXPECT_EQ(s.timed_out, 0u);
    EXPECT_EQ(s.requests, 1u);
    EXPECT_GE(taken, 1900ms);
    EXPECT_LE(taken, 2100ms);
}

TEST(lingering_in_a_simulation, is_shortened_by_a_drain) {
    for (const bool during : {false, true}) {
        duration taken{};
        const talk part = [&](io::context& loop, http::server& server) -> task<> {
            io::tcp::socket socket(loop);
            co_await ask(loop, socket, server.local(), [&] {
                if (!during) server.drain(10s);
            });
            server.drain(10s);
            taken = co_await time_until_closed(loop, server);
        };
        EXPECT_EQ(in_a_world(1, part).timed_out, 0u);
        EXPECT_GE(taken, 400ms) << during;
        EXPECT_LE(taken, 600ms) << during;
    }
}

}  // namespace
