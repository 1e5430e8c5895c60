// Tickets, their keys, and reloads: what a client may resume, and what it may not.
#include "pair.hpp"

#include <coppice/tls/context.hpp>
#include <coppice/tls/engine.hpp>
#include <coppice/tls/error.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;

struct resuming : usual {
    // Connects; the session of the connection is then in `last`.
    bool connect(const tls::server_context& of_server, std::string_view host = "server.example") {
        joined_engines both(tls::engine(of_client(), host), tls::engine(of_server));
        (void)both.client.engine.resume(last);
        both.shake();
        EXPECT_TRUE(both.is_ready()) << both.client_end.error.message();
        EXPECT_EQ(both.pass(both.server, both.client, "x"), "x");  // brings the tickets of TLS 1.3
        EXPECT_EQ(both.client.engine.resumed(), both.server.engine.resumed());
        last = both.client.engine.latest_session();
        subject = both.server.engine.peer_subject();
        return both.client.engine.resumed();
    }
    const tls::client_context& of_client() {
        if (!made) made = std::make_unique<tls::client_context>(client);
        return *made;
    }
    std::unique_ptr<tls::client_context> made;
    tls::session last;
    std::string subject;
};

TEST(tls_resumption, a_client_resumes_with_a_ticket_and_gets_new_ones) {
    resuming r;
    const tls::server_context server(r.server);
    EXPECT_FALSE(r.connect(server));
    EXPECT_TRUE(r.last);
    for (int i = 0; i != 5; ++i) EXPECT_TRUE(r.connect(server));
}

TEST(tls_resumption, a_replaced_key_opens_tickets_once_more) {
    resuming r;
    const tls::server_context server(r.server);
    EXPECT_FALSE(r.connect(server));
    const tls::session old = r.last;
    server.rotate_ticket_key();
    EXPECT_TRUE(r.connect(server));
    r.last = old;
    server.rotate_ticket_key();
    EXPECT_FALSE(r.connect(server));
}

TEST(tls_resumption, no_tickets_are_made_if_their_age_is_zero) {
    resuming r;
    r.server.ticket_key_age = {};
    const tls::server_context server(r.server);
    EXPECT_FALSE(r.connect(server));
    EXPECT_FALSE(r.last);
}

TEST(tls_resumption, a_key_that_has_become_old_is_replaced) {
    resuming r;
    r.server.ticket_key_age = std::chrono::nanoseconds(1);
    const tls::server_context server(r.server);
    EXPECT_FALSE(r.connect(server));
    EXPECT_FALSE(r.connect(server));
}

TEST(tls_resumption, a_key_may_be_kept_forever) {
    resuming r;
    r.server.ticket_key_age = std::chrono::nanoseconds::max();
    const tls::server_context server(r.server);
    EXPECT_FALSE(r.connect(server));
    EXPECT_TRUE(r.connect(server));
    server.rotate_ticket_key();
    EXPECT_TRUE(r.connect(server));
}

TEST(tls_resumption, a_session_is_of_one_context_one_host_and_one_verification) {
    resuming r;
    r.server.certificates = {r.issuer.issue({.names = "DNS:server.example,DNS:other.example"})};
    const tls::server_context server(r.server);
    EXPECT_FALSE(r.connect(server));
    const tls::session made = r.last;
    tls::engine again(r.of_client(), "SERVER.example");
    EXPECT_TRUE(again.resume(made));
    tls::engine other(r.of_client(), "other.example");
    EXPECT_FALSE(other.resume(made));
    tls::engine unverified(r.of_client(), "server.example", tls::no_verification);
    EXPECT_FALSE(unverified.resume(made));
    const tls::client_context second(r.client);
    tls::engine of_second(second, "server.example");
    EXPECT_FALSE(of_second.resume(made));
    EXPECT_FALSE(again.resume(tls::session()));
    EXPECT_FALSE(r.connect(server, "other.example"));
}

// Otherwise a session without verification would bring an unverified server into a verified
// connection.
TEST(tls_resumption, a_session_without_verification_does_not_stand_for_one_with_it) {
    resuming r;
    r.server.certificates = {authority::self_signed()};
    const tls::server_context server(r.server);
    joined_engines first(tls::engine(r.of_client(), "server.example", tls::no_verification),
                         tls::engine(server));
    first.shake();
    EXPECT_EQ(first.pass(first.server, first.client, "x"), "x");
    joined_engines second(tls::engine(r.of_client(), "server.example"), tls::engine(server));
    ASSERT_TRUE(first.client.engine.latest_session());
    EXPECT_FALSE(second.client.engine.resume(first.client.engine.latest_session()));
    second.shake();
    EXPECT_EQ(second.client_end.error, tls::errc::self_signed);
}

TEST(tls_resumption, a_session_ends_with_the_certificate_that_was_verified_for_it) {
    resuming r;
    tls::session made;
    for (long seconds = 2; !made; seconds *= 2) {  // more if the first handshakes were too slow
        r.server.certificates = {r.issuer.issue({.ends = seconds})};
        joined_engines both(tls::engine(r.of_client(), "server.example"),
                            tls::engine(tls::server_context(r.server)));
        both.shake();
        if (both.is_ready() && both.pass(both.server, both.client, "x") == "x") {
            made = both.client.engine.latest_session();
        }
    }
    const auto fits = [&](const tls::session& s) {
        tls::engine next(r.of_client(), "server.example");
        return next.resume(s);
    };
    while (fits(made)) std::this_thread::yield();
    EXPECT_FALSE(fits(made));
}

TEST(tls_resumption, a_resumed_client_is_still_known_by_its_certificate) {
    resuming r;
    const authority of_clients("clients");
    r.server.clients = tls::client_certificates::require;
    r.server.client_authorities = of_clients.pem();
    r.client.own = of_clients.issue({.names = "", .subject = "alice"});
    const tls::server_context server(r.server);
    EXPECT_FALSE(r.connect(server));
    EXPECT_EQ(r.subject, "CN=alice");
    EXPECT_TRUE(r.connect(server));
    EXPECT_EQ(r.subject, "CN=alice");
    // Other authorities: what was shown to the others does not count.
    r.server.client_authorities += authority("more clients").pem();
    const tls::server_context next(r.server, server);
    EXPECT_FALSE(r.connect(next));
    EXPECT_EQ(r.subject, "CN=alice");
}

TEST(tls_resumption, a_client_that_was_revoked_since_does_not_resume) {
    resuming r;
    const authority of_clients("clients");
    r.server.clients = tls::client_certificates::require;
    r.server.client_authorities = of_clients.pem();
    r.server.client_revocations = of_clients.revoke({});
    r.client.own = of_clients.issue({.names = "", .subject = "alice"});
    const tls::server_context server(r.server);
    EXPECT_FALSE(r.connect(server));
    EXPECT_TRUE(r.connect(server));
    const tls::server_context same(r.server, server);
    EXPECT_TRUE(r.connect(same));
    r.server.client_revocations = of_clients.revoke({r.client.own});
    joined_engines both(tls::engine(r.of_client(), "server.example"),
                        tls::engine(tls::server_context(r.server, server)));
    EXPECT_TRUE(both.client.engine.resume(r.last));
    both.shake();
    EXPECT_EQ(both.server_end.error, tls::errc::certificate_revoked);
}

TEST(tls_resumption, a_successor_takes_over_the_keys_and_another_context_does_not) {
    resuming r;
    const tls::server_context server(r.server);
    EXPECT_FALSE(r.connect(server));
    const tls::server_context next(r.server, server);
    EXPECT_TRUE(r.connect(next));
    const tls::server_context other(r.server);
    EXPECT_FALSE(r.connect(other));
}

TEST(tls_reload, connections_keep_their_context_and_new_ones_get_the_new_certificate) {
    usual u;
    u.server.certificates = {u.issuer.issue({.subject = "old"})};
    tls::server_context_slot slot{tls::server_context(u.server)};
    const tls::client_context of_client(u.client);
    joined_engines before(tls::engine(of_client, "server.example"), tls::engine(slot.get()));
    joined_engines halfway(tls::engine(of_client, "server.example"), tls::engine(slot.get()));
    before.shake();
    (void)halfway.client.shake();
    halfway.server.come(halfway.client.take_written());
    (void)halfway.server.shake();
    u.server.certificates = {u.issuer.issue({.subject = "new"})};
    slot.set(tls::server_context(u.server, slot.get()));
    joined_engines after(tls::engine(of_client, "server.example"), tls::engine(slot.get()));
    halfway.move();
    halfway.shake();
    after.shake();
    EXPECT_EQ(before.pass(before.client, before.server, "still here"), "still here");
    EXPECT_EQ(halfway.client.engine.peer_subject(), "CN=old");
    EXPECT_EQ(after.client.engine.peer_subject(), "CN=new");
}

TEST(tls_reload, threads_shake_hands_while_the_certificate_is_replaced) {
    const usual u;
    tls::server_context_slot slot{tls::server_context(u.server)};
    const tls::client_context of_client(u.client);
    std::vector<std::thread> threads;
    std::vector<int> good(3);
    for (int& count : good) {
        threads.emplace_back([&] {
            for (int i = 0; i != 20; ++i) {
                joined_engines both(tls::engine(of_client, "server.example"),
                                    tls::engine(slot.get()));
                both.shake();
                if (both.is_ready()) ++count;
            }
        });
    }
    for (int i = 0; i != 20; ++i) {
        slot.set(tls::server_context(u.server, slot.get()));
        slot.get().rotate_ticket_key();
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(good, std::vector<int>(3, 20));
}

// ---- Contexts that cannot be ------------------------------------------------------------------

TEST(tls_context, options_that_fit_nothing_are_refused_with_a_reason) {
    usual u;
    EXPECT_THROW(tls::server_context{tls::server_options()}, std::invalid_argument);
    tls::server_options o = u.server;
    o.clients = tls::client_certificates::require;
    EXPECT_THROW(tls::server_context{o}, std::invalid_argument);
    o = u.server;
    o.client_revocations = u.issuer.revoke({});
    EXPECT_THROW(tls::server_context{o}, std::invalid_argument);
    o = u.server;
    o.protocols = {""};
    EXPECT_THROW(tls::server_context{o}, std::invalid_argument);
    o.protocols = {std::string(256, 'x')};
    EXPECT_THROW(tls::server_context{o}, std::invalid_argument);
    const auto error_of = [](auto make) -> std::string {
        try {
            make();
        } catch (const std::system_error& error) {
            return error.what();
        }
        return "none";
    };
    o = u.server;
    o.certificates.push_back(u.issuer.issue());
    o.certificates[1].key = u.issuer.issue().key;
    EXPECT_EQ(error_of([&] { tls::server_context{o}; }),
              "tls::server_context: certificate 2: the key: key values mismatch");
    o.certificates[1].chain = "no PEM";
    EXPECT_EQ(error_of([&] { tls::server_context{o}; }),
              "tls::server_context: certificate 2: the certificate: no start line");
    EXPECT_EQ(error_of([] { tls::certificate::from_files("/nowhere/chain", "/nowhere/key"); }),
              "tls: cannot read /nowhere/chain: No such file or directory");
    o = u.server;
    o.clients = tls::client_certificates::request;
    o.client_authorities = u.issuer.pem();
    o.client_revocations = u.issuer.pem();  // a certificate is no list
    EXPECT_EQ(error_of([&] { tls::server_context{o}; }),
              "tls::server_context: client_revocations: no start line");
    tls::client_options c;
    c.authorities = "no PEM";
    EXPECT_EQ(error_of([&] { tls::client_context{c}; }), "tls: client authorities: no start line");
    c = {};
    c.authorities_path = "/nowhere/ca";
    EXPECT_EQ(error_of([&] { tls::client_context{c}; }),
              "tls: cannot read /nowhere/ca: No such file or directory");
}

}  // namespace
