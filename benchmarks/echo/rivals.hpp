// The echo servers that the benchmark puts beside each other; each runs in a process of its own.
#pragma once

namespace bench_echo {

constexpr int message_bytes = 64;

// A listening socket on a free port of 127.0.0.1, not blocking, TCP_NODELAY on; its port is
// printed as `listening on PORT`.
int listen_on_loopback();
// Prints the line for those who listen by themselves.
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
