// What scripted servers of HTTP/2 say to a client, and clients that speak HTTP/2 to them.
#pragma once

#include <coppice/http2.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "../http/asking.hpp"
#include "../http/scripted_server.hpp"
#include "client.hpp"

namespace coppice::test {

inline constexpr int end_headers = NGHTTP2_FLAG_END_HEADERS;
inline constexpr int end_stream = NGHTTP2_FLAG_END_STREAM;

inline http::client_options by_prior_knowledge() {
    http::client_options o;
    o.http2 = http2::for_client();
    o.http2_in_the_clear = true;
    return o;
}

inline std::string settings(std::string_view entries = {}) {
    return frame(NGHTTP2_SETTINGS, 0, 0, entries);
}
inline std::string head_of(std::uint32_t stream, int flags, std::string_view more = {}) {
    return frame(NGHTTP2_HEADERS, end_headers | flags, stream,
                 literal(":status", "200").append(more));
}
inline std::string hello(std::uint32_t stream) {
    return head_of(stream, 0, literal("x-a", "b")) + frame(NGHTTP2_DATA, 0, stream, "hel") +
           frame(NGHTTP2_DATA, end_stream, stream, "lo");
}

// A setting that says how many streams may be open at once.
inline std::string streams_setting(std::uint32_t most) {
    return std::string("\0\3", 2) + number(most);
}

// Receives until a request's head has come on a stream. Returns false if the client has left.
inline bool receive_asked(accepted& a, std::uint32_t stream) {
    std::size_t at = NGHTTP2_CLIENT_MAGIC_LEN;
    for (;;) {
        while (a.received.size() >= at + 9) {
            const auto byte = [&](std::size_t i) {
                return static_cast<unsigned char>(a.received[at + i]);
            };
            const std::size_t size = std::size_t{byte(0)} << 16 | byte(1) << 8 | byte(2);
            const auto on = static_cast<std::uint32_t>(byte(7) << 8 | byte(8));
            if (byte(3) == NGHTTP2_HEADERS && on == stream) return true;
            at += 9 + size;
        }
        if (!a.receive()) return false;
    }
}

// Serves one connection: sends these bytes after the first request, and waits for the end.
inline std::function<void(accepted&)> sends(std::string bytes) {
    return [bytes = std::move(bytes)](accepted& a) {
        if (!receive_asked(a, 1)) return;
        (void)a.send(bytes);
        a.receive_all();
    };
}

}  // namespace coppice::test
