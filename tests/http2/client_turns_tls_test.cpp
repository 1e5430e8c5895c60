// How requests wait for a connection that may turn out to be one of HTTP/2, in a simulation.
#include <coppice/execution.hpp>
#include <coppice/http2.hpp>
#include <coppice/io/simulation.hpp>

#include "../http/secure_parts.hpp"
#include "../http/served_world.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
namespace ex = coppice::execution;

// Two names for one server, which speaks this protocol.
http::server_options speaks(const std::string& protocol) {
    http::server_options o;
    o.http2 = http2::for_server();
    o.security = context_of_server("DNS:a.example,DNS:b.example", {protocol});
    return o;
}
http::client_options offers_http2(std::size_t connections_max) {
    http::client_options o;
    o.http2 = http2::for_client();
    o.security = context_of_client({"h2", "http/1.1"});
    o.connections_per_host_max = connections_max;
    o.total = 100s;
    return o;
}

// Handlers that take their time, and how many ran at once.
struct seen {
    std::size_t now = 0;
    std::size_t most = 0;
};
http::router routes_of(seen& s) {
    http::router r;
    r.get("/", [](http::request&) { return http::response::text("hello"); });
    r.get("/slow", [&s](http::request& q) -> task<http::response> {
        s.most = std::max(s.most, ++s.now);
        co_await http::pause(q, 3s);
        --s.now;
        co_return http::response::text("slow");
    });
    return r;
}

task<> get(http::client& client, const io::endpoint& to, std::string url, std::string_view body) {
    http::client_request r = asks(std::move(url));
    r.to = to;
    EXPECT_EQ((co_await client.send(std::move(r))).body(), body);
}
task<> get_hello(http::client& client, const io::endpoint& to, std::string_view name) {
    return get(client, to, "https://" + std::string(name) + ".example/", "hello");
}
task<> get_slow(http::client& client, const io::endpoint& to, std::string_view name) {
    return get(client, to, "https://" + std::string(name) + ".example/slow", "slow");
}

// Each waits longer than connecting may take.
TEST(http2_client_turns, a_wait_for_a_place_is_not_limited_by_the_time_to_connect) {
    for (const char* const protocol : {"http/1.1", "h2"}) {
        seen s;
        io::simulation world(1);
        const talk client = [](io::context& loop, const io::endpoint& to) -> task<> {
            http::client_options o = offers_http2(1);
            o.connect = 1s;
            http::client c(loop, o);
            co_await ex::when_all(get_slow(c, to, "a"), get_slow(c, to, "a"), get_slow(c, to, "a"),
                                  get_slow(c, to, "a"));
            co_await ex::when_all(get_slow(c, to, "a"), get_hello(c, to, "b"),
                                  get_hello(c, to, "b"), get_hello(c, to, "b"));
        };
        (void)serve_in(world, speaks(protocol), routes_of(s), client);
        EXPECT_EQ(s.most, protocol == std::string_view("h2") ? 4u : 1u);
    }
}

TEST(http2_client_turns, a_kept_connection_gives_its_place_to_another_name_at_its_endpoint) {
    seen s;
    io::simulation world(1);
    const talk client = [](io::context& loop, const io::endpoint& to) -> task<> {
        http::client c(loop, offers_http2(1));
        for (int i = 0; i != 3; ++i) {
            co_await get_hello(c, to, "a");
            co_await get_hello(c, to, "b");
        }
        EXPECT_EQ(c.connections_made(), 6u);
        EXPECT_EQ(c.idle_connections(), 1u);
    };
    (void)serve_in(world, speaks("h2"), routes_of(s), client);
}

// The requests for one name overlap, so that its connection is never idle.
TEST(http2_client_turns, a_busy_connection_takes_nothing_new_while_another_name_waits) {
    seen s;
    io::simulation world(1);
    std::string order;
    const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
        http::client c(loop, offers_http2(1));
        const auto one_by_one = [&](duration later) -> task<> {
            co_await loop.get_scheduler().schedule_after(later);
            for (int i = 0; i != 5; ++i) {
                co_await get_slow(c, to, "a");
                order += 'a';
            }
        };
        const auto other = [&]() -> task<> {
            co_await loop.get_scheduler().schedule_after(4s);
            co_await get_hello(c, to, "b");
            order += 'b';
        };
        co_await ex::when_all(one_by_one(0s), one_by_one(1s), other());
        EXPECT_EQ(c.connections_made(), 3u);
    };
    (void)serve_in(world, speaks("h2"), routes_of(s), client);
    EXPECT_LE(order.find('b'), 4u) << order;
}

// What the client knew of the first server was dropped for the second, and its connection was not.
TEST(http2_client_turns, a_kept_connection_of_http1_tells_at_once_what_its_server_speaks) {
    seen s;
    io::simulation world(1);
    const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
        http::client_options o = offers_http2(0);
        o.idle_connections_max = 1;
        http::client c(loop, o);
        co_await get_hello(c, to, "a");
        co_await ex::when_all(get_slow(c, to, "b"), get_slow(c, to, "a"), get_slow(c, to, "a"));
    };
    (void)serve_in(world, speaks("http/1.1"), routes_of(s), client);
    EXPECT_EQ(s.most, 3u);
}

TEST(http2_client_turns, the_call_that_connects_counts_as_one_of_the_streams) {
    seen s;
    io::simulation world(1);
    const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
        http::client_options o = offers_http2(0);
        o.http2 = http2::for_client({.streams_max = 2});
        http::client c(loop, o);
        co_await ex::when_all(get_slow(c, to, "a"), get_slow(c, to, "a"), get_slow(c, to, "a"),
                              get_slow(c, to, "a"));
        EXPECT_EQ(c.connections_made(), 1u);
    };
    (void)serve_in(world, speaks("h2"), routes_of(s), client);
    EXPECT_EQ(s.most, 2u);
}

// The client knows that the server speaks HTTP/1.1 alone, until a server of both takes its place.
TEST(http2_client_turns, a_server_may_speak_another_protocol_than_before) {
    seen s;
    http::server_options before = options_of(every_way[0]);
    before.security = context_of_server("IP:127.0.0.1", {"http/1.1"});
    std::optional<running_server> server(std::in_place, before, routes_of(s));
    http::server_options after = before;
    after.endpoint = server->operator*().local();
    after.http2 = http2::for_server();
    after.security = context_of_server("IP:127.0.0.1", {"h2"});
    network net(io::backend::epoll);
    http::client client(net.loop, offers_http2(0));
    const std::string url = secure_url(**server, "/");
    const auto ask = [&](std::size_t kept) -> task<> {
        for (int i = 0; i != 2; ++i) EXPECT_EQ((co_await client.get(url)).body(), "hello");
        EXPECT_EQ(client.connections_made(), kept);
    };
    net.run(ask(1));
    server.emplace(after, routes_of(s));
    net.run(ask(2));
    net.run([](http::client& c) -> task<> {
        c.close_idle();
        co_return;
    }(client));
}

// One server of HTTP/2, and one of HTTP/1.1.
TEST(http2_client_turns, kept_connections_of_both_protocols_have_one_limit) {
    running_server encrypted(secure(options_of(every_way[0])), routes_of_all_kinds());
    http::server_options clear = options_of(every_way[0]);
    clear.http2 = http2::for_server();
    seen s;
    running_server plain(std::move(clear), routes_of(s));
    network net(io::backend::epoll);
    net.run([](io::context& loop, std::string url, io::endpoint to) -> task<> {
        for (const std::size_t most : {2u, 1u, 0u}) {
            http::client_options o = offers_http2(0);
            o.http2_in_the_clear = true;
            o.idle_connections_max = most;
            http::client c(loop, o);
            for (int i = 0; i != 2; ++i) {
                EXPECT_EQ((co_await c.get(url)).body(), "secure");
                EXPECT_EQ((co_await c.get(to, "/")).body(), "hello");
                for (int turn = 0; turn != 4; ++turn) co_await loop.get_scheduler().schedule();
                EXPECT_EQ(c.idle_connections(), most);
            }
            EXPECT_EQ(c.connections_made(), most == 2 ? 2u : 4u);
        }
    }(net.loop, secure_url(*encrypted, "/plain"), plain->local()));
}

}  // namespace
