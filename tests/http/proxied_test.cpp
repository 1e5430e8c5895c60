// Servers behind proxies: blocks of addresses, the PROXY protocol, and whose client a request is.
#include <coppice/http/address_set.hpp>
#include <coppice/http/proxy_header.hpp>

#include "guarded_bytes.hpp"
#include "raw_peer.hpp"
#include "served_world.hpp"
#include "toy_security.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>
#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
using http::address_set;
using http::parse_status;

io::endpoint at(std::string_view text) {
    return io::endpoint::parse(text).value();
}

TEST(address_set, contains_the_addresses_of_its_blocks_and_no_others) {
    const address_set set{"10.0.0.0/8", "192.0.2.7", "2001:db8::/33", "unix"};
    for (const char* in : {"10.0.0.0:1", "10.255.255.255:2", "192.0.2.7:3", "[::ffff:10.1.2.3]:4",
                           "[2001:db8:7fff::1]:5", "unix:/run/x"}) {
        EXPECT_TRUE(set.contains(at(in))) << in;
    }
    for (const char* out : {"11.0.0.0:1", "192.0.2.6:1", "[::ffff:11.0.0.1]:1",
                            "[2001:db8:8000::1]:1", "[::a00:1]:1"}) {
        EXPECT_FALSE(set.contains(at(out))) << out;
    }
    EXPECT_FALSE(set.contains(io::endpoint()));
    EXPECT_FALSE(address_set{}.contains(at("unix:@x")));
    EXPECT_FALSE((address_set{"::/0"}.contains(at("10.0.0.1:1"))));
    EXPECT_TRUE((address_set{"0.0.0.0/0"}.contains(at("[::ffff:9.9.9.9]:1"))));
}

TEST(address_set, refuses_what_is_no_block_and_stays_as_it_was) {
    for (const char* text : {"", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/-1",
                             "10.0.0.1/8", "::/129", "fd00::1/8", "[::1]", "localhost", "1.2.3",
                             "10.0.0.0/8/8", "::ffff:1.2.3.4/95", "/8", "10.0.0.0 /8"}) {
        address_set set;
        EXPECT_THROW(set.add(text), std::invalid_argument) << text;
        EXPECT_TRUE(set.empty()) << text;
    }
}

// ---- Headers -----------------------------------------------------------------------------------

std::string v2(char command, char family, std::string_view rest) {
    std::string header("\r\n\r\n\0\r\nQUIT\n", 12);
    header += command;
    header += family;
    header += static_cast<char>(rest.size() >> 8);
    header += static_cast<char>(rest.size() & 255);
    return header.append(rest);
}
std::string bytes(std::initializer_list<int> values) {
    std::string made;
    for (const int v : values) made += static_cast<char>(v);
    return made;
}
const std::string addresses_v4 = bytes({192, 0, 2, 7, 198, 51, 100, 1, 0x12, 0x67, 0, 80});
std::string padded(std::string path) {
    path.resize(108);
    return path;
}

// Returns what the parser makes of the bytes, which must not depend on how they are delivered.
std::string read(std::string_view text) {
    static guarded_bytes memory(8192);
    std::string decided;
    for (std::size_t n = 0; n <= text.size(); ++n) {
        http::proxy_header header;
        const http::parse_result r =
            http::parse_proxy_header(memory.place_view(text.substr(0, n)), header);
        std::string now;
        if (r.status == parse_status::complete) {
            now = std::to_string(r.consumed) + " " + header.client.to_string() + " " +
                  header.server.to_string();
            EXPECT_LE(r.consumed, n);
        } else if (r.status == parse_status::error) {
            now = r.reason;
            EXPECT_EQ(r.error, 400);
        }
        if (!decided.empty()) {
            EXPECT_EQ(now, decided) << n;
        }
        decided = now;
    }
    return decided.empty() ? "partial" : decided;
}

TEST(proxy_header, of_version_1_is_read_however_it_arrives) {
    EXPECT_EQ(read("PROXY TCP4 192.0.2.7 198.51.100.1 4711 80\r\nGET"),
              "43 192.0.2.7:4711 198.51.100.1:80");
    EXPECT_EQ(read("PROXY TCP6 2001:db8::1 ::1 0 65535\r\n\r\n"), "36 [2001:db8::1]:0 [::1]:65535");
    EXPECT_EQ(read("PROXY UNKNOWN\r\nx"), "15 unspecified unspecified");
    EXPECT_EQ(read("PROXY UNKNOWN ::1 what ever\r\n"), "29 unspecified unspecified");
    EXPECT_EQ(read("PROXY TCP4 192.0.2.7 198.51.100.1 4711 80\r"), "partial");
    for (const char* line :
         {"TCP4 192.0.2.7 198.51.100.1 4711", "TCP4 192.0.2.7 198.51.100.1 4711 80 ",
          "TCP4  192.0.2.7 198.51.100.1 4711 80", "TCP4 192.0.2.7 198.51.100.1 04711 80",
          "TCP4 192.0.2.7 198.51.100.1 65536 80", "TCP4 192.0.2.7 198.51.100.1 -1 80",
          "TCP4 ::1 ::1 1 2", "TCP6 1.2.3.4 1.2.3.4 1 2", "TCP6 [::1] ::1 1 2", "TCP5 ::1 ::1 1 2",
          "TCP4 192.0.2.07 198.51.100.1 1 2", "UNKNOWNX", "", " ", "tcp4 1.2.3.4 1.2.3.4 1 2",
          "TCP4 1.2.3.4 1.2.3.4 1 2\t", "UNKNOWN \x01", "UNKNOWN\rx", "UNKNOWN\n"}) {
        EXPECT_EQ(read("PROXY " + std::string(line) + "\r\n"), "the PROXY line is malformed")
            << line;
    }
    EXPECT_EQ(read("PROXY UNKNOWN " + std::string(91, 'x') + "\r\n").substr(0, 4), "107 ");
    EXPECT_EQ(read("PROXY UNKNOWN " + std::string(92, 'x') + "\r\n"), "the PROXY line is too long");
}

TEST(proxy_header, of_version_2_is_read_however_it_arrives) {
    const std::string v6 =
        std::string(15, '\0') + '\1' + std::string(15, '\0') + '\2' + bytes({0, 1, 0, 2});
    EXPECT_EQ(read(v2(0x21, 0x11, addresses_v4) + "GET"), "28 192.0.2.7:4711 198.51.100.1:80");
    EXPECT_EQ(read(v2(0x21, 0x21, v6)), "52 [::1]:1 [::2]:2");
    EXPECT_EQ(read(v2(0x21, 0x31, padded("/run/a") + padded(std::string("\0name", 5)))),
              "232 unix:/run/a unix:@name");
    EXPECT_EQ(read(v2(0x21, 0x31, padded("") + padded("/b"))), "232 unspecified unix:/b");
    // LOCAL, and no family: whatever follows means nothing.
    EXPECT_EQ(read(v2(0x20, 0x11, addresses_v4)), "28 unspecified unspecified");
    EXPECT_EQ(read(v2(0x20, 0x00, "")), "16 unspecified unspecified");
    EXPECT_EQ(read(v2(0x20, static_cast<char>(0xff), "x")), "17 unspecified unspecified");
    EXPECT_EQ(read(v2(0x21, 0x00, "abc")), "19 unspecified unspecified");
    EXPECT_EQ(read(v2(0x21, 0x11, addresses_v4).substr(0, 27)), "partial");
    EXPECT_EQ(read(v2(0x21, 0x11, addresses_v4 + bytes({0xea, 0, 2, 'h', 'i', 4, 0, 0}))),
              "36 192.0.2.7:4711 198.51.100.1:80");
}

TEST(proxy_header, of_version_2_is_refused_if_anything_is_unassigned_or_inexact) {
    constexpr const char* version = "the PROXY header has an unknown version or command";
    constexpr const char* family = "the PROXY header has an unknown family or transport";
    constexpr const char* extensions = "the extensions of the PROXY header are malformed";
    for (const int command : {0x01, 0x11, 0x31, 0x22, 0x2f}) {
        EXPECT_EQ(read(v2(static_cast<char>(command), 0x11, addresses_v4)), version) << command;
    }
    for (const int f : {0x13, 0x41, 0x1f, 0xf1}) {
        EXPECT_EQ(read(v2(0x21, static_cast<char>(f), addresses_v4)), family) << f;
    }
    EXPECT_EQ(read(v2(0x21, 0x11, addresses_v4.substr(1))),
              "the PROXY header is too short for its addresses");
    EXPECT_EQ(read(v2(0x21, 0x31, padded(std::string("/a\0b", 4)) + padded("/b"))),
              "a path in the PROXY header is malformed");
    EXPECT_EQ(read(v2(0x21, 0x31, padded("@a") + padded("/b"))),
              "a path in the PROXY header is malformed");
    for (const auto& tlv : {bytes({1}), bytes({1, 0}), bytes({1, 0, 1}), bytes({1, 0, 2, 7}),
                            bytes({3, 0, 4, 0, 0, 0, 0}), bytes({3, 0, 3, 0, 0, 0})}) {
        EXPECT_EQ(read(v2(0x21, 0x11, addresses_v4 + tlv)), extensions) << tlv.size();
    }
    EXPECT_EQ(read(v2(0x20, 0, std::string(4081, 'x'))), "the PROXY header is too long");
    EXPECT_EQ(read(v2(0x20, 0, std::string(4080, 'x'))), "4096 unspecified unspecified");
    EXPECT_EQ(read("GET / HTTP/1.1\r\n"), "the connection does not begin with a PROXY header");
    EXPECT_EQ(read("\r\n\r\nGET"), "the connection does not begin with a PROXY header");
}

// The sum is CRC-32C; for "123456789" it is e3069283.
TEST(proxy_header, with_a_checksum_is_refused_if_any_bit_is_wrong) {
    std::string header = v2(0x21, 0x11, addresses_v4 + bytes({3, 0, 4, 0, 0, 0, 0}));
    std::uint32_t crc = ~0u;
    for (const char c : header) {
        crc ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit != 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    }
    for (std::size_t i = 0; i != 4; ++i) {
        header[header.size() - 4 + i] = static_cast<char>(~crc >> (24 - 8 * i) & 255);
    }
    EXPECT_EQ(read(header), "35 192.0.2.7:4711 198.51.100.1:80");
    for (std::size_t bit = 8 * 16; bit != 8 * header.size(); ++bit) {
        std::string wrong = header;
        wrong[bit / 8] = static_cast<char>(wrong[bit / 8] ^ (1 << bit % 8));
        http::proxy_header out;
        const auto r = http::parse_proxy_header(wrong, out);
        // A change of the type of the sum makes it another extension.
        const bool other_type = bit / 8 == header.size() - 7;
        EXPECT_EQ(r.status == parse_status::complete, other_type) << bit;
    }
}

// ---- Servers -----------------------------------------------------------------------------------

const std::string get_peer = "GET /peer HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
const std::string line_v1 = "PROXY TCP4 192.0.2.7 198.51.100.1 4711 80\r\n";

http::router peer_routes() {
    http::router r;
    r.get("/peer", [](http::request& q) { return http::response::text(q.peer().to_string()); });
    return r;
}

http::server_statistics serve_proxied(http::server_options o, const talk& client,
                                      address_set proxies = {"127.0.0.0/8"}) {
    io::simulation world(7);
    o.proxies = std::move(proxies);
    return serve_in(world, std::move(o), peer_routes(), client);
}

TEST(a_server_behind_a_proxy, tells_handlers_and_the_log_the_client_of_the_header) {
    const int file = ::memfd_create("log", 0);
    {
        http::access_log log(file);
        http::server_options o;
        o.access_log = &log;
        const talk client = [](io::context& loop, const io::endpoint& to) -> task<> {
            const std::string v2_header = v2(0x21, 0x11, addresses_v4 + std::string(3, '\0'));
            for (const std::string& header : {line_v1, v2_header}) {
                for (const std::size_t piece : {1u, 7u, 50u, 1000u}) {
                    raw_peer peer(loop, to);
                    co_await peer.send(header + get_peer + get_peer, piece);
                    peer.finish_sending();
                    const std::string all = co_await peer.receive_all();
                    const std::size_t first = all.find("\r\n\r\n192.0.2.7:4711");
                    EXPECT_NE(first, all.npos) << piece << all;
                    EXPECT_NE(all.find("\r\n\r\n192.0.2.7:4711", first + 1), all.npos) << piece;
                }
            }
            for (const std::string& header :
                 {std::string("PROXY UNKNOWN\r\n"), v2(0x20, 0x11, addresses_v4)}) {
                raw_peer peer(loop, to);
                co_await peer.send(header + get_peer, 1000);
                const std::string got = co_await peer.receive("127.0.0.1:");
                EXPECT_NE(got.find("\r\n\r\n127.0.0.1:"), got.npos) << got;
            }
        };
        EXPECT_EQ(serve_proxied(o, client).requests, 18u);
    }
    std::string lines(4096, '\0');
    const ssize_t read = ::pread(file, lines.data(), lines.size(), 0);
    lines.resize(static_cast<std::size_t>(read));
    EXPECT_TRUE(lines.starts_with("192.0.2.7:4711 [")) << lines;
    ::close(file);
}

TEST(a_server_behind_a_proxy, closes_a_connection_without_a_valid_header_unanswered) {
    const talk client = [](io::context& loop, const io::endpoint& to) -> task<> {
        for (const std::string& text :
             {get_peer, "PROXY TCP4 x\r\n" + get_peer, v2(0x2f, 0x11, addresses_v4) + get_peer}) {
            for (const std::size_t piece : {1u, 1000u}) {
                raw_peer peer(loop, to);
                co_await peer.send(text, piece);
                EXPECT_EQ(co_await peer.receive_all(), "") << text;
            }
        }
    };
    const http::server_statistics s = serve_proxied({}, client);
    EXPECT_EQ(s.refused, 6u);
    EXPECT_EQ(s.requests, 0u);
}

TEST(a_server_behind_a_proxy, gives_a_header_the_time_of_a_head_and_stops_waiting_in_a_drain) {
    http::server_options o;
    o.timeouts.header = 3s;
    const talk client = [](io::context& loop, const io::endpoint& to) -> task<> {
        const time_point began = loop.now();
        raw_peer slow(loop, to);
        co_await slow.send("PROXY TC", 1);
        EXPECT_EQ(co_await slow.receive_all(), "");
        EXPECT_GE(loop.now() - began, 3s);
        EXPECT_LT(loop.now() - began, 4s);
        raw_peer drained(loop, to);
        co_await drained.send("PROXY TC", 100);
        // The caller drains now; it does not end before the connection has.
    };
    EXPECT_EQ(serve_proxied(o, client).timed_out, 1u);
}

TEST(a_server_behind_a_proxy, refuses_a_header_from_an_address_that_is_no_proxy) {
    const talk client = [](io::context& loop, const io::endpoint& to) -> task<> {
        for (const std::string& header : {line_v1, v2(0x21, 0x11, addresses_v4)}) {
            raw_peer peer(loop, to);
            co_await peer.send(header + get_peer, 1000);
            const std::string got = co_await peer.receive_all();
            EXPECT_TRUE(got.starts_with("HTTP/1.1 400 ")) << got;
            EXPECT_EQ(got.find("192.0.2.7"), got.npos);
        }
        raw_peer direct(loop, to);
        co_await direct.send(get_peer, 1000);
        const std::string got = co_await direct.receive("127.0.0.1:");
        EXPECT_NE(got.find("\r\n\r\n127.0.0.1:"), got.npos) << got;
    };
    (void)serve_proxied({}, client, {"10.0.0.0/8"});
    (void)serve_proxied({}, client, {});
}

TEST(a_server_behind_a_proxy, limits_the_connections_of_the_client_and_not_of_the_proxy) {
    http::server_options o;
    o.connections_per_address_max = 1;
    const talk client = [](io::context& loop, const io::endpoint& to) -> task<> {
        const std::string other = "PROXY TCP4 192.0.2.8 198.51.100.1 1 80\r\n";
        for (int round = 0; round != 2; ++round) {
            raw_peer first(loop, to), again(loop, to), second(loop, to);
            co_await first.send(line_v1 + get_peer, 1000);
            EXPECT_NE((co_await first.receive("4711")).find("192.0.2.7:4711"), std::string::npos);
            co_await second.send(other + get_peer, 1000);
            EXPECT_NE((co_await second.receive("2.8:1")).find("192.0.2.8:1"), std::string::npos);
            co_await again.send(line_v1 + get_peer, 1000);
            EXPECT_TRUE((co_await again.receive_all()).starts_with("HTTP/1.1 503 "));
            first.finish_sending();
            EXPECT_EQ(co_await first.receive_all(), "");
            second.finish_sending();
            EXPECT_EQ(co_await second.receive_all(), "");
        }
    };
    EXPECT_EQ(serve_proxied(o, client).refused, 2u);
}

TEST(a_server_behind_a_proxy, reads_the_header_before_the_handshake) {
    const std::string secret = toy_bytes_of_client("127.0.0.1", get_peer);
    const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
        for (const std::size_t piece : {1u, 45u, 5000u}) {
            raw_peer peer(loop, to);
            co_await peer.send(line_v1 + secret, piece);
            bool ended = false;
            const std::string got = toy_text("127.0.0.1", co_await peer.receive_all(), ended);
            EXPECT_NE(got.find("\r\n\r\n192.0.2.7:4711"), got.npos) << piece << got;
            EXPECT_TRUE(ended);
        }
        raw_peer headless(loop, to);
        co_await headless.send(secret, 5000);
        EXPECT_EQ(co_await headless.receive_all(), "");
    };
    http::server_options o;
    o.security = std::make_shared<toy_server>();
    EXPECT_EQ(serve_proxied(o, client).requests, 3u);
}

}  // namespace
