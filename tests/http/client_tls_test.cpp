// http::client over TLS: what it trusts, what it refuses, and how connections end.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/execution.hpp>
#include <coppice/io/timer.hpp>

#include "secure_parts.hpp"

#include <array>
#include <optional>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
namespace ex = coppice::execution;

class secure_client_on : public testing::TestWithParam<io::backend> {
protected:
    static http::server_options options() { return secure(options_of(every_way[0])); }
};
INSTANTIATE_TEST_SUITE_P(rings, secure_client_on,
                         testing::Values(io::backend::epoll, io::backend::uring), name_of_ring);

TEST_P(secure_client_on, verifies_against_the_system_by_default) {
    running_server server(options(), routes_of_all_kinds());
    network net(GetParam());
    net.run([](io::context& loop, std::string url) -> task<> {
        http::client_options o;
        o.security = tls::client_context();
        o.retries = 3;
        http::client client(loop, o);
        EXPECT_EQ(co_await error_of(client, asks(url)), tls::errc::unknown_issuer);
        EXPECT_EQ(client.connections_made(), 1u);  // it does not get better by another try
    }(net.loop, secure_url(*server, "/plain")));
    EXPECT_EQ(server->statistics().requests, 0u);
}

TEST_P(secure_client_on, asks_only_the_host_of_the_url) {
    running_server server(options(), routes_of_all_kinds());
    network net(GetParam());
    net.run([](io::context& loop, http::server& s) -> task<> {
        http::client client(loop, secure_client());
        EXPECT_EQ((co_await client.get(secure_url(s, "/plain", "localhost"))).body(), "secure");
        for (const char* const path :
             {"https://another.example/plain", "https://127.0.0.2/plain"}) {
            http::client_request r = asks(path);
            r.to = s.local();
            const std::error_code error = co_await error_of(client, r);
            EXPECT_TRUE(error == tls::errc::wrong_host || error == tls::errc::wrong_address);
        }
        // Nor does it ask another host over a connection that it has.
        http::client_request named = asks("https://localhost/plain");
        named.to = s.local();
        EXPECT_EQ((co_await client.send(named)).body(), "secure");
        named.url = "https://another.example/plain";
        EXPECT_EQ(co_await error_of(client, named), tls::errc::wrong_host);
    }(net.loop, *server));
}

TEST_P(secure_client_on, an_https_url_needs_a_security) {
    running_server server(options(), routes_of_all_kinds());
    network net(GetParam());
    net.run([](io::context& loop, std::string url) -> task<> {
        http::client client(loop);
        EXPECT_EQ(co_await error_of(client, asks(url)), std::errc::protocol_not_supported);
        EXPECT_EQ(client.connections_made(), 0u);
    }(net.loop, secure_url(*server, "/plain")));
}

TEST_P(secure_client_on, a_redirect_may_lead_into_tls_and_not_out_of_it) {
    http::server_options o = options_of(every_way[0]);
    o.more_listeners.push_back({io::loopback(0), context_of_server()});
    atomic<unsigned> in_the_clear{0}, encrypted{0};  // ports; a request comes later
    http::router r = routes_of_all_kinds();
    r.get("/up", [&](http::request&) {
        const std::string port = std::to_string(encrypted.load(relaxed));
        return http::response(302).add("Location", "https://127.0.0.1:" + port + "/plain");
    });
    r.get("/down", [&](http::request&) {
        const std::string port = std::to_string(in_the_clear.load(relaxed));
        return http::response(302).add("Location", "http://127.0.0.1:" + port + "/plain");
    });
    running_server server(std::move(o), std::move(r));
    in_the_clear.store(server->port(0), relaxed);
    encrypted.store(server->port(1), relaxed);
    network net(GetParam());
    net.run([](io::context& loop, http::server& s) -> task<> {
        http::client_options options = secure_client();
        options.redirects_max = 3;
        http::client client(loop, options);
        const std::string up = "http://127.0.0.1:" + std::to_string(s.port(0)) + "/up";
        EXPECT_EQ((co_await client.get(up)).body(), "secure");
        const std::string down = "https://127.0.0.1:" + std::to_string(s.port(1)) + "/down";
        EXPECT_EQ(co_await error_of(client, asks(down)), std::errc::protocol_not_supported);
    }(net.loop, *server));
}

// A server that answers one request with these bytes, and then ends with or without close_notify.
task<> answer_once(io::tcp::acceptor& acceptor, std::string_view answer, bool with_notify) {
    const tls::server_context context = context_of_server();
    tls::stream<> peer(co_await acceptor.accept(), context);
    co_await peer.handshake();
    std::array<std::byte, 1000> request;
    EXPECT_NE(co_await peer.receive(request), 0u);
    co_await peer.send_all(std::as_bytes(std::span(answer)));
    if (with_notify) co_await peer.shutdown_send();
    peer.next().shutdown_send();
    std::error_code end;
    while (co_await peer.receive(request, use_await[end]) != 0 && !end) {
    }
}

TEST_P(secure_client_on, an_answer_to_the_end_of_the_connection_needs_close_notify) {
    network net(GetParam());
    net.run([](io::context& loop) -> task<> {
        io::tcp::acceptor acceptor(loop, io::loopback(0));
        const std::string url = "https://" + acceptor.local().to_string() + "/";
        http::client client(loop, secure_client());
        const auto whole = [&]() -> task<> {
            const http::client_response answer = co_await client.get(url);
            EXPECT_EQ(answer.body(), "all of it");
        };
        const auto cut = [&]() -> task<> {
            EXPECT_EQ(co_await error_of(client, asks(url)), std::errc::connection_aborted);
        };
        const std::string_view text = "HTTP/1.1 200 OK\r\n\r\nall of it";
        co_await ex::when_all(answer_once(acceptor, text, true), whole());
        co_await ex::when_all(answer_once(acceptor, text, false), cut());
    }(net.loop));
}

TEST_P(secure_client_on, a_handshake_that_is_not_answered_ends_in_time_or_by_a_stop) {
    network net(GetParam());
    net.run([](io::context& loop) -> task<> {
        io::tcp::acceptor silent(loop, io::loopback(0));
        const std::string url = "https://" + silent.local().to_string() + "/";
        http::client_options o = secure_client();
        o.connect = 50ms;
        http::client client(loop, o);
        EXPECT_EQ(co_await error_of(client, asks(url)), std::errc::timed_out);
        o.connect = 1h;
        http::client patient(loop, o);
        const auto ask = [&]() -> task<> { (void)co_await patient.get(url); };
        const auto stop = [&]() -> task<> { co_await io::timer(loop).wait_for(20ms); };
        co_await ex::when_any(ask(), stop());
        EXPECT_EQ(patient.idle_connections(), 0u);
    }(net.loop));
}

TEST_P(secure_client_on, a_peer_without_tls_is_an_error) {
    running_server server(options_of(every_way[0]), routes_of_all_kinds());
    network net(GetParam());
    net.run([](io::context& loop, std::string url) -> task<> {
        http::client client(loop, secure_client());
        const std::error_code error = co_await error_of(client, asks(url));
        EXPECT_TRUE(error);
        EXPECT_EQ(&error.category(), &tls::tls_category()) << error.message();
    }(net.loop, secure_url(*server, "/plain")));
}

TEST_P(secure_client_on, kept_connections_are_used_again_until_the_server_says_close_notify) {
    std::optional<running_server> server(std::in_place, options(), routes_of_all_kinds());
    network net(GetParam());
    net.run([](io::context& loop, http::server& s) -> task<> {
        http::client client(loop, secure_client());
        for (int i = 0; i != 10; ++i) {
            EXPECT_EQ((co_await client.get(secure_url(s, "/plain"))).body(), "secure");
        }
        EXPECT_EQ(client.connections_made(), 1u);
        EXPECT_EQ((co_await client.get(secure_url(s, "/close"))).body(), "bye");
        EXPECT_EQ(client.idle_connections(), 0u);
    }(net.loop, **server));
}

}  // namespace
