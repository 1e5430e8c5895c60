// http::client resumes TLS: what a later connection offers, and what it does not.
#include "secure_parts.hpp"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <climits>
#include <memory>
#include <optional>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
using namespace coppice::test;

class resuming_client : public testing::TestWithParam<io::backend> {
protected:
    // Serves with this context until another one is set.
    void serve(tls::server_context first) {
        slot = std::make_shared<tls::server_context_slot>(std::move(first));
        http::server_options o = options_of(every_way[0]);
        o.security = tls::server_security_of(slot);
        http::router r;
        r.get("/", [](http::request& q) {
            return http::response::text(std::string(q.security()->resumed ? "resumed " : "new ") +
                                        q.security()->peer_subject);
        });
        server.emplace(std::move(o), std::move(r));
    }
    std::string url(std::string_view host = "127.0.0.1") { return secure_url(**server, "/", host); }

    std::shared_ptr<tls::server_context_slot> slot;
    std::optional<running_server> server;
};
INSTANTIATE_TEST_SUITE_P(rings, resuming_client,
                         testing::Values(io::backend::epoll, io::backend::uring), name_of_ring);

// Asks over a new connection.
task<std::string> ask_anew(http::client& client, std::string url) {
    client.close_idle();
    co_return std::string((co_await client.get(url)).body());
}

TEST_P(resuming_client, each_later_connection_to_a_host_resumes) {
    serve(context_of_server());
    network net(GetParam());
    net.run([](io::context& loop, std::string url, std::string other) -> task<> {
        http::client client(loop, secure_client());
        EXPECT_EQ(co_await ask_anew(client, url), "new ");
        for (int i = 0; i != 3; ++i) EXPECT_EQ(co_await ask_anew(client, url), "resumed ");
        EXPECT_EQ(client.sessions(), 1u);
        EXPECT_EQ(co_await ask_anew(client, other), "new ");  // nothing of the other host
        EXPECT_EQ(co_await ask_anew(client, other), "resumed ");
        EXPECT_EQ(client.sessions(), 2u);
        EXPECT_EQ(client.connections_made(), 6u);
        EXPECT_EQ(client.connections_resumed(), 4u);
        http::client another(loop, secure_client());
        EXPECT_EQ(co_await ask_anew(another, url), "new ");
    }(net.loop, url(), url("localhost")));
}

TEST_P(resuming_client, an_option_switches_it_off) {
    serve(context_of_server());
    network net(GetParam());
    net.run([](io::context& loop, std::string url) -> task<> {
        http::client_options o = secure_client();
        o.sessions_max = 0;
        http::client client(loop, o);
        for (int i = 0; i != 3; ++i) EXPECT_EQ(co_await ask_anew(client, url), "new ");
        EXPECT_EQ(client.sessions(), 0u);
        EXPECT_EQ(client.connections_resumed(), 0u);
    }(net.loop, url()));
}

TEST_P(resuming_client, the_sessions_are_bounded) {
    serve(context_of_server("DNS:*.hosts.example"));
    network net(GetParam());
    net.run([](io::context& loop, io::endpoint to) -> task<> {
        http::client_options o = secure_client();
        o.sessions_max = 2;
        http::client client(loop, o);
        const auto ask = [&](const char* host) -> task<std::string> {
            client.close_idle();
            http::client_request r = asks("https://" + std::string(host) + ".hosts.example/");
            r.to = to;
            co_return std::string((co_await client.send(r)).body());
        };
        for (const char* const host : {"a", "b", "c"}) EXPECT_EQ(co_await ask(host), "new ");
        EXPECT_EQ(client.sessions(), 2u);
        EXPECT_EQ(co_await ask("c"), "resumed ");
        EXPECT_EQ(co_await ask("b"), "resumed ");
        EXPECT_EQ(co_await ask("a"), "new ");
        EXPECT_EQ(client.sessions(), 2u);
    }(net.loop, (*server)->local()));
}

TEST_P(resuming_client, tickets_that_are_no_longer_good_cost_a_full_handshake) {
    const tls::server_context present = context_of_server();
    serve(present);
    network net(GetParam());
    net.run([](io::context& loop, std::string url, const tls::server_context& server) -> task<> {
        http::client client(loop, secure_client());
        EXPECT_EQ(co_await ask_anew(client, url), "new ");
        server.rotate_ticket_key();
        EXPECT_EQ(co_await ask_anew(client, url), "resumed ");
        server.rotate_ticket_key();
        server.rotate_ticket_key();
        EXPECT_EQ(co_await ask_anew(client, url), "new ");
        EXPECT_EQ(co_await ask_anew(client, url), "resumed ");
    }(net.loop, url(), present));
}

TEST_P(resuming_client, another_certificate_is_judged_when_the_session_is_not_taken) {
    serve(context_of_server());
    network net(GetParam());
    net.run([](io::context& loop, std::string url, tls::server_context_slot& context) -> task<> {
        http::client client(loop, secure_client());
        EXPECT_EQ(co_await ask_anew(client, url), "new ");
        context.set(tls::server_context(
            {.certificates = {the_authority().issue({.names = "IP:127.0.0.1", .ends = -60})}}));
        client.close_idle();
        EXPECT_EQ(co_await error_of(client, asks(url)), tls::errc::certificate_expired);
        EXPECT_EQ(client.sessions(), 0u);
        EXPECT_EQ(client.connections_resumed(), 0u);
    }(net.loop, url(), *slot));
}

TEST_P(resuming_client, a_handler_still_sees_the_certificate_of_the_client) {
    serve(tls::server_context({.certificates = {the_authority().issue({.names = "IP:127.0.0.1"})},
                               .clients = tls::client_certificates::require,
                               .client_authorities = the_authority().pem()}));
    network net(GetParam());
    net.run([](io::context& loop, std::string url) -> task<> {
        http::client_options o;
        o.security = tls::client_context(
            {.system_authorities = false,
             .authorities = the_authority().pem(),
             .own = the_authority().issue({.subject = "alice", .usage = "clientAuth"})});
        http::client client(loop, o);
        EXPECT_EQ(co_await ask_anew(client, url), "new CN=alice");
        EXPECT_EQ(co_await ask_anew(client, url), "resumed CN=alice");
        // A client with another context has nothing of the first one's.
        http::client stranger(loop, secure_client());
        EXPECT_TRUE(co_await error_of(stranger, asks(url)));
    }(net.loop, url()));
}

// A server of OpenSSL, which speaks nothing newer than TLS 1.2. Says of each connection whether it
// has resumed. Knows nothing of the first three any more when the fourth comes.
class server_of_tls_1_2 {
public:
    server_of_tls_1_2(bool tickets, int connections)
        : context_(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free) {
        const tls::certificate own = the_authority().issue({.names = "IP:127.0.0.1"});
        const std::unique_ptr<BIO, decltype(&BIO_free)> chain(
            BIO_new_mem_buf(own.chain.data(), static_cast<int>(own.chain.size())), &BIO_free);
        const std::unique_ptr<BIO, decltype(&BIO_free)> key(
            BIO_new_mem_buf(own.key.data(), static_cast<int>(own.key.size())), &BIO_free);
        X509* const certificate = PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr);
        EVP_PKEY* const secret = PEM_read_bio_PrivateKey(key.get(), nullptr, nullptr, nullptr);
        EXPECT_EQ(SSL_CTX_use_certificate(context_.get(), certificate), 1);
        EXPECT_EQ(SSL_CTX_use_PrivateKey(context_.get(), secret), 1);
        X509_free(certificate);
        EVP_PKEY_free(secret);
        SSL_CTX_set_max_proto_version(context_.get(), TLS1_2_VERSION);
        const unsigned char name = 's';
        SSL_CTX_set_session_id_context(context_.get(), &name, 1);
        if (!tickets) SSL_CTX_set_options(context_.get(), SSL_OP_NO_TICKET);
        server_.emplace([this](accepted& a) { serve(a.fd); }, connections);
    }
    std::string url() const { return "https://" + server_->where.to_string() + "/"; }

private:
    void serve(int fd) {
        if (++served_ == 4) {
            SSL_CTX_flush_sessions(context_.get(), LONG_MAX);
            unsigned char keys[80] = {1};
            SSL_CTX_set_tlsext_ticket_keys(context_.get(), keys, sizeof keys);
        }
        const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context_.get()), &SSL_free);
        SSL_set_fd(ssl.get(), fd);
        ASSERT_EQ(SSL_accept(ssl.get()), 1);
        char asked[4096];
        if (SSL_read(ssl.get(), asked, sizeof asked) <= 0) return;
        const std::string body = SSL_session_reused(ssl.get()) != 0 ? "resumed" : "new";
        const std::string answer =
            "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
        SSL_write(ssl.get(), answer.data(), static_cast<int>(answer.size()));
        while (SSL_read(ssl.get(), asked, sizeof asked) > 0) {
        }
        SSL_shutdown(ssl.get());
    }

    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
    int served_ = 0;
    std::optional<server_of> server_;
};

TEST_P(resuming_client, a_session_of_tls_1_2_is_offered_until_the_server_makes_a_new_one) {
    for (const bool tickets : {true, false}) {
        server_of_tls_1_2 peer(tickets, 5);
        network net(GetParam());
        net.run([](io::context& loop, std::string url) -> task<> {
            http::client client(loop, secure_client());
            EXPECT_EQ(co_await ask_anew(client, url), "new");
            for (int i = 0; i != 2; ++i) EXPECT_EQ(co_await ask_anew(client, url), "resumed");
            EXPECT_EQ(client.sessions(), 1u);
            EXPECT_EQ(co_await ask_anew(client, url), "new");
            EXPECT_EQ(client.sessions(), 1u);
            EXPECT_EQ(co_await ask_anew(client, url), "resumed");
            EXPECT_EQ(client.connections_made(), 5u);
            EXPECT_EQ(client.connections_resumed(), 3u);
        }(net.loop, peer.url()));
    }
}

}  // namespace
