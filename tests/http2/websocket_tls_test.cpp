// A WebSocket over HTTP/2 and TLS, with frames made by hand.
#include <coppice/http/websocket.hpp>
#include <coppice/http2.hpp>

#include "../http/secure_parts.hpp"
#include "client.hpp"

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace {

using namespace coppice;
using namespace coppice::test;

class http2_websocket_tls : public testing::TestWithParam<io::backend> {};
INSTANTIATE_TEST_SUITE_P(rings, http2_websocket_tls,
                         testing::Values(io::backend::epoll, io::backend::uring), name_of_ring);

// Sends the bytes, and receives until `wanted` has come, or the connection ends. Says which.
task<> exchange_bytes(io::context& loop, io::endpoint to, std::string bytes,
                      std::string_view wanted, bool& found) {
    tls::stream<> peer(io::tcp::socket(loop), context_of_client({"h2"}), "127.0.0.1");
    co_await peer.next().connect(to);
    co_await peer.handshake();
    co_await peer.send_all(std::as_bytes(std::span(bytes)));
    std::string all;
    std::array<char, 512> some;
    for (std::size_t n = 1; n != 0 && all.find(wanted) == all.npos;) {
        n = co_await peer.receive(std::as_writable_bytes(std::span(some)));
        all.append(some.data(), n);
    }
    found = all.find(wanted) != all.npos;
}

TEST_P(http2_websocket_tls, rfc8441_a_stream_becomes_a_socket) {
    http::server_options o = options_of(every_way[0]);
    o.http2 = http2::for_server();
    o.security = context_of_server("IP:127.0.0.1", {"h2"});
    http::router r;
    r.get("/", http::websocket_handler([](http::websocket& socket) -> task<> {
              while (const auto message = co_await socket.receive()) co_await socket.send(*message);
          }));
    running_server server(std::move(o), std::move(r));
    network net(GetParam());
    bool found = false;
    net.run(exchange_bytes(
        net.loop, io::loopback(server.port()),
        preface() + open_frame(1, {}, "https") + frame(NGHTTP2_DATA, 0, 1, text_frame("hello")),
        "\x81\x05hello", found));
    EXPECT_TRUE(found);
}

}  // namespace
