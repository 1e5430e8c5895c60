// Certificates of hostile or careless peers: names that only look right, and issuers that are none.
#include "pair.hpp"

#include <coppice/tls/engine.hpp>
#include <coppice/tls/error.hpp>

#include <gtest/gtest.h>

#include <openssl/x509_vfy.h>
#include <chrono>
#include <string>
#include <system_error>

namespace {

using namespace coppice;
using namespace coppice::test;

// What a client says of a server's certificate.
std::error_code judged(const usual& u, const tls::certificate& shown, std::string_view host) {
    joined_engines both(tls::engine(tls::client_context(u.client), host),
                        tls::engine(tls::server_context({.certificates = {shown}})));
    both.shake();
    EXPECT_EQ(both.is_ready(), !both.client_end.error);
    return both.client_end.error;
}
std::error_code judged(const usual& u, const wish& w, std::string_view host) {
    return judged(u, u.issuer.issue(w), host);
}
std::error_code result_of_x509(int result) {
    return {static_cast<int>(tls::errc::verification_base) + result, tls::tls_category()};
}

TEST(tls_certificates, a_star_stands_for_one_whole_label_and_nothing_else) {
    const usual u;
    const wish whole{.names = "DNS:*.wild.example"};
    EXPECT_FALSE(judged(u, whole, "a.wild.example"));
    EXPECT_FALSE(judged(u, whole, "xn--bcher-kva.wild.example"));
    EXPECT_EQ(judged(u, whole, "wild.example"), tls::errc::wrong_host);
    EXPECT_EQ(judged(u, whole, "a.b.wild.example"), tls::errc::wrong_host);
    EXPECT_EQ(judged(u, whole, "a.wild.example.org"), tls::errc::wrong_host);
    for (const char* const names :
         {"DNS:w*.wild.example", "DNS:*w.wild.example", "DNS:w*w.wild.example"})
        EXPECT_EQ(judged(u, {.names = names}, "ww.wild.example"), tls::errc::wrong_host) << names;
    EXPECT_EQ(judged(u, {.names = "DNS:a.*.example"}, "a.wild.example"), tls::errc::wrong_host);
    EXPECT_EQ(judged(u, {.names = "DNS:*.*.example"}, "a.wild.example"), tls::errc::wrong_host);
    EXPECT_EQ(judged(u, {.names = "DNS:*.example"}, "server.example"), tls::errc::wrong_host);
    EXPECT_EQ(judged(u, {.names = "DNS:*"}, "server"), tls::errc::wrong_host);
    EXPECT_EQ(judged(u, {.names = "DNS:*"}, "server.example"), tls::errc::wrong_host);
}

TEST(tls_certificates, a_name_does_not_end_at_a_zero_byte) {
    const usual u;
    const auto name_of = [](std::string_view text) { return wish{.raw_name = std::string(text)}; };
    using std::operator""sv;
    EXPECT_EQ(judged(u, name_of("server.example\0.evil.example"sv), "server.example"),
              tls::errc::wrong_host);
    EXPECT_EQ(judged(u, name_of("server.example\0"sv), "server.example"), tls::errc::wrong_host);
    EXPECT_EQ(judged(u, name_of("*.example.\0.org"sv), "a.example"), tls::errc::wrong_host);
    EXPECT_FALSE(judged(u, name_of("server.example"sv), "server.example"));
}

TEST(tls_certificates, an_address_is_proved_by_an_address_only) {
    const usual u;
    EXPECT_FALSE(judged(u, {.names = "IP:127.0.0.1"}, "127.0.0.1"));
    EXPECT_FALSE(judged(u, {.names = "IP:::1"}, "::1"));
    EXPECT_FALSE(judged(u, {.names = "IP:::1"}, "0:0:0:0:0:0:0:1"));
    EXPECT_EQ(judged(u, {.names = "DNS:127.0.0.1"}, "127.0.0.1"), tls::errc::wrong_address);
    EXPECT_EQ(judged(u, {.names = "DNS:*.0.0.1"}, "127.0.0.1"), tls::errc::wrong_address);
    EXPECT_EQ(judged(u, {.names = "", .subject = "127.0.0.1"}, "127.0.0.1"),
              tls::errc::wrong_address);
    EXPECT_EQ(judged(u, {.names = "IP:127.0.0.1"}, "::ffff:127.0.0.1"), tls::errc::wrong_address);
    EXPECT_EQ(judged(u, {.names = "IP:127.0.0.1"}, "localhost"), tls::errc::wrong_host);
}

TEST(tls_certificates, only_an_authority_issues_and_only_a_servers_certificate_is_a_servers) {
    const usual u;
    EXPECT_FALSE(judged(u, u.issuer.issue_through_another(true), "server.example"));
    EXPECT_EQ(judged(u, u.issuer.issue_through_another(false), "server.example"),
              result_of_x509(X509_V_ERR_INVALID_CA));
    EXPECT_FALSE(judged(u, {.usage = "serverAuth"}, "server.example"));
    EXPECT_EQ(judged(u, {.usage = "clientAuth"}, "server.example"), tls::errc::wrong_purpose);
    // The chain is the server's to send: without the certificate between, there is no way up.
    tls::certificate alone = u.issuer.issue_through_another(true);
    alone.chain.resize(alone.chain.find("-----END CERTIFICATE-----\n") + 26);
    EXPECT_EQ(judged(u, alone, "server.example"), tls::errc::unknown_issuer);
    // An authority with the same name and another key.
    EXPECT_TRUE(judged(u, authority("authority").issue(), "server.example"));
}

TEST(tls_certificates, a_client_that_has_refused_a_certificate_sends_nothing_and_keeps_no_session) {
    const usual u;
    EXPECT_TRUE(judged(u, {.begins = -100, .ends = -50}, "server.example"));
    // The first thing that is wrong is what the error says: nothing of it is trusted.
    EXPECT_EQ(judged(u, {.begins = -100, .ends = -50}, "other.example"), tls::errc::wrong_host);
    joined_engines both(
        tls::engine(tls::client_context(u.client), "server.example"),
        tls::engine(tls::server_context({.certificates = {authority::self_signed()}})));
    both.shake();
    EXPECT_FALSE(both.client.engine.is_ready());
    EXPECT_FALSE(both.client.engine.latest_session());
    EXPECT_EQ(both.client.engine.send(bytes_in("secret")).error, tls::errc::self_signed);
    EXPECT_TRUE(both.client.receive_all().empty());
}

TEST(tls_certificates, a_server_judges_a_clients_certificate_by_time_and_by_purpose) {
    usual u;
    u.server.clients = tls::client_certificates::require;
    const authority of_clients("clients");
    u.server.client_authorities = of_clients.pem();
    const auto judged_by_server = [&](const wish& w) {
        u.client.own = of_clients.issue(w);
        joined_engines both = u.join();
        both.shake();
        return both.server_end.error;
    };
    EXPECT_FALSE(judged_by_server({.names = "", .usage = "clientAuth"}));
    EXPECT_EQ(judged_by_server({.names = "", .usage = "serverAuth"}), tls::errc::wrong_purpose);
    EXPECT_EQ(judged_by_server({.names = "", .begins = -100, .ends = -50}),
              tls::errc::certificate_expired);
    EXPECT_EQ(judged_by_server({.names = "", .begins = 50, .ends = 100}),
              tls::errc::certificate_not_yet_valid);
}

TEST(tls_certificates, a_server_refuses_a_client_whose_certificate_was_revoked) {
    usual u;
    u.server.clients = tls::client_certificates::request;
    const authority of_clients("clients");
    u.server.client_authorities = of_clients.pem();
    const tls::certificate good = of_clients.issue({.names = "", .subject = "good"});
    const tls::certificate bad = of_clients.issue({.names = "", .subject = "bad"});
    const auto judged_by_server = [&](const tls::certificate& own) {
        u.client.own = own;
        joined_engines both = u.join();
        both.shake();
        return both.server_end.error;
    };
    EXPECT_FALSE(judged_by_server(bad));
    u.server.client_revocations = of_clients.revoke({bad});
    EXPECT_FALSE(judged_by_server(good));
    EXPECT_EQ(judged_by_server(bad), tls::errc::certificate_revoked);
    EXPECT_FALSE(judged_by_server({}));  // a client that shows none
    // A list that is old, or of another authority, says nothing of today.
    u.server.client_revocations = of_clients.revoke({}, -1);
    EXPECT_EQ(judged_by_server(good), result_of_x509(X509_V_ERR_CRL_HAS_EXPIRED));
    u.server.client_revocations = authority("others").revoke({});
    EXPECT_EQ(judged_by_server(good), result_of_x509(X509_V_ERR_UNABLE_TO_GET_CRL));
    // One text has the lists of all authorities.
    u.server.client_revocations += of_clients.revoke({bad});
    EXPECT_FALSE(judged_by_server(good));
    EXPECT_EQ(judged_by_server(bad), tls::errc::certificate_revoked);
}

TEST(tls_certificates, know_the_time_in_which_their_whole_chain_is_valid) {
    using std::chrono::seconds;
    const authority issuer;
    const auto now = std::chrono::floor<seconds>(std::chrono::system_clock::now());
    const auto is_near = [&](std::chrono::sys_seconds at, long offset) {
        return std::chrono::abs(at - now - seconds(offset)) < seconds(120);
    };
    const tls::validity one = issuer.issue({.begins = -4000, .ends = 5000}).valid();
    EXPECT_TRUE(is_near(one.from, -4000));
    EXPECT_TRUE(is_near(one.until, 5000));
    tls::certificate chain = issuer.issue({.begins = -9000, .ends = 9000});
    chain.chain += issuer.issue({.begins = -8000, .ends = -1000}).chain;
    EXPECT_TRUE(is_near(chain.valid().from, -8000));
    EXPECT_TRUE(is_near(chain.valid().until, -1000));
    for (const char* const text : {"", "no PEM"}) {
        const tls::certificate none{.chain = text, .key = ""};
        EXPECT_THROW((void)none.valid(), std::system_error) << text;
    }
    chain.chain += "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    EXPECT_THROW((void)chain.valid(), std::system_error);
}

}  // namespace
