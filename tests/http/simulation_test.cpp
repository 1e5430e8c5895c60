// A server and a client in one simulation: nothing that they do reaches the machine.
#include <coppice/http/client.hpp>
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
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using coppice::test::detached;
using coppice::test::file_root;
using http::request;
using http::response;

using talk = std::function<task<>(io::context& loop, const io::endpoint& to)>;

detached converse(io::context& loop, http::server& server, const talk& client, bool& ended) {
    co_await client(loop, server.local());
    ended = true;
    server.drain(10s);
}

// Runs a server and the client's part until the client has ended.
http::server_statistics in_a_world(std::uint64_t seed, http::server_options o, http::router routes,
                                   const talk& client) {
    io::simulation world(seed);
    bool ended = false;
    std::optional<http::server> server;
    o.endpoint = io::loopback(0);
    o.model = http::model::single;
    o.simulation = &world;
    o.on_loop = [&](io::context& loop) { converse(loop, *server, client, ended); };
    server.emplace(std::move(o), std::move(routes));
    server->run();
    EXPECT_TRUE(ended) << seed;
    return server->statistics();
}

http::router routes() {
    http::router r;
    r.get("/plain", [](request&) { return response::text("plain"); });
    return r;
}

TEST(http_in_a_simulation, a_large_file_arrives_whole_and_in_part) {
    file_root root;
    std::string content;
    for (int i = 0; content.size() < 300'000; ++i) content += std::to_string(i) + " ";
    root.write("large.txt", content);
    for (std::uint64_t seed = 1; seed != 20; ++seed) {
        http::router r;
        r.get("/static/{path...}", http::files(root.path.string()));
        const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
            http::client c(loop);
            http::client_request whole;
            whole.to = to;
            whole.target = "/static/large.txt";
            const http::client_response all = co_await c.send(whole);
            EXPECT_EQ(all.status(), 200);
            EXPECT_TRUE(all.body() == content) << seed;
            whole.fields = "Range: bytes=100000-299999\r\n";
            const http::client_response part = co_await c.send(whole);
            EXPECT_EQ(part.status(), 206);
            EXPECT_TRUE(part.body() == content.substr(100'000, 200'000)) << seed;
        };
        (void)in_a_world(seed, {}, std::move(r), client);
    }
}

TEST(http_in_a_simulation, the_date_is_that_of_the_simulation) {
    std::vector<std::string> dates;
    const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
        http::client c(loop);
        for (const duration pause : {duration(0s), duration(48h)}) {
            io::timer timer(loop);
            co_await timer.wait_for(pause);
            const http::client_response plain = co_await c.get(to, "/plain");
            dates.emplace_back(plain.find("Date").value_or("none"));
        }
    };
    (void)in_a_world(1, {}, routes(), client);
    EXPECT_EQ(dates, (std::vector<std::string>{"Sat, 01 Jan 2000 00:00:01 GMT",
                                               "Mon, 03 Jan 2000 00:00:01 GMT"}));
}

TEST(http_in_a_simulation, a_handler_gets_the_time_of_the_simulation) {
    std::chrono::sys_seconds seen{};
    http::router r;
    r.get("/", [&](request& q) {
        seen = q.wall_time();
        return response(204);
    });
    const talk client = [](io::context& loop, const io::endpoint& to) -> task<> {
        http::client c(loop);
        (void)co_await c.get(to, "/");
    };
    (void)in_a_world(1, {}, std::move(r), client);
    const std::chrono::sys_days first = std::chrono::year(2000) / std::chrono::January / 1;
    EXPECT_EQ(seen, first + 1s);
}

TEST(http_in_a_simulation, a_connection_is_kept_until_its_server_has_closed_it) {
    for (std::uint64_t seed = 1; seed != 50; ++seed) {
        std::size_t made = 0;
        http::server_options o;
        o.timeouts.idle = 5s;
        const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
            http::client c(loop);
            for (int i = 0; i != 10; ++i) EXPECT_EQ((co_await c.get(to, "/plain")).status(), 200);
            EXPECT_EQ(c.connections_made(), 1u);
            io::timer timer(loop);
            co_await timer.wait_for(10s);
            EXPECT_EQ((co_await c.get(to, "/plain")).status(), 200);
            made = c.connections_made();
        };
        const http::server_statistics s = in_a_world(seed, o, routes(), client);
        EXPECT_EQ(made, 2u) << seed;
        EXPECT_EQ(s.accepted, 2u) << seed;
    }
}

TEST(http_in_a_simulation, a_client_beyond_the_limit_gets_503_and_the_end) {
    for (std::uint64_t seed = 1; seed != 50; ++seed) {
        http::server_options o;
        o.connections_max = 0;
        const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
            io::tcp::socket socket(loop);
            co_await socket.connect(to);
            std::string answer;
            std::array<std::byte, 512> buffer;
            std::size_t n;
            while ((n = co_await socket.receive(buffer)) != 0) {
                answer.append(reinterpret_cast<const char*>(buffer.data()), n);
            }
            EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << seed << answer;
        };
        const http::server_statistics s = in_a_world(seed, o, routes(), client);
        EXPECT_EQ(s.refused, 1u) << seed;
    }
}

}  // namespace
