// The servers that the HTTP benchmark puts beside each other; each runs in a process of its own.
#pragma once

namespace bench_http {

// Each prints `listening on http://127.0.0.1:PORT`, answers GET /plaintext, and serves until it is
// killed.
void serve_raw_epoll();
void serve_coppice_epoll();
void serve_coppice_uring();
void serve_nginx();  // replaces the process; exits with 1 where nginx is not installed

}  // namespace bench_http
