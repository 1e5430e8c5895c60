// Shared by the raw loops: listening, and as much of HTTP as a constant answer needs.
#pragma once

#include <cstddef>
#include <string_view>

namespace bench_http {

// Returns a non-blocking socket that listens on a free port, and prints the port.
int listen_on_loopback();

// Returns how many requests end in `bytes`. Parses only the ends of heads.
inline std::size_t count_heads(std::string_view bytes) {
    std::size_t heads = 0;
    for (std::size_t at = 0; (at = bytes.find("\r\n\r\n", at)) != bytes.npos; at += 4) ++heads;
    return heads;
}
inline bool wants_close(std::string_view bytes) {
    return bytes.find("Connection: close") != bytes.npos;
}

inline constexpr std::string_view constant_answer =
    "HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 07:00:00 GMT\r\n"
    "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 13\r\n\r\nHello, World!";

}  // namespace bench_http
