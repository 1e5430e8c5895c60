// coppice's server with one loop, on either ring.
#include "rivals.hpp"

#include <coppice/http/pause.hpp>
#include <coppice/http/server.hpp>
#include <coppice/pool/fork_join.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

namespace bench_http {

namespace {

void serve(coppice::io::backend ring) {
    using namespace coppice;
    http::router routes;
    routes.get("/plaintext", [](http::request&) { return http::response::text("Hello, World!"); });
    http::server_options options;
    options.endpoint = io::loopback(0);
    options.backend = ring;
    options.model = http::model::single;
    options.connections_max = 20'000;  // more than the 10,000 idle ones
    options.connections_per_address_max = 20'000;
    http::server server(std::move(options), std::move(routes));
    std::printf("listening on http://%s\n", server.local().to_string().c_str());
    std::fflush(stdout);
    server.run();
}

std::uint64_t fib(std::uint64_t n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

void serve_model(coppice::http::model model) {
    using namespace coppice;
    http::router routes;
    routes.get("/plaintext", [](http::request&) { return http::response::text("Hello, World!"); })
        .get("/cpu",
             [](http::request&) {
                 // As in the thesis: two tasks on a pool's worker, or in order on a loop.
                 volatile std::uint64_t n = 22;
                 const auto half = [m = n] { return fib(m); };
                 const auto [one, other] = fork_join(half, half);
                 return http::response::text(std::to_string(one + other));
             })
        .get("/io",
             [](http::request&) {
                 std::this_thread::sleep_for(std::chrono::milliseconds(15));
                 return http::response::text("held");
             })
        .get("/io-async", [](http::request& r) -> task<http::response> {
            co_await http::pause(r, std::chrono::milliseconds(15));
            co_return http::response::text("waited");
        });
    http::server_options options;
    options.endpoint = io::loopback(0);
    options.backend = io::backend::epoll;
    options.model = model;
    options.threads = model == http::model::single ? 1 : thread_pool::hardware();
    http::server server(std::move(options), std::move(routes));
    std::printf("listening on http://%s\n", server.local().to_string().c_str());
    std::fflush(stdout);
    server.run();
}

}  // namespace

void serve_model_single() {
    serve_model(coppice::http::model::single);
}
void serve_model_multi() {
    serve_model(coppice::http::model::multi);
}
void serve_model_worker() {
    serve_model(coppice::http::model::worker);
}
void serve_model_async() {
    serve_model(coppice::http::model::async);
}

void serve_coppice_epoll() {
    serve(coppice::io::backend::epoll);
}
void serve_coppice_uring() {
    serve(coppice::io::backend::uring);
}

}  // namespace bench_http
