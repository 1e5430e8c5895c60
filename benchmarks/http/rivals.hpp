// The servers that the HTTP benchmark compares. Each runs in a process of its own.
#pragma once

namespace bench_http {

// Each prints `listening on http://127.0.0.1:PORT`, answers GET /plaintext, and serves until it is
// killed.
void serve_raw_epoll();
void serve_raw_uring();
void serve_coppice_epoll();
void serve_coppice_uring();
// The thesis's models, each with as many threads as processors (single: one), and with routes for
// the thesis's workloads: /plaintext, /cpu (the sum of two 22nd Fibonacci numbers, on the thread
// that the model gives handlers), /io (blocks its thread for 15 ms), /io-async (waits as long on a
// timer).
void serve_model_single();
void serve_model_multi();
void serve_model_worker();
void serve_model_async();
void serve_nginx();  // replaces the process; exits with 1 if nginx is not installed

}  // namespace bench_http
