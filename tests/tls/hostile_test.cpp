// The engine against peers that break off, lie, and flood; and without memory.
#include "pair.hpp"
#include "records.hpp"

#include <coppice/tls/engine.hpp>
#include <coppice/tls/error.hpp>

#include <gtest/gtest.h>

#include <openssl/ssl.h>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;

TEST(tls_hostile, a_peer_that_breaks_off_at_any_byte_of_the_handshake_is_an_error) {
    const usual u;
    const tls::client_context of_clients(u.client);
    const tls::server_context of_servers(u.server);
    std::string hello;
    {
        side client{tls::engine(of_clients, "server.example")};
        (void)client.shake();
        hello = client.take_written();
    }
    for (std::size_t n = 0; n != hello.size(); ++n) {  // a server gets a part of the hello
        side server{tls::engine(of_servers)};
        server.come(std::string_view(hello).substr(0, n));
        ASSERT_EQ(server.shake().what, tls::step::needs_input);
        server.engine.end_input();
        ASSERT_EQ(server.shake().error, tls::errc::truncated) << n;
        ASSERT_EQ(server.engine.receive({}).bytes, 0u);
    }
    for (std::size_t n = 0;; ++n) {  // a client gets a part of the answer
        joined_engines both(tls::engine(of_clients, "server.example"), tls::engine(of_servers));
        (void)both.client.shake();
        both.server.come(both.client.take_written());
        (void)both.server.shake();
        const std::string flight = both.server.take_written();
        if (n == flight.size()) break;
        both.client.come(std::string_view(flight).substr(0, n));
        const tls::progress p = both.client.shake();
        if (p.what == tls::step::done) break;  // the rest is tickets
        ASSERT_EQ(p.what, tls::step::needs_input);
        both.client.engine.end_input();
        ASSERT_EQ(both.client.shake().error, tls::errc::truncated) << n;
    }
}

TEST(tls_hostile, a_stream_that_is_cut_at_any_byte_is_truncated_unless_its_end_has_come) {
    const usual u;
    const tls::client_context of_clients(u.client);
    const tls::server_context of_servers(u.server);
    for (std::size_t n = 0;; ++n) {
        joined_engines both(tls::engine(of_clients, "server.example"), tls::engine(of_servers));
        both.shake();
        ASSERT_EQ(both.client.engine.send(bytes_in("a text of some length")).bytes, 21u);
        ASSERT_EQ(both.client.engine.end().what, tls::step::done);
        const std::string sent = both.client.take_written();
        both.server.come(std::string_view(sent).substr(0, n));
        const std::string got = both.server.receive_all();
        both.server.engine.end_input();
        (void)both.server.receive_all();
        if (n == sent.size()) {
            EXPECT_EQ(got, "a text of some length");
            EXPECT_EQ(both.server.last.what, tls::step::ended);
            break;
        }
        ASSERT_TRUE(got.empty() || got == "a text of some length");
        ASSERT_EQ(both.server.last.error, tls::errc::truncated) << n;
        // The other direction goes on, and says its end.
        both.server.last = both.server.engine.send(bytes_in("x"));
        ASSERT_EQ(both.server.last.what, tls::step::done);
        ASSERT_EQ(both.server.engine.end().what, tls::step::done);
        both.client.come(both.server.take_written());
        ASSERT_EQ(both.client.receive_all(), "x");
        ASSERT_EQ(both.client.last.what, tls::step::ended);
    }
}

TEST(tls_hostile, a_changed_byte_of_a_record_is_refused_and_told) {
    const usual u;
    const tls::client_context of_clients(u.client);
    const tls::server_context of_servers(u.server);
    for (std::size_t n = 0; n != 43; ++n) {
        joined_engines both(tls::engine(of_clients, "server.example"), tls::engine(of_servers));
        both.shake();
        (void)both.client.engine.send(bytes_in("a text of some length"));
        std::string sent = both.client.take_written();
        ASSERT_EQ(sent.size(), 43u);
        sent[n] = static_cast<char>(sent[n] ^ 0x10);
        both.server.come(sent);
        EXPECT_EQ(both.server.receive_all(), "");
        if (both.server.last.what == tls::step::needs_input) continue;  // the length has grown
        ASSERT_EQ(both.server.last.what, tls::step::failed) << n;
        ASSERT_FALSE(both.server.take_written().empty()) << n;  // the alert
    }
}

TEST(tls_hostile, random_bytes_end_a_handshake_and_a_stream_with_an_error) {
    const usual u;
    const tls::client_context of_clients(u.client);
    const tls::server_context of_servers(u.server);
    std::mt19937 random(1);
    for (int round = 0; round != 300; ++round) {
        std::string noise(random() % 200, '\0');
        for (char& c : noise) c = static_cast<char>(random());
        if (round % 2 == 0) noise.insert(0, "\x16\x03\x01", 3);  // looks like a handshake
        side server{tls::engine(of_servers)};
        side client{tls::engine(of_clients, "server.example")};
        (void)client.shake();
        for (side* each : {&server, &client}) {
            each->come(noise);
            (void)each->shake();
            each->engine.end_input();
            ASSERT_EQ(each->shake().what, tls::step::failed);
            ASSERT_EQ(each->engine.handshake().what, tls::step::failed);
        }
    }
}

TEST(tls_hostile, a_record_that_is_too_long_is_refused_before_its_bytes_are_kept) {
    const usual u;
    joined_engines both = u.join();
    both.shake();
    both.server.come(std::string("\x17\x03\x03\xff\xff", 5));
    EXPECT_EQ(both.server.receive_all(), "");
    EXPECT_EQ(both.server.last.error.message(), "packet length too long");
}

TEST(tls_hostile, bytes_in_the_clear_after_a_handshake_are_refused) {
    const usual u;
    joined_engines both = u.join();
    both.shake();
    both.server.come(std::string("\x15\x03\x03\x00\x02\x01\x00", 7));  // close_notify, unprotected
    EXPECT_EQ(both.server.receive_all(), "");
    EXPECT_EQ(both.server.last.what, tls::step::failed);
}

// OpenSSL's own client, which may do what the library's does not.
struct wild_client {
    explicit wild_client(int version)
        : context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free), ssl(nullptr, &SSL_free) {
        SSL_CTX_set_min_proto_version(context.get(), version);
        SSL_CTX_set_max_proto_version(context.get(), version);
        record_maker::watch(*context);
        ssl.reset(SSL_new(context.get()));
        records.watch(*ssl);
        in = BIO_new(BIO_s_mem());
        out = BIO_new(BIO_s_mem());
        SSL_set_bio(ssl.get(), in, out);
        SSL_set_connect_state(ssl.get());
    }
    void hand_over(side& server) {
        server.come(text_in(out));
        (void)BIO_reset(out);
    }
    void answer(side& server) {
        const std::string written = server.take_written();
        if (!written.empty()) BIO_write(in, written.data(), static_cast<int>(written.size()));
    }
    bool shake(side& server) {
        for (int i = 0; i != 5; ++i) {
            SSL_do_handshake(ssl.get());
            hand_over(server);
            (void)server.shake();
            answer(server);
        }
        return server.engine.is_ready();
    }
    std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context;
    std::unique_ptr<SSL, decltype(&SSL_free)> ssl;
    record_maker records;
    BIO* in = nullptr;
    BIO* out = nullptr;
};

TEST(tls_hostile, a_flood_of_key_updates_is_held_up_by_the_room_and_loses_nothing) {
    const usual u;
    side server{tls::engine(tls::server_context(u.server))};
    wild_client client(TLS1_3_VERSION);
    ASSERT_TRUE(client.shake(server));
    char drain[100];
    EXPECT_LE(SSL_read(client.ssl.get(), drain, sizeof drain), 0);  // the tickets
    for (int i = 0; i != 2000; ++i) {
        ASSERT_EQ(SSL_key_update(client.ssl.get(), SSL_KEY_UPDATE_REQUESTED), 1);
        ASSERT_EQ(SSL_do_handshake(client.ssl.get()), 1);
    }
    ASSERT_EQ(SSL_write(client.ssl.get(), "after", 5), 5);
    client.hand_over(server);
    std::string got;
    int held_up = 0;
    for (;;) {
        got += server.receive_all();
        if (server.last.what != tls::step::needs_output) break;
        ++held_up;
        client.answer(server);
    }
    EXPECT_EQ(server.last.what, tls::step::needs_input) << server.last.error.message();
    EXPECT_EQ(got, "after");
    EXPECT_GT(held_up, 0);
}

// What a server makes of records that a client sends after the handshake.
std::string made_of(const std::vector<std::pair<std::string, char>>& records, bool is_told = true) {
    const usual u;
    side server{tls::engine(tls::server_context(u.server))};
    wild_client client(TLS1_3_VERSION);
    EXPECT_TRUE(client.shake(server));
    for (const auto& [content, type] : records) server.come(client.records.seal(content, type));
    const std::string got = server.receive_all();
    if (server.last.what != tls::step::failed) return got;
    EXPECT_EQ(got, "");
    EXPECT_EQ(server.take_written().empty(), !is_told);  // the alert
    EXPECT_EQ(server.engine.send(bytes_in("x")).error, server.last.error);
    return "refused: " + server.last.error.message();
}

TEST(tls_hostile, records_that_tls_does_not_allow_are_refused_and_told) {
    const std::string largest(16'384, 'x');
    constexpr char alert = 21, handshake = 22, bytes = 23;
    using records = std::vector<std::pair<std::string, char>>;
    EXPECT_EQ(made_of({{"a ", bytes}, {"", bytes}, {"text", bytes}}), "a text");
    EXPECT_EQ(made_of({{largest, bytes}, {largest, bytes}}), largest + largest);
    EXPECT_EQ(made_of({{largest + 'x', bytes}}), "refused: data length too long");
    EXPECT_EQ(made_of({{std::string(16'700, 'x'), bytes}}), "refused: packet length too long");
    EXPECT_EQ(made_of(records(40, {"", bytes})), "refused: record too small");
    EXPECT_EQ(made_of({{std::string(100, '\0'), '\0'}}).substr(0, 7), "refused");  // without a type
    for (const char type : {'\x14', '\x18', '\x1a', '\x7f'})
        EXPECT_EQ(made_of({{"\1", type}}).substr(0, 7), "refused") << static_cast<int>(type);
    // Messages of a handshake, where there is no handshake.
    for (const char* const bad : {"\1", "\2", "\4", "\x08", "\x0b", "\x0d", "\x14", "\x19"}) {
        const std::string message = bad + std::string("\0\0\4text", 7);
        EXPECT_EQ(made_of({{message, handshake}}).substr(0, 7), "refused") << int(*bad);
    }
    EXPECT_EQ(made_of({{"", handshake}}).substr(0, 7), "refused");
    const std::string update("\x18\0\0\1", 4);
    EXPECT_EQ(made_of({{update + '\2', handshake}}).substr(0, 7), "refused");
    EXPECT_EQ(made_of({{"\x18" + std::string("\0\0\2\0\0", 5), handshake}}).substr(0, 7),
              "refused");
    EXPECT_EQ(made_of({{update, handshake}, {"text", bytes}}).substr(0, 7), "refused");
    EXPECT_EQ(made_of({{update + '\0' + update + '\0', handshake}}).substr(0, 7), "refused");
    EXPECT_EQ(made_of({{"\1", alert}}).substr(0, 7), "refused");
    EXPECT_EQ(made_of({{"\2\x28\2", alert}}).substr(0, 7), "refused");
    EXPECT_EQ(made_of({{"\2\x28", alert}}, false), "refused: sslv3 alert handshake failure");
}

TEST(tls_hostile, a_renegotiation_is_refused_and_the_connection_goes_on) {
    const usual u;
    side server{tls::engine(tls::server_context(u.server))};
    wild_client client(TLS1_2_VERSION);
    ASSERT_TRUE(client.shake(server));
    SSL_renegotiate(client.ssl.get());
    SSL_do_handshake(client.ssl.get());
    client.hand_over(server);
    EXPECT_EQ(server.receive_all(), "");
    EXPECT_EQ(server.last.what, tls::step::needs_input);
    EXPECT_FALSE(server.take_written().empty());  // the alert no_renegotiation
}

}  // namespace
