// coppice's server with one loop, on either ring: over TLS, with HTTP/2, and with a WebSocket.
#include "certificate.hpp"
#include "rivals.hpp"

#include <coppice/http/server.hpp>
#include <coppice/http/websocket.hpp>
#include <coppice/http2/server.hpp>
#include <coppice/tls/context.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

namespace bench_edge {

namespace {

using namespace coppice;

constexpr auto page = [] {
    std::array<char, page_bytes> bytes{};
    bytes.fill(page_byte);
    return bytes;
}();

// Answers /plaintext and /page, and echoes at /echo.
void serve_edge(http::server_options options, io::backend ring) {
    http::router routes;
    routes.get("/plaintext", [](http::request&) { return http::response::text(plaintext); })
        .get("/page",
             [](http::request&) {
                 return http::response::text(std::string_view(page.data(), page.size()));
             })
        .get("/echo", http::websocket_handler([](http::websocket& socket) -> task<> {
                 while (const auto message = co_await socket.receive()) {
                     if (co_await socket.send(*message)) co_return;
                 }
             }));
    options.endpoint = io::loopback(0);
    options.backend = ring;
    options.model = http::model::single;
    options.connections_max = 15'000;  // more than the 10,000 idle ones
    options.connections_per_address_max = 15'000;
    options.requests_per_connection_max = 1'000'000'000;
    options.timeouts.idle = std::chrono::seconds(300);  // as nginx is told
    http::server server(std::move(options), std::move(routes));
    std::printf("listening on http://%s\n", server.local().to_string().c_str());
    std::fflush(stdout);
    server.run();
}

void serve_secure(io::backend ring) {
    const certificate_files& files = shared_certificate();
    tls::server_options options;
    options.certificates.push_back(tls::certificate::from_files(files.certificate(), files.key()));
    http::server_options how;
    how.security = tls::server_context(options);
    serve_edge(std::move(how), ring);
}

void serve_h2(io::backend ring) {
    http::server_options options;
    options.http2 = http2::for_server();
    serve_edge(std::move(options), ring);
}

}  // namespace

void serve_coppice_tls_epoll() {
    serve_secure(io::backend::epoll);
}
void serve_coppice_tls_uring() {
    serve_secure(io::backend::uring);
}
void serve_coppice_h2_epoll() {
    serve_h2(io::backend::epoll);
}
void serve_coppice_h2_uring() {
    serve_h2(io::backend::uring);
}
void serve_coppice_echo_epoll() {
    serve_edge({}, io::backend::epoll);
}
void serve_coppice_echo_uring() {
    serve_edge({}, io::backend::uring);
}

}  // namespace bench_edge
