// HTTP/2 for http::server, by nghttp2: an option of the server.
#pragma once
//   http::server_options options;
//   options.http2 = http2::for_server();
//
// Every handler then serves both protocols. A client in the clear begins with HTTP/2's preface
// (prior knowledge); a client of TLS asks for "h2" by ALPN, if the security's protocols name it.
// docs/http-server.md says what differs.

#include <coppice/http/multiplexer.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace coppice::http2 {

// What a client may do on one connection.
struct server_limits {
    // Open at the same time; 1 to 10,000. A stream beyond it is reset with REFUSED_STREAM.
    std::uint32_t streams_max = 100;
    // What a client may send of a body before the handler has read it, in bytes: 1 to 2^31 - 1. It
    // counts toward http::server_options::buffered_bytes_max.
    std::uint32_t stream_window_bytes = 256 * 1024;
    // Streams that a client may reset, spoil by a wrong frame, or open beyond streams_max, on top
    // of those that it lets end. Then the connection ends with ENHANCE_YOUR_CALM.
    std::size_t resets_max = 200;
    // Frames that carry nothing (PING, SETTINGS, PRIORITY, WINDOW_UPDATE, RST_STREAM, empty DATA,
    // those of an unknown type, and those of a head for a closed stream) beyond those that carry a
    // request or a body; at least 16. Likewise.
    std::size_t idle_frames_max = 2'000;
    // Permits WebSockets, by extended CONNECT (RFC 8441). Otherwise they need HTTP/1.1.
    bool websockets = true;
};

// Returns what a server needs to speak HTTP/2. Errors: std::invalid_argument for a limit that is
// out of its range. Threads: any; servers may share it.
std::shared_ptr<const http::multiplexing> for_server(server_limits limits = {});

}  // namespace coppice::http2
