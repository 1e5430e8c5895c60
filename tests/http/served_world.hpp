// A server in a simulated world, and a client that talks to it there.
#pragma once

#include <coppice/http/server.hpp>
#include <coppice/io/simulation.hpp>

#include "detached.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

namespace coppice::test {

using talk = std::function<task<>(io::context& loop, const io::endpoint& to)>;
using talk_with = std::function<task<>(io::context& loop, http::server& server)>;

inline detached converse(io::context& loop, http::server& server, const talk_with& client,
                         bool& ended) {
    co_await client(loop, server);
    ended = true;
    server.drain(std::chrono::seconds(10));
}

// Runs a server and the client's part until the client has ended.
inline http::server_statistics serve_with(io::simulation& world, http::server_options o,
                                          http::router routes, const talk_with& client) {
    bool ended = false;
    std::optional<http::server> server;
    o.endpoint = io::loopback(0);
    o.model = http::model::single;
    o.simulation = &world;
    o.on_loop = [&](io::context& loop) { converse(loop, *server, client, ended); };
    server.emplace(std::move(o), std::move(routes));
    server->run();
    EXPECT_TRUE(ended);
    EXPECT_EQ(server->statistics().open, 0u);
    return server->statistics();
}
// Returns a function that calls `client`, which outlives it.
inline talk_with talk_to_server(const talk& client) {
    return [&client](io::context& loop, http::server& server) -> task<> {
        co_await client(loop, server.local());
    };
}
inline http::server_statistics serve_in(io::simulation& world, http::server_options o,
                                        http::router routes, const talk& client) {
    return serve_with(world, std::move(o), std::move(routes), talk_to_server(client));
}

}  // namespace coppice::test
