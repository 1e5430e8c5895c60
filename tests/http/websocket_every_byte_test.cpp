// WebSocket with compressed messages in the clear: cut, reset, halted, and delayed at every byte.
#include "websocket_every_byte.hpp"

namespace coppice::test {
namespace {

task<> talk_by_frames(io::context& loop, io::endpoint to, bool is_whole) {
    io::tcp::socket peer(loop);
    co_await peer.connect(to);
    expect_compressed_echo(co_await exchange_all(peer, compressed_conversation()), is_whole);
}

TEST(websocket_at_every_byte, each_message_is_whole_and_each_handler_ends) {
    seen_by_handlers seen;
    break_at_every_byte([] { return http::server_options(); },
                        [&] { return routes_that_echo(seen); }, &talk_by_frames);
    seen.expect_all_ended_and_no_part();
}

}  // namespace
}  // namespace coppice::test
