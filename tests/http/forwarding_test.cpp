// http/forwarding.hpp: Forwarded and X-Forwarded-For, read from the end, and only from proxies.
#include <coppice/http/forwarding.hpp>

#include "raw_peer.hpp"
#include "served_world.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>
#include <string>

namespace {

using namespace coppice;
using namespace coppice::test;
using http::parse_status;

io::endpoint at(std::string_view text) {
    return io::endpoint::parse(text).value();
}

// Returns the client of a request with these field lines, which came from `last` in the clear.
std::string client_of(const std::string& lines, http::forwarding_field field,
                      const char* last = "10.0.0.1:9") {
    http::request_head head;
    const std::string text = "GET / HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n";
    EXPECT_EQ(http::parse_head(text, head, {}).status, parse_status::complete) << lines;
    const http::forwarding trusted{{"10.0.0.0/8", "fd00::/8"}, field};
    const http::forwarded_client found = http::forwarded_from(head, trusted, {at(last), false});
    return found.address.to_string() + (found.is_secure ? " secure" : "");
}

TEST(x_forwarded_for, names_the_last_address_that_is_no_trusted_proxy) {
    const auto client = [](const std::string& list, const char* last = "10.0.0.1:9") {
        return client_of("X-Forwarded-For: " + list + "\r\n",
                         http::forwarding_field::x_forwarded_for, last);
    };
    EXPECT_EQ(client("192.0.2.7"), "192.0.2.7:0");
    EXPECT_EQ(client("9.9.9.9, 192.0.2.7"), "192.0.2.7:0");
    EXPECT_EQ(client("9.9.9.9, 192.0.2.7 ,10.1.1.1,\t[fd00::1]:80"), "192.0.2.7:0");
    EXPECT_EQ(client("192.0.2.7:4711"), "192.0.2.7:4711");
    EXPECT_EQ(client("2001:db8::1"), "[2001:db8::1]:0");
    EXPECT_EQ(client("[2001:db8::1]:5"), "[2001:db8::1]:5");
    EXPECT_EQ(client("10.2.2.2, 10.1.1.1"), "10.2.2.2:0");  // all are proxies
    EXPECT_EQ(client("192.0.2.7,, ,"), "192.0.2.7:0");      // empty elements
    EXPECT_EQ(client("192.0.2.7, junk, 10.1.1.1"), "10.1.1.1:0");
    EXPECT_EQ(client("192.0.2.7, unknown"), "10.0.0.1:9");
    EXPECT_EQ(client("\"x, 192.0.2.7"), "192.0.2.7:0");  // an open quote hides nothing
    EXPECT_EQ(client("192.0.2.7", "11.0.0.1:9"), "11.0.0.1:9");
    EXPECT_EQ(client_of("X-Forwarded-For: 1.1.1.1\r\nA: b\r\nx-forwarded-for: 10.3.3.3\r\n",
                        http::forwarding_field::x_forwarded_for),
              "1.1.1.1:0");
    EXPECT_EQ(client_of("X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Proto: http, HTTPS\r\n"
                        "Forwarded: for=6.6.6.6\r\n",
                        http::forwarding_field::x_forwarded_for),
              "1.1.1.1:0 secure");
}

TEST(forwarded, names_the_last_address_that_is_no_trusted_proxy) {
    const auto client = [](const std::string& list) {
        return client_of("Forwarded: " + list + "\r\nX-Forwarded-For: 6.6.6.6\r\n",
                         http::forwarding_field::forwarded);
    };
    EXPECT_EQ(client("for=192.0.2.7"), "192.0.2.7:0");
    EXPECT_EQ(client("For=\"192.0.2.7:4711\";Proto=https;by=10.0.0.1"), "192.0.2.7:4711 secure");
    EXPECT_EQ(client("for=9.9.9.9, for=\"[2001:db8::1]:80\";proto=http"), "[2001:db8::1]:80");
    EXPECT_EQ(client("for=192.0.2.7;proto=https, for=10.1.1.1;proto=http"), "192.0.2.7:0 secure");
    EXPECT_EQ(client("for=192.0.2.7;host=\"a,b;for=6.6.6.6\""), "192.0.2.7:0");
    EXPECT_EQ(client("for=192.0.2.7;host=\"a\\\", for=6.6.6.6\""), "192.0.2.7:0");
    EXPECT_EQ(client("for=\"x, for=192.0.2.7"), "192.0.2.7:0");  // an open quote hides nothing
    EXPECT_EQ(client("for=\"[::1]:_port\""), "[::1]:0");
    EXPECT_EQ(client("for=192.0.2.7, for=unknown"), "10.0.0.1:9");
    EXPECT_EQ(client("for=192.0.2.7, for=_hidden, for=10.1.1.1"), "10.1.1.1:0");
    for (const char* wrong : {"for", "for=", "for=1.1.1.1;for=2.2.2.2", "for=\"1.1.1.1", "=",
                              "for=\"2001:db8::1\"", "for=\"1.1.1.1\\\"", "for=1.1.1.1:x"}) {
        EXPECT_EQ(client("for=3.3.3.3, for=10.4.4.4, " + std::string(wrong)), "10.0.0.1:9")
            << wrong;
    }
    EXPECT_EQ(client("for=" + std::string(5000, '1')), "10.0.0.1:9");
}

TEST(a_server_behind_a_proxy, tells_each_request_its_own_client_only_if_it_trusts_the_proxy) {
    const int file = ::memfd_create("log", 0);
    for (const bool trusts : {false, true}) {
        http::access_log log(file);
        http::server_options o;
        o.access_log = &log;
        if (trusts) o.forwarding.from = {"127.0.0.1"};
        http::router r;
        r.get("/", [](http::request& q) {
            return http::response::text(q.peer().to_string() + (q.is_secure() ? " secure" : ""));
        });
        const talk client = [trusts](io::context& loop, const io::endpoint& to) -> task<> {
            raw_peer peer(loop, to);
            co_await peer.send(
                "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.1.1.1\r\n\r\n"
                "GET https://a/ HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 2.2.2.2\r\n"
                "X-Forwarded-Proto: https\r\n\r\n",
                1000);
            peer.finish_sending();
            const std::string all = co_await peer.receive_all();
            EXPECT_EQ(all.find("1.1.1.1:0") != all.npos, trusts) << all;
            EXPECT_EQ(all.find("2.2.2.2:0 secure") != all.npos, trusts) << all;
            EXPECT_EQ(all.find(" 421 ") != all.npos, !trusts) << all;
        };
        io::simulation world(3);
        (void)serve_in(world, std::move(o), std::move(r), client);
    }
    std::string lines(4096, '\0');
    const ssize_t read = ::pread(file, lines.data(), lines.size(), 0);
    lines.resize(static_cast<std::size_t>(read));
    EXPECT_NE(lines.find("\n1.1.1.1:0 ["), lines.npos) << lines;
    EXPECT_NE(lines.find("\n2.2.2.2:0 ["), lines.npos) << lines;
    EXPECT_TRUE(lines.starts_with("127.0.0.1:")) << lines;
    ::close(file);
}

}  // namespace
