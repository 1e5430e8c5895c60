// tls/engine.hpp: handshakes in memory: versions, names, protocols, and what verification refuses.
#include "pair.hpp"

#include <coppice/tls/engine.hpp>
#include <coppice/tls/error.hpp>

#include <gtest/gtest.h>

#include <openssl/ssl.h>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

using namespace coppice;
using namespace coppice::test;

std::error_code error_of_client(const usual& u, std::string_view host) {
    joined_engines both = u.join(host);
    both.shake();
    EXPECT_FALSE(both.server.engine.is_ready() && both.client.engine.is_ready());
    EXPECT_EQ(both.server_end.what, tls::step::failed);  // the alert has told it
    return both.client_end.error;
}

TEST(tls_engine, both_agree_on_tls_1_3_and_pass_bytes_both_ways) {
    joined_engines both = usual().join();
    both.shake();
    ASSERT_TRUE(both.is_ready()) << both.client_end.error.message();
    EXPECT_EQ(both.client.engine.version(), "TLSv1.3");
    EXPECT_EQ(both.server.engine.version(), "TLSv1.3");
    EXPECT_EQ(both.server.engine.host(), "server.example");
    const std::string text(100'000, 'x');
    EXPECT_EQ(both.pass(both.client, both.server, text), text);
    EXPECT_EQ(both.pass(both.server, both.client, "and back"), "and back");
    EXPECT_FALSE(both.client.engine.resumed());
    EXPECT_FALSE(both.client.engine.peer_certificate().empty());
    EXPECT_EQ(both.client.engine.peer_subject(), "CN=server");
}

// A client of OpenSSL alone, for what a client of the library does not do.
std::error_code server_against(const tls::server_options& options, int max_version,
                               const char* ciphers, std::string& version) {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
        SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
    SSL_CTX_set_security_level(context.get(), 0);
    SSL_CTX_set_min_proto_version(context.get(), TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context.get(), max_version);
    if (ciphers != nullptr) SSL_CTX_set_cipher_list(context.get(), ciphers);
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), &SSL_free);
    BIO* const in = BIO_new(BIO_s_mem());
    BIO* const out = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl.get(), in, out);
    SSL_set_connect_state(ssl.get());
    side server{tls::engine(tls::server_context(options))};
    tls::progress p;
    for (int i = 0; i != 10; ++i) {
        SSL_do_handshake(ssl.get());
        server.come(text_in(out));
        (void)BIO_reset(out);
        p = server.shake();
        const std::string written = server.take_written();
        BIO_write(in, written.data(), static_cast<int>(written.size()));
    }
    version = server.engine.version();
    return p.error;
}

TEST(tls_engine, a_server_takes_tls_1_2_with_forward_secrecy_and_nothing_older) {
    const usual u;
    std::string version;
    EXPECT_FALSE(server_against(u.server, TLS1_2_VERSION, nullptr, version));
    EXPECT_EQ(version, "TLSv1.2");
    EXPECT_TRUE(server_against(u.server, TLS1_1_VERSION, nullptr, version));
    EXPECT_TRUE(server_against(u.server, TLS1_VERSION, nullptr, version));
    EXPECT_TRUE(server_against(u.server, TLS1_2_VERSION, "AES128-GCM-SHA256", version));
    EXPECT_TRUE(server_against(u.server, TLS1_2_VERSION, "ECDHE-ECDSA-AES128-SHA", version));
    EXPECT_FALSE(
        server_against(u.server, TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256", version));
    tls::server_options newest = u.server;
    newest.version_min = tls::version::tls_1_3;
    EXPECT_TRUE(server_against(newest, TLS1_2_VERSION, nullptr, version));
}

TEST(tls_engine, a_client_refuses_another_host_and_names_that_only_look_alike) {
    usual u;
    u.server.certificates = {
        u.issuer.issue({.names = "DNS:server.example,DNS:*.wild.example,IP:127.0.0.1"})};
    EXPECT_EQ(error_of_client(u, "other.example"), tls::errc::wrong_host);
    EXPECT_EQ(error_of_client(u, "server.example.org"), tls::errc::wrong_host);
    EXPECT_EQ(error_of_client(u, "a.server.example"), tls::errc::wrong_host);
    EXPECT_EQ(error_of_client(u, "wild.example"), tls::errc::wrong_host);
    EXPECT_EQ(error_of_client(u, "a.b.wild.example"), tls::errc::wrong_host);
    EXPECT_EQ(error_of_client(u, "127.0.0.2"), tls::errc::wrong_address);
    for (const char* const good :
         {"server.example", "SERVER.example.", "a.wild.example", "127.0.0.1"}) {
        joined_engines both = u.join(good);
        both.shake();
        EXPECT_TRUE(both.is_ready()) << good;
    }
}

TEST(tls_engine, the_subject_of_a_certificate_does_not_count_as_a_name) {
    usual u;
    u.server.certificates = {u.issuer.issue({.names = "", .subject = "server.example"})};
    EXPECT_EQ(error_of_client(u, "server.example"), tls::errc::wrong_host);
}

TEST(tls_engine, a_client_refuses_certificates_that_are_late_early_unknown_or_self_signed) {
    usual u;
    u.server.certificates = {u.issuer.issue({.begins = -100, .ends = -50})};
    EXPECT_EQ(error_of_client(u, "server.example"), tls::errc::certificate_expired);
    u.server.certificates = {u.issuer.issue({.begins = 50, .ends = 100})};
    EXPECT_EQ(error_of_client(u, "server.example"), tls::errc::certificate_not_yet_valid);
    u.server.certificates = {authority("another").issue()};
    EXPECT_EQ(error_of_client(u, "server.example"), tls::errc::unknown_issuer);
    u.server.certificates = {authority::self_signed()};
    const std::error_code error = error_of_client(u, "server.example");
    EXPECT_EQ(error, tls::errc::self_signed);
    EXPECT_EQ(error.message(), "certificate verify failed: self-signed certificate");
    EXPECT_STREQ(error.category().name(), "tls");
}

TEST(tls_engine, the_system_does_not_trust_an_authority_of_the_test) {
    usual u;
    u.client = {};  // the system's authorities
    EXPECT_EQ(error_of_client(u, "server.example"), tls::errc::unknown_issuer);
}

TEST(tls_engine, a_server_is_told_by_the_alert_why_its_client_refused) {
    usual u;
    u.server.certificates = {authority("another").issue()};
    joined_engines both = u.join();
    both.shake();
    EXPECT_EQ(both.server_end.error.message(), "tlsv1 alert unknown ca");
}

TEST(tls_engine, a_client_goes_on_without_verification_only_if_it_says_so) {
    usual u;
    u.server.certificates = {authority::self_signed()};
    for (const char* const host : {"server.example", "", "127.0.0.1"}) {
        joined_engines both(tls::engine(tls::client_context(u.client), host, tls::no_verification),
                            tls::engine(tls::server_context(u.server)));
        both.shake();
        EXPECT_TRUE(both.is_ready());
        EXPECT_EQ(both.server.engine.host(),
                  std::string_view(host) == "server.example" ? host : "");
    }
}

TEST(tls_engine, a_client_refuses_text_that_is_no_host) {
    const tls::client_context context{tls::client_options{.system_authorities = false}};
    for (const std::string_view bad :
         {std::string_view(""), std::string_view("."), std::string_view("a..b"),
          std::string_view("a b"), std::string_view("*.example"), std::string_view("host:443"),
          std::string_view("127.1"), std::string_view("a\0.example", 10),
          std::string_view("127.0.0.1\0", 10), std::string_view("[::1]")}) {
        EXPECT_THROW(tls::engine(context, bad), std::invalid_argument) << bad;
    }
    EXPECT_THROW(tls::engine(context, std::string(254, 'a')), std::invalid_argument);
    EXPECT_NO_THROW(tls::engine(context, "::1"));
    EXPECT_NO_THROW(tls::engine(context, "xn--bcher-kva.example"));
}

TEST(tls_engine, a_server_has_a_certificate_for_each_name_and_the_first_for_others) {
    usual u;
    u.server.certificates = {u.issuer.issue({.names = "DNS:first.example", .subject = "first"}),
                             u.issuer.issue({.names = "DNS:second.example", .subject = "second"}),
                             u.issuer.issue({.names = "DNS:*.third.example", .subject = "third"})};
    const auto shown_for = [&u](std::string_view host) {
        joined_engines both(tls::engine(tls::client_context(u.client), host, tls::no_verification),
                            tls::engine(tls::server_context(u.server)));
        both.shake();
        return both.client.engine.peer_subject();
    };
    EXPECT_EQ(shown_for("first.example"), "CN=first");
    EXPECT_EQ(shown_for("SECOND.example"), "CN=second");
    EXPECT_EQ(shown_for("a.third.example"), "CN=third");
    EXPECT_EQ(shown_for("a.b.third.example"), "CN=first");
    EXPECT_EQ(shown_for("third.example"), "CN=first");
    EXPECT_EQ(shown_for(""), "CN=first");
    EXPECT_EQ(shown_for("unknown.example"), "CN=first");
    u.server.certificates[1].names = {"named.example"};
    EXPECT_EQ(shown_for("named.example"), "CN=second");
    EXPECT_EQ(shown_for("second.example"), "CN=first");
    u.server.known_names_only = true;
    EXPECT_EQ(shown_for("unknown.example"), "");
    EXPECT_EQ(shown_for(""), "CN=first");  // names no host
    EXPECT_EQ(error_of_client(u, "unknown.example").message(), "tlsv1 unrecognized name");
}

TEST(tls_engine, both_agree_on_the_servers_preferred_protocol) {
    usual u;
    const auto agreed = [&u](std::vector<std::string> client, std::vector<std::string> server) {
        u.client.protocols = std::move(client);
        u.server.protocols = std::move(server);
        joined_engines both = u.join();
        both.shake();
        EXPECT_EQ(both.client.engine.protocol(), both.server.engine.protocol());
        if (both.client_end.error) {
            EXPECT_EQ(both.client_end.error, tls::errc::no_protocol);
            EXPECT_EQ(both.server_end.error, tls::errc::no_protocol);
            return std::string("refused");
        }
        return std::string(both.client.engine.protocol());
    };
    EXPECT_EQ(agreed({"http/1.1", "h2"}, {"h2", "http/1.1"}), "h2");
    EXPECT_EQ(agreed({"http/1.1"}, {"h2", "http/1.1"}), "http/1.1");
    EXPECT_EQ(agreed({}, {"h2"}), "");
    EXPECT_EQ(agreed({"h2"}, {}), "");
    EXPECT_EQ(agreed({"other"}, {"h2", "http/1.1"}), "refused");
}

TEST(tls_engine, a_server_asks_for_certificates_of_clients_and_judges_them) {
    usual u;
    const authority of_clients("clients");
    u.server.client_authorities = of_clients.pem();
    const auto shown = [&u](tls::client_certificates mode, tls::certificate own) {
        u.server.clients = mode;
        u.client.own = std::move(own);
        joined_engines both = u.join();
        both.shake();
        if (both.server_end.error) return both.server_end.error.message();
        return both.server.engine.peer_subject();
    };
    using enum tls::client_certificates;
    const tls::certificate good = of_clients.issue({.names = "", .subject = "alice"});
    const tls::certificate bad = u.issuer.issue({.names = "", .subject = "mallory"});
    EXPECT_EQ(shown(ignore, good), "");
    EXPECT_EQ(shown(request, {}), "");
    EXPECT_EQ(shown(request, good), "CN=alice");
    EXPECT_EQ(shown(require, good), "CN=alice");
    EXPECT_EQ(shown(require, {}), "the peer did not return a certificate");
    const char* const unknown = "certificate verify failed: unable to get local issuer certificate";
    EXPECT_EQ(shown(request, bad), unknown);
    EXPECT_EQ(shown(require, bad), unknown);
}

TEST(tls_engine, a_server_staples_the_response_of_ocsp_that_it_was_given) {
    usual u;
    u.server.certificates[0].ocsp = "any bytes";
    u.client.ask_for_ocsp = true;
    joined_engines both = u.join();
    both.shake();
    ASSERT_TRUE(both.is_ready());
    EXPECT_EQ(both.client.engine.ocsp(), "any bytes");
}

}  // namespace
