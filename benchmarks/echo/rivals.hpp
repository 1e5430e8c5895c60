// The echo servers that the benchmark compares. Each runs in a process of its own.
#pragma once

namespace bench_echo {

constexpr int message_bytes = 64;

// Returns a non-blocking listening socket on a free port of 127.0.0.1, with TCP_NODELAY, and prints
// `listening on PORT`.
int listen_on_loopback();
// Prints that line for a server that listens by itself.
void announce(int port);

// Each sends back what it receives, until it is killed.
void serve_raw_epoll();
void serve_raw_uring();
void serve_coppice_epoll();
void serve_coppice_uring();
void serve_coppice_epoll_callback();
void serve_coppice_uring_callback();
void serve_asio_callback();
void serve_asio_awaitable();

}  // namespace bench_echo
