// WebSocket with compressed messages over TLS: cut, reset, halted, and delayed.
#include "secure_parts.hpp"
#include "websocket_every_byte.hpp"

namespace coppice::test {
namespace {

task<> talk_by_frames(io::context& loop, io::endpoint to, bool is_whole) {
    static const tls::client_context client = context_of_client();
    tls::stream<> peer(io::tcp::socket(loop), client, "127.0.0.1");
    std::error_code ec;
    co_await peer.next().connect(to);
    co_await peer.handshake(use_await[ec]);
    std::string received;
    if (!ec) received = co_await exchange_all(peer, compressed_conversation());
    expect_compressed_echo(received, is_whole);
}

TEST(websocket_at_every_byte_of_tls, each_message_is_whole_and_each_handler_ends) {
    const tls::server_context server = context_of_server();
    seen_by_handlers seen;
    break_at_every_byte(
        [&] {
            http::server_options o;
            o.security = server;
            return o;
        },
        [&] { return routes_that_echo(seen); }, &talk_by_frames, 13);
    seen.expect_all_ended_and_no_part();
}

}  // namespace
}  // namespace coppice::test
