// The servers that the edge benchmark compares. Each runs in a process of its own.
#pragma once

#include <cstddef>

namespace bench_edge {

// The bodies of /plaintext and /page.
inline constexpr char plaintext[] = "Hello, World!";
inline constexpr std::size_t page_bytes = std::size_t{16} * 1024;
inline constexpr char page_byte = 'x';

// Each prints `listening on http://127.0.0.1:PORT`, and serves on one thread until it is killed.
// tls: HTTP/1.1 over TLS with the certificate of certificate.hpp. h2: HTTP/2 in the clear. echo: a
// WebSocket at /echo that sends each message back.
void serve_coppice_tls_epoll();
void serve_coppice_tls_uring();
void serve_coppice_h2_epoll();
void serve_coppice_h2_uring();
void serve_coppice_echo_epoll();
void serve_coppice_echo_uring();
// The floor: the same bytes, with no check, no limit, and no library.
void serve_raw_echo_epoll();
void serve_raw_echo_uring();
// These replace the process, and exit with 1 if nginx is not there.
void serve_nginx_tls();
void serve_nginx_h2();
#ifdef BENCH_WITH_BEAST
void serve_beast_echo();
#endif

}  // namespace bench_edge
