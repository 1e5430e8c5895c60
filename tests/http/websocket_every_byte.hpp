// A conversation of WebSocket with compressed messages, which is broken at every byte.
#pragma once

#include <coppice/http/internal/websocket_codec.hpp>
#include <coppice/http/server.hpp>
#include <coppice/http/websocket.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "relay.hpp"

namespace coppice::test {

inline const std::vector<std::string> compressed_texts = {std::string(200, 'a'), "short",
                                                          std::string(100, 'b') + "end"};

inline http::router routes_that_echo(seen_by_handlers& seen) {
    http::websocket_options o;
    o.deflate = true;
    o.context_takeover = true;
    http::router r;
    r.get("/", http::websocket_handler(
                   [&seen](http::websocket& socket) -> task<> {
                       const auto ends = seen.count();
                       std::size_t n = 0;
                       for (; const auto message = co_await socket.receive(); ++n) {
                           const bool is_next =
                               n != compressed_texts.size() && message->data == compressed_texts[n];
                           if (!is_next) ++seen.parts;
                           (void)co_await socket.send(*message);
                       }
                       const bool is_whole = n == compressed_texts.size();
                       if (socket.close_code() == 1000 && !is_whole) ++seen.parts;
                   },
                   o));
    return r;
}

inline std::string compressed_conversation() {
    http::internal::message_deflater deflater(15, true, 1);
    std::string all = upgrade_request("/", "Sec-WebSocket-Extensions: permessage-deflate\r\n");
    for (const std::string& text : compressed_texts) {
        std::string packed;
        deflater.deflate(text, packed);
        all += frame_of({0xc1, packed});
        all += frame_of({0x89, "p"});
    }
    return all + close_frame(1000);
}

// Checks what a client of that conversation has received.
inline void expect_compressed_echo(std::string_view received, bool is_whole) {
    using namespace http::internal;
    const std::size_t head = received.find("\r\n\r\n");
    if (is_whole) EXPECT_NE(head, received.npos);
    if (head == received.npos) return;
    const bool is_accepted = received.starts_with("HTTP/1.1 101 ");
    EXPECT_TRUE(is_accepted || !is_whole) << received;
    if (!is_accepted) return;
    received.remove_prefix(head + 4);
    websocket_decoder decoder(websocket_decoder::sender::server, {},
                              std::make_unique<message_inflater>(15, true));
    std::size_t n = 0;
    bool is_closed = false;
    while (!received.empty() && !is_closed) {
        const websocket_decoder::result r = decoder.decode(received);
        received.remove_prefix(r.consumed);
        ASSERT_NE(r.what, websocket_decoder::found::error);
        is_closed = r.what == websocket_decoder::found::close;
        if (r.what != websocket_decoder::found::message) continue;
        ASSERT_LT(n, compressed_texts.size());
        EXPECT_EQ(decoder.message(), compressed_texts[n++]);
    }
    if (is_whole) EXPECT_TRUE(is_closed && n == compressed_texts.size());
}

}  // namespace coppice::test
