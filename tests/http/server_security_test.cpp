// What a request tells of its connection's security: versions, names, and certificates of clients.
#include <coppice/http/admission.hpp>

#include "secure_parts.hpp"

#include <array>
#include <optional>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
using namespace coppice::test;

std::string told(const http::request& q) {
    const io::agreed_security* const agreed = q.security();
    if (agreed == nullptr) return q.is_secure() ? "nothing" : "in the clear";
    return agreed->version + ";" + agreed->protocol + ";" + agreed->host + ";" +
           agreed->peer_subject + ";" + (agreed->resumed ? "resumed" : "new") + ";" +
           (agreed->cipher.empty() ? "" : "cipher") + ";" +
           (agreed->peer_certificate.starts_with('\x30') ? "DER" : "");
}

http::router routes_that_tell() {
    http::router r;
    r.get("/", [](http::request& q) { return http::response::text(told(q)); });
    r.get("/pool", http::offload([](http::request& q) { return http::response::text(told(q)); }));
    r.post("/read", http::read_body([](http::request& q) -> task<http::response> {
               while (!(co_await q.incoming().read()).empty()) {
               }
               co_return http::response::text(told(q));
           }));
    return r;
}

http::server_options asks_clients(http::server_options o, tls::client_certificates how) {
    o.security = tls::server_context(
        {.certificates = {the_authority().issue({.names = "DNS:localhost,IP:127.0.0.1"})},
         .protocols = {"http/1.1"},
         .clients = how,
         .client_authorities = the_authority().pem()});
    return o;
}
http::client_options shows(tls::certificate own) {
    http::client_options o;
    o.security = tls::client_context({.system_authorities = false,
                                      .authorities = the_authority().pem(),
                                      .own = std::move(own),
                                      .protocols = {"http/1.1"}});
    return o;
}
tls::certificate certificate_of_client(const char* subject, long ends = 3600) {
    return the_authority().issue(
        {.names = "DNS:client.example", .subject = subject, .ends = ends, .usage = "clientAuth"});
}

class security_of_requests : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, security_of_requests, testing::ValuesIn(every_way), name_of_way);

TEST_P(security_of_requests, a_handler_sees_what_the_handshake_agreed_on) {
    http::server_options o =
        asks_clients(options_of(GetParam()), tls::client_certificates::request);
    o.more_listeners.push_back({io::loopback(0), nullptr});
    running_server server(std::move(o), routes_that_tell());
    network net(GetParam().backend);
    net.run([](io::context& loop, http::server& s) -> task<> {
        http::client alice(loop, shows(certificate_of_client("alice")));
        http::client stranger(loop, secure_client());
        const std::string at = "https://127.0.0.1:" + std::to_string(s.port(0));
        for (int i = 0; i != 2; ++i) {
            for (const char* const path : {"/", "/pool"}) {
                EXPECT_EQ((co_await alice.get(at + path)).body(),
                          "TLSv1.3;http/1.1;;CN=alice;new;cipher;DER");
                EXPECT_EQ((co_await stranger.get(at + path)).body(),
                          "TLSv1.3;http/1.1;;;new;cipher;");
            }
            EXPECT_EQ((co_await alice.post(at + "/read", "body")).body(),
                      "TLSv1.3;http/1.1;;CN=alice;new;cipher;DER");
        }
        http::client_request named = asks("https://localhost/");
        named.to = s.local(0);
        EXPECT_EQ((co_await stranger.send(named)).body(),
                  "TLSv1.3;http/1.1;localhost;;new;cipher;");
        EXPECT_EQ((co_await stranger.get(s.local(1), "/")).body(), "in the clear");
    }(net.loop, *server));
    EXPECT_EQ(server->statistics().exceptions, 0u);
}

TEST_P(security_of_requests, a_certificate_that_is_not_good_reaches_no_handler) {
    running_server server(asks_clients(options_of(GetParam()), tls::client_certificates::request),
                          routes_that_tell());
    network net(GetParam().backend);
    net.run([](io::context& loop, std::string url) -> task<> {
        const authority another("another");
        http::client of_another(loop, shows(another.issue({.usage = "clientAuth"})));
        http::client late(loop, shows(certificate_of_client("alice", -60)));
        EXPECT_TRUE(co_await error_of(of_another, asks(url)));
        EXPECT_TRUE(co_await error_of(late, asks(url)));
    }(net.loop, secure_url(*server, "/")));
    EXPECT_EQ(server->statistics().requests, 0u);
}

TEST(security_of_a_request, is_null_without_a_server) {
    http::request_head head;
    ASSERT_EQ(http::parse_head("GET / HTTP/1.1\r\nHost: a\r\n\r\n", head, {}).status,
              http::parse_status::complete);
    EXPECT_EQ(http::request(head, "").security(), nullptr);
}

class named_hosts : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, named_hosts, testing::Values(every_way[0], every_way[1]),
                         name_of_way);

// Sends requests for these hosts over one connection whose handshake names `named`. Returns their
// statuses.
task<std::string> statuses(io::context& loop, io::endpoint to, const char* named,
                           std::vector<std::string> hosts) {
    tls::stream stream(io::tcp::socket(loop), context_of_client(), named);
    co_await stream.next().connect(to);
    co_await stream.handshake();
    std::string sent, all;
    for (const std::string& host : hosts) sent += "GET / HTTP/1.1\r\n" + host + "\r\n\r\n";
    sent += "GET / HTTP/1.1\r\nHost: " + std::string(named) + "\r\nConnection: close\r\n\r\n";
    co_await stream.send_all(std::as_bytes(std::span(std::string_view(sent))));
    std::array<std::byte, 4096> some;
    while (const std::size_t n = co_await stream.receive(some)) {
        all.append(reinterpret_cast<const char*>(some.data()), n);
    }
    std::string found;
    for (std::size_t at = 0; (at = all.find("HTTP/1.1 ", at)) != all.npos; at += 9) {
        found += all.substr(at + 9, 3) + " ";
    }
    co_return found;
}

TEST_P(named_hosts, another_host_than_that_of_the_handshake_is_misdirected) {
    http::router r;
    r.use(std::make_shared<http::named_host>());
    r.get("/", [](http::request&) { return http::response(204); });
    http::server_options o = secure(options_of(GetParam()));
    o.more_listeners.push_back({io::loopback(0), nullptr});
    running_server server(std::move(o), std::move(r));
    network net(GetParam().backend);
    net.run([](io::context& loop, http::server& s) -> task<> {
        EXPECT_EQ(co_await statuses(loop, s.local(0), "localhost",
                                    {"Host: LOCALHOST:1", "Host: localhost.", "Host: localhost.:80",
                                     "Host: other", "Host: localhost.other", "Host: *"}),
                  "204 204 204 421 421 421 204 ");
        // The name of an address is not sent.
        EXPECT_EQ(co_await statuses(loop, s.local(0), "127.0.0.1", {"Host: any"}), "204 204 ");
        http::client client(loop);
        EXPECT_EQ((co_await client.get(s.local(1), "/")).status(), 204);
    }(net.loop, *server));
}

}  // namespace
