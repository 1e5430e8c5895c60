// HTTP/2 for http::client, by nghttp2: an option of the client.
#pragma once
//   http::client_options options;
//   options.http2 = http2::for_client();
//   options.security = tls::client_context({.protocols = {"h2", "http/1.1"}});
//
// The client then asks for "h2" by ALPN, and speaks what the server chooses. In the clear it speaks
// HTTP/2 only if client_options::http2_in_the_clear says that its servers do. docs/http-client.md
// says what differs.

#include <coppice/http/multiplexer.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace coppice::http2 {

// What a client allows itself, and a server, on one connection.
struct client_limits {
    // Requests at the same time, if the server allows as many; 1 to 10,000. Others wait.
    std::uint32_t streams_max = 100;
    // What a server may send of a body before the client's program has taken it, in bytes: 1 to
    // 2^31 - 1. One connection thus holds at most `streams_max` times as many.
    std::uint32_t stream_window_bytes = 256 * 1024;
    // Frames that carry nothing (PING, SETTINGS, PRIORITY, WINDOW_UPDATE, RST_STREAM, DATA that is
    // empty or padding alone, those of an unknown type, and interim heads) beyond those that bodies
    // and answers are good for; at least 16. Then the connection ends with ENHANCE_YOUR_CALM.
    std::size_t idle_frames_max = 2'000;
};

// Returns what a client needs to speak HTTP/2. Errors: std::invalid_argument for a limit that is
// out of its range. Threads: any; clients may share it.
std::shared_ptr<const http::client_multiplexing> for_client(client_limits limits = {});

}  // namespace coppice::http2
