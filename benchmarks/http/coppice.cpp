// coppice's server with one loop, on either ring.
#include "rivals.hpp"

#include <coppice/http/server.hpp>

#include <cstdio>

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
    http::server server(std::move(options), std::move(routes));
    std::printf("listening on http://%s\n", server.local().to_string().c_str());
    std::fflush(stdout);
    server.run();
}

}  // namespace

void serve_coppice_epoll() {
    serve(coppice::io::backend::epoll);
}
void serve_coppice_uring() {
    serve(coppice::io::backend::uring);
}

}  // namespace bench_http
