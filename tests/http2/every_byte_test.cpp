// Conversations of HTTP/2 in the clear that are cut, reset, halted, and delayed at every byte.
#include "every_byte.hpp"

namespace coppice::test {
namespace {

TEST(http2_at_every_byte, a_client_gets_whole_answers_or_errors_and_nothing_is_left) {
    seen_by_handlers seen;
    break_at_every_byte(
        &speaks_http2_to_broken, [&] { return routes_for_breakage(seen); },
        [](io::context& loop, const io::endpoint& to, bool is_whole) {
            return ask_several(loop, to, {}, "http", is_whole);
        });
    seen.expect_all_ended_and_no_part();
}

task<> talk_by_frames(io::context& loop, io::endpoint to, bool is_whole) {
    io::tcp::socket peer(loop);
    co_await peer.connect(to);
    expect_answers(co_await exchange_all(peer, frames_of_client("http")), is_whole);
}

TEST(http2_at_every_byte, a_websocket_beside_requests_ends_whole_or_without_its_close) {
    seen_by_handlers seen;
    break_at_every_byte(
        &speaks_http2_to_broken, [&] { return routes_for_breakage(seen); }, &talk_by_frames);
    seen.expect_all_ended_and_no_part();
}

}  // namespace
}  // namespace coppice::test
