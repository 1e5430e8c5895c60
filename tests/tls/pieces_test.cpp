// The same bytes in other pieces, and hellos that no library would send.
#include "pair.hpp"

#include <coppice/tls/engine.hpp>
#include <coppice/tls/error.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace coppice;
using namespace coppice::test;
using std::operator""sv;

// Hands over what one side has written, in pieces, and shakes hands after each.
tls::progress hand_over(side& from, side& to, std::size_t piece) {
    const std::string all = from.take_written();
    tls::progress p;
    for (std::size_t at = 0; at < all.size(); at += piece) {
        to.come(std::string_view(all).substr(at, piece));
        p = to.shake();
        if (p.what == tls::step::failed) break;
    }
    return p;
}

TEST(tls_pieces, a_handshake_and_a_text_may_come_in_pieces_of_any_size) {
    const usual u;
    const tls::client_context of_clients(u.client);
    const tls::server_context of_servers(u.server);
    for (const std::size_t piece : {1, 2, 3, 5, 7, 100}) {
        joined_engines both(tls::engine(of_clients, "server.example"), tls::engine(of_servers));
        (void)both.client.shake();
        (void)hand_over(both.client, both.server, piece);
        (void)hand_over(both.server, both.client, piece);
        (void)hand_over(both.client, both.server, piece);
        ASSERT_TRUE(both.is_ready()) << piece;
        ASSERT_EQ(both.client.engine.send(bytes_in("a text")).bytes, 6u);
        ASSERT_EQ(both.client.engine.end().what, tls::step::done);
        const std::string sent = both.client.take_written();
        std::string got;
        for (std::size_t at = 0; at < sent.size(); at += piece) {
            both.server.come(std::string_view(sent).substr(at, piece));
            got += both.server.receive_all();
        }
        EXPECT_EQ(got, "a text") << piece;
        EXPECT_EQ(both.server.last.what, tls::step::ended) << piece;
    }
}

TEST(tls_pieces, a_room_of_one_byte_at_a_time_holds_up_a_handshake_and_loses_nothing) {
    const usual u;
    tls::engine client(tls::client_context(u.client), "server.example");
    tls::engine server(tls::server_context(u.server));
    std::byte room{};
    const auto turn = [&room](tls::engine& engine, std::string& coming, std::string& lent,
                              std::string& going) {
        for (;;) {
            engine.output({&room, 1});
            const tls::step what = engine.handshake().what;
            if (engine.written() != 0) going += static_cast<char>(room);
            if (what == tls::step::needs_output) continue;
            if (what != tls::step::needs_input || coming.empty()) return what;
            lent = std::exchange(coming, {});
            engine.input(bytes_in(lent));
        }
    };
    std::string to_server, to_client, lent_server, lent_client;
    for (int i = 0; i != 4; ++i) {
        (void)turn(client, to_client, lent_client, to_server);
        (void)turn(server, to_server, lent_server, to_client);
    }
    EXPECT_TRUE(client.is_ready());
    EXPECT_TRUE(server.is_ready());
}

// ---- Hellos -----------------------------------------------------------------------------------

std::string hello_of(const usual& u, std::string_view host = "") {
    side client{tls::engine(tls::client_context(u.client), host, tls::no_verification)};
    (void)client.shake();
    return client.take_written();
}
std::string number(std::size_t value, int bytes) {
    std::string text;
    while (bytes-- > 0) text += static_cast<char>(value >> (8 * bytes));
    return text;
}
// What a server answers to a hello.
tls::progress answer(const usual& u, std::string_view hello, std::string* host = nullptr) {
    side server{tls::engine(tls::server_context(u.server))};
    server.come(hello);
    const tls::progress p = server.shake();
    if (host != nullptr) *host = server.engine.host();
    EXPECT_FALSE(server.engine.is_ready());
    return p;
}
// The hello with one more extension at its end.
std::string with_extension(std::string hello, std::uint16_t type, std::string_view content) {
    const auto grow = [&hello](std::size_t at, int bytes, std::size_t by) {
        std::size_t value = 0;
        for (int i = 0; i != bytes; ++i)
            value =
                value << 8 | static_cast<unsigned char>(hello[at + static_cast<std::size_t>(i)]);
        hello.replace(at, static_cast<std::size_t>(bytes), number(value + by, bytes));
    };
    const auto byte_at = [&hello](std::size_t at) {
        return static_cast<std::size_t>(static_cast<unsigned char>(hello[at]));
    };
    std::size_t at = 5 + 4 + 2 + 32;                 // record, message, version, random
    at += 1 + byte_at(at);                           // session
    at += 2 + (byte_at(at) << 8 | byte_at(at + 1));  // ciphers
    at += 1 + byte_at(at);                           // compressions
    const std::size_t added = 4 + content.size();
    grow(at, 2, added);
    grow(6, 3, added);
    grow(3, 2, added);
    hello += number(type, 2) + number(content.size(), 2);
    hello += content;
    return hello;
}
std::string with_host(const usual& u, std::string_view host) {
    std::string list = number(host.size() + 3, 2) + '\0' + number(host.size(), 2);
    list += host;
    return with_extension(hello_of(u), 0, list);
}

TEST(tls_hello, names_of_hosts_that_are_none_are_refused_or_are_for_no_certificate) {
    usual u;
    u.server.certificates = {u.issuer.issue({.names = "DNS:server.example,DNS:*.wild.example"})};
    std::string host;
    EXPECT_EQ(answer(u, with_host(u, "server.example"), &host).what, tls::step::needs_input);
    EXPECT_EQ(host, "server.example");
    for (const std::string& bad : {std::string("server.example\0.evil"sv), std::string("\0"sv),
                                   std::string(256, 'a'), std::string(10'000, 'a')})
        EXPECT_EQ(answer(u, with_host(u, bad), &host).what, tls::step::failed) << bad.size();
    const std::string_view odd[] = {"",
                                    ".",
                                    "..",
                                    ".wild.example",
                                    "a.b.wild.example",
                                    "\xff\x80",
                                    "server.example/../..",
                                    "127.0.0.1"};
    for (const std::string_view name : odd)
        EXPECT_EQ(answer(u, with_host(u, name)).what, tls::step::needs_input) << name;
    EXPECT_EQ(answer(u, with_host(u, std::string(255, 'a'))).what, tls::step::needs_input);
    u.server.known_names_only = true;
    for (const std::string_view name : odd)
        EXPECT_EQ(answer(u, with_host(u, name)).what, tls::step::failed) << name;
    EXPECT_EQ(answer(u, with_host(u, "a.wild.example")).what, tls::step::needs_input);
    // Two names, and the extension twice.
    const std::string two = with_host(u, "server.example");
    EXPECT_EQ(answer(u, with_extension(two, 0, "\0\x04\0\0\1a"sv)).what, tls::step::failed);
    EXPECT_EQ(answer(u, with_extension(hello_of(u), 0, "\0\x08\0\0\1a\0\0\1b"sv)).what,
              tls::step::failed);
}

TEST(tls_hello, lists_of_protocols_that_are_broken_are_refused) {
    usual u;
    u.server.protocols = {"h2"};
    const auto offered = [&u](std::string_view list) {
        return answer(u, with_extension(hello_of(u), 16, list)).what;
    };
    EXPECT_EQ(offered("\0\x03\x02h2"sv), tls::step::needs_input);
    EXPECT_EQ(offered("\0\x05\x01x\x02h2"sv), tls::step::needs_input);
    for (const std::string_view bad :
         {""sv, "\0"sv, "\0\0"sv, "\0\1\0"sv, "\0\3\3h2"sv, "\0\4\2h2\0"sv, "\xff\xff\2h2"sv,
          "\0\3\2h"sv, "\0\3\1h2"sv, "\0\3\2H2"sv})
        EXPECT_EQ(offered(bad), tls::step::failed) << bad;
}

TEST(tls_hello, a_hello_may_come_in_many_records_but_not_in_many_empty_ones) {
    const usual u;
    const std::string hello = hello_of(u, "server.example");
    const std::string head = hello.substr(0, 3);
    std::string one_by_one;
    for (const char c : hello.substr(5)) (one_by_one += head + number(1, 2)) += c;
    std::string host;
    EXPECT_EQ(answer(u, one_by_one, &host).what, tls::step::needs_input);
    EXPECT_EQ(host, "server.example");
    std::string empty;
    for (int i = 0; i != 40; ++i) empty += head + number(0, 2);
    EXPECT_EQ(answer(u, empty + hello).what, tls::step::failed);
    // Messages that have no place there, and a hello that claims to be long.
    for (const char type : "\x00\x02\x04\x08\x0b\x0e\x14\x18"sv) {
        const std::string message = std::string(1, type) + number(4, 3) + "text";
        EXPECT_EQ(answer(u, head + number(message.size(), 2) + message).what, tls::step::failed)
            << static_cast<int>(type);
    }
    const std::string huge = '\1' + number(0xffffff, 3);
    EXPECT_EQ(answer(u, head + number(huge.size(), 2) + huge).what, tls::step::failed);
}

TEST(tls_hello, a_hello_that_is_cut_or_changed_anywhere_ends_with_an_error_or_goes_on) {
    const usual u;
    const std::string hello = hello_of(u, "server.example");
    const tls::server_context of_servers(u.server);
    for (std::size_t at = 0; at != hello.size(); ++at) {
        for (const char change : {'\x01', '\x80', '\xff'}) {
            std::string changed = hello;
            changed[at] = static_cast<char>(changed[at] ^ change);
            side server{tls::engine(of_servers)};
            server.come(changed);
            ASSERT_NE(server.shake().what, tls::step::done);
            server.engine.end_input();
            ASSERT_EQ(server.shake().what, tls::step::failed) << at;
            ASSERT_FALSE(server.engine.is_ready());
        }
    }
}

}  // namespace
