// An echo over TLS, and a client that verifies the server by its name.
#include "39_tls_trial.hpp"

// [top]
#include <coppice/coppice.hpp>
#include <coppice/tls.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <utility>

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
// [/top]

namespace {

// [echo]
task<> echo(io::tcp::socket socket, tls::server_context context) {
    tls::stream stream(std::move(socket), context);
    co_await ex::timeout(stream.handshake(), 10s);
    std::array<std::byte, 1024> buffer;
    while (const std::size_t n = co_await stream.receive(buffer))
        co_await stream.send_all(std::span(buffer).first(n));
    co_await ex::timeout(stream.shutdown(), 1s);  // the client has said its end, and so do we
}
// [/echo]

// [serve]
// set() of the slot replaces the context of connections to come; the others keep theirs.
task<> serve(io::tcp::acceptor& acceptor, const tls::server_context_slot& present) {
    co_await ex::scoped([&](auto scope) -> task<> {
        const auto has_left = [](auto&&) noexcept {};  // an error of one client ends only its echo
        for (;;) ex::spawn(echo(co_await acceptor.accept(), present.get()), scope, has_left);
    });
}
// [/serve]

// [ask]
task<> ask(io::tcp::socket socket, tls::client_context context, std::string_view host) {
    tls::stream stream(std::move(socket), context, host);
    try {
        co_await stream.handshake();  // throws unless the server proves that it is `host`
    } catch (const std::system_error& error) {
        std::printf("%s: %s\n", host.data(), error.code().message().c_str());
        co_return;
    }
    co_await stream.send_all(std::as_bytes(std::span(std::string_view("hello"))));
    std::array<char, 64> answer;
    const std::size_t n = co_await stream.receive(std::as_writable_bytes(std::span(answer)));
    std::printf("%.*s\n", static_cast<int>(n), answer.data());
    co_await ex::timeout(stream.shutdown(), 1s);
}
// [/ask]

// [main]
task<> server_and_client(io::context& loop) {
    tls::certificate own = certificate_for_an_hour();  // or certificate::from_files(chain, key)
    const tls::client_context context({.authorities = own.chain});  // and those of the system
    const tls::server_context_slot present{tls::server_context({.certificates = {own}})};
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    const auto ask_twice = [&]() -> task<> {
        for (const char* const host : {"localhost", "another.example"}) {
            io::tcp::socket socket(loop);
            co_await socket.connect(acceptor.local());
            co_await ask(std::move(socket), context, host);
        }
    };
    co_await ex::when_any(serve(acceptor, present), ask_twice());
}
// [/main]

}  // namespace

int main() {
    io::run(server_and_client);
}
