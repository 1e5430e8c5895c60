// http::client over HTTP/2 by ALPN: one connection for all requests to a host.
#include <coppice/execution.hpp>
#include <coppice/http2.hpp>
#include <coppice/task/for_each_bounded.hpp>

#include "../http/secure_parts.hpp"
#include "detached.hpp"

#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;

http::client_options offers_http2() {
    http::client_options o;
    o.http2 = http2::for_client();
    o.security = context_of_client({"h2", "http/1.1"});
    return o;
}
http::server_options chooses(const char* protocol) {
    http::server_options o = options_of(every_way[0]);
    o.http2 = http2::for_server();
    o.security = context_of_server("IP:127.0.0.1", {protocol});
    return o;
}

class http2_client_by_alpn : public testing::TestWithParam<io::backend> {};
INSTANTIATE_TEST_SUITE_P(rings, http2_client_by_alpn,
                         testing::Values(io::backend::epoll, io::backend::uring), name_of_ring);

// Asks so many times at once, and then once more. Returns how many connections that took.
task<> ask_at_once(io::context& loop, http::client_options o, std::string url, std::size_t n,
                   std::size_t& made) {
    http::client client(loop, std::move(o));
    std::vector<int> numbers(n);
    co_await for_each_bounded(
        numbers, n, [&](int) -> task<> { EXPECT_EQ((co_await client.get(url)).body(), "secure"); });
    EXPECT_EQ((co_await client.get(url)).body(), "secure");
    made = client.connections_made();
}

TEST_P(http2_client_by_alpn, requests_at_once_share_the_connection_that_agrees) {
    running_server server(chooses("h2"), routes_of_all_kinds());
    network net(GetParam());
    std::size_t made = 0;
    net.run(ask_at_once(net.loop, offers_http2(), secure_url(*server, "/plain"), 20, made));
    EXPECT_EQ(made, 1u);
    http::client_options limited = offers_http2();
    limited.connections_per_host_max = 1;
    limited.idle_connections_max = 0;
    net.run(ask_at_once(net.loop, limited, secure_url(*server, "/plain"), 5, made));
    EXPECT_LE(made, 2u);
}

TEST_P(http2_client_by_alpn, a_server_of_http1_is_asked_over_connections_of_their_own) {
    running_server server(chooses("http/1.1"), routes_of_all_kinds());
    network net(GetParam());
    std::size_t made = 0;
    net.run(ask_at_once(net.loop, offers_http2(), secure_url(*server, "/plain"), 5, made));
    EXPECT_GE(made, 2u);  // a late request may reuse the connection of an answered one
    EXPECT_LE(made, 5u);
}

TEST_P(http2_client_by_alpn, requests_that_wait_fail_with_the_one_that_connects) {
    running_server server(chooses("h2"), routes_of_all_kinds());
    network net(GetParam());
    net.run([](io::context& loop, std::string url) -> task<> {
        http::client_options o = offers_http2();
        o.security = tls::client_context({.protocols = {"h2", "http/1.1"}});
        http::client client(loop, o);
        std::vector<int> numbers(5);
        co_await for_each_bounded(numbers, 5, [&](int) -> task<> {
            EXPECT_EQ(co_await error_of(client, asks(url)), tls::errc::unknown_issuer);
        });
        EXPECT_EQ(client.connections_made(), 1u);
    }(net.loop, secure_url(*server, "/plain")));
}

TEST_P(http2_client_by_alpn, a_handler_sees_what_the_handshake_agreed_on) {
    http::router r;
    const auto tells = [](http::request& q) {
        const io::agreed_security& agreed = *q.security();
        return http::response::text(agreed.version + ";" + agreed.protocol + ";" + agreed.host +
                                    ";" + agreed.peer_subject);
    };
    r.get("/", tells);
    r.get("/pool", http::offload(tells));
    http::server_options o = chooses("h2");
    o.security = tls::server_context({.certificates = {the_authority().issue()},
                                      .protocols = {"h2"},
                                      .clients = tls::client_certificates::require,
                                      .client_authorities = the_authority().pem()});
    running_server server(std::move(o), std::move(r));
    network net(GetParam());
    net.run([](io::context& loop, http::server& s) -> task<> {
        http::client_options options = offers_http2();
        options.security = tls::client_context(
            {.system_authorities = false,
             .authorities = the_authority().pem(),
             .own = the_authority().issue({.subject = "alice", .usage = "clientAuth"}),
             .protocols = {"h2"}});
        http::client client(loop, options);
        for (const char* const path : {"/", "/pool"}) {
            http::client_request named = asks("https://server.example" + std::string(path));
            named.to = s.local();
            EXPECT_EQ((co_await client.send(named)).body(), "TLSv1.3;h2;server.example;CN=alice");
        }
        EXPECT_EQ(client.connections_made(), 1u);
    }(net.loop, *server));
}

TEST_P(http2_client_by_alpn, a_later_connection_resumes) {
    running_server server(chooses("h2"), routes_of_all_kinds());
    network net(GetParam());
    net.run([](io::context& loop, std::string url) -> task<> {
        http::client client(loop, offers_http2());
        for (int i = 0; i != 3; ++i) {
            EXPECT_EQ((co_await client.get(url)).body(), "secure");
            client.close_idle();
        }
        EXPECT_EQ(client.connections_made(), 3u);
        EXPECT_EQ(client.connections_resumed(), 2u);
    }(net.loop, secure_url(*server, "/plain")));
}

// The loop ends by itself although a connection is kept.
TEST_P(http2_client_by_alpn, a_kept_connection_does_not_keep_the_loop_running) {
    running_server server(chooses("h2"), routes_of_all_kinds());
    io::context loop(GetParam());
    http::client client(loop, offers_http2());
    const std::string url = secure_url(*server, "/plain");
    for (int i = 0; i != 3; ++i) {
        std::string got;
        [](io::context& on, http::client& c, std::string_view where,
           std::string& body) -> detached {
            co_await on.get_scheduler().schedule();
            body = (co_await c.get(where)).body();
        }(loop, client, url, got);
        loop.run();
        EXPECT_EQ(got, "secure");
    }
    EXPECT_EQ(client.connections_made(), 1u);
}

}  // namespace
