// Conversations of HTTP/2 over TLS that are cut, reset, halted, and delayed.
#include "../http/secure_parts.hpp"
#include "every_byte.hpp"

namespace coppice::test {
namespace {

constexpr std::size_t step = 13;  // each conversation shakes hands

const tls::client_context& client_of_h2() {
    static const tls::client_context made = context_of_client({"h2"});
    return made;
}
http::server_options speaks_http2_securely() {
    static const tls::server_context made = context_of_server("IP:127.0.0.1", {"h2"});
    http::server_options o = speaks_http2_to_broken();
    o.security = made;
    return o;
}

TEST(http2_at_every_byte_of_tls, a_client_gets_whole_answers_or_errors_and_nothing_is_left) {
    seen_by_handlers seen;
    break_at_every_byte(
        &speaks_http2_securely, [&] { return routes_for_breakage(seen); },
        [](io::context& loop, const io::endpoint& to, bool is_whole) {
            http::client_options o;
            o.security = client_of_h2();
            return ask_several(loop, to, std::move(o), "https", is_whole);
        },
        step);
    seen.expect_all_ended_and_no_part();
}

task<> talk_by_frames(io::context& loop, io::endpoint to, bool is_whole) {
    tls::stream<> peer(io::tcp::socket(loop), client_of_h2(), "127.0.0.1");
    std::error_code ec;
    co_await peer.next().connect(to);
    co_await peer.handshake(use_await[ec]);
    std::string received;
    if (!ec) received = co_await exchange_all(peer, frames_of_client("https"));
    expect_answers(received, is_whole);
}

TEST(http2_at_every_byte_of_tls, a_websocket_beside_requests_ends_whole_or_without_its_close) {
    seen_by_handlers seen;
    break_at_every_byte(
        &speaks_http2_securely, [&] { return routes_for_breakage(seen); }, &talk_by_frames, step);
    seen.expect_all_ended_and_no_part();
}

}  // namespace
}  // namespace coppice::test
