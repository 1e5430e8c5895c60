// A server of HTTP over TLS, and a client that verifies it by its name.
#include "39_tls_trial.hpp"

// [top]
#include <coppice/coppice.hpp>
#include <coppice/tls.hpp>

#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>

using namespace coppice;
// [/top]

namespace {

// [server]
// set() of the slot replaces the certificates of connections to come; the others keep theirs.
http::server_options over_tls(std::shared_ptr<const tls::server_context_slot> present) {
    http::server_options options;
    options.endpoint = io::loopback(0);
    options.security = tls::server_security_of(std::move(present));
    return options;
}
// [/server]

// [alice]
// Needs a context that asks for certificates: tls::server_options::clients.
http::response for_alice(http::request& r) {
    const io::agreed_security* const agreed = r.security();
    if (agreed == nullptr || agreed->peer_subject != "CN=alice") return http::response::status(403);
    return http::response::text(std::string("hello, Alice"));
}
// [/alice]

// [client]
task<> ask(io::context& loop, tls::client_context trust, std::string url) {
    http::client_options options;
    options.security = trust;  // what it trusts; the name is checked in any case
    http::client client(loop, options);
    try {
        std::printf("%s\n", std::string((co_await client.get(url)).body()).c_str());
    } catch (const std::system_error& error) {
        std::printf("%s\n", error.code().message().c_str());
    }
}
// [/client]

}  // namespace

int main() {
    const tls::certificate own = certificate_for_an_hour();  // or certificate::from_files(...)
    const auto present = std::make_shared<tls::server_context_slot>(
        tls::server_context({.certificates = {own}, .protocols = {"http/1.1"}}));
    http::router routes;
    routes.get("/", [](http::request& q) {
        return http::response::text(std::string(q.is_secure() ? "over TLS" : "in the clear"));
    });
    routes.get("/alice", for_alice);
    http::server server(over_tls(present), std::move(routes));
    std::thread serving([&server] { server.run(); });
    const std::string port = std::to_string(server.port());
    io::run([&](io::context& loop) -> task<> {
        co_await ask(loop, tls::client_context({.authorities = own.chain}),
                     "https://localhost:" + port + "/");
        co_await ask(loop, tls::client_context(), "https://localhost:" + port + "/");
    });
    server.drain();
    serving.join();
}
