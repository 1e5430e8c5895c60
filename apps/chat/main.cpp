// coppice-chat: a page, and WebSockets over which open pages talk in rooms. At SIGTERM or SIGINT
// every page gets what was said before, is told, and gets the close code 1001. Exit status: 0
// after a drain, 2 if the options cannot be served, 1 for a failure while running.
#include "../common/process.hpp"
#include "hall.hpp"
#include "options.hpp"
#include "routes.hpp"

#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_any.hpp>
#include <coppice/http/server.hpp>
#include <coppice/io/run.hpp>
#include <coppice/io/signal_set.hpp>

#ifdef COPPICE_WITH_HTTP2
#include <coppice/http2.hpp>
#endif
#ifdef COPPICE_WITH_TLS
#include <coppice/tls.hpp>
#endif

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

namespace {

using namespace coppice;
namespace ex = coppice::execution;

void say(const std::string& what) {
    std::fprintf(stderr, "coppice-chat: %s\n", what.c_str());
}

std::shared_ptr<const io::server_security> security(const chat::options& o) {
    if (o.tls_certificate.empty()) return nullptr;
#ifdef COPPICE_WITH_TLS
    const auto own = tls::certificate::from_files(o.tls_certificate, o.tls_key);
    tls::server_options how{.certificates = {own}, .protocols = {"http/1.1"}};
#ifdef COPPICE_WITH_HTTP2
    how.protocols.insert(how.protocols.begin(), "h2");
#endif
    return tls::server_security_of(
        std::make_shared<tls::server_context_slot>(tls::server_context(how)));
#else
    throw std::runtime_error("--tls-certificate: this program was built without TLS");
#endif
}

// Lets the visitors go before the server drains: a drain by itself would close their WebSockets
// before they have got what was said.
task<> say_goodbye(http::server& server, chat::hall& hall, async_event& ended,
                   const chat::options& o) {
    hall.close();
    bool late = false;
    try {
        co_await ex::timeout(hall.wait_until_empty(), o.drain);
    } catch (const std::system_error&) {
        late = true;  // a visitor does not read
    }
    server.drain(late ? std::chrono::nanoseconds(0) : o.drain);
    co_await ended.wait();
}

// Completes when the server has ended. A second signal ends the program at once.
task<> watch(io::context& loop, http::server& server, chat::hall& hall, async_event& ended,
             const chat::options& o) {
    io::signal_set signals(loop, {SIGTERM, SIGINT});
    std::printf("listening on %s://%s\n", o.tls_certificate.empty() ? "http" : "https",
                server.local().to_string().c_str());
    std::fflush(stdout);
    const int first =
        co_await ex::when_any(signals.wait(), ended.wait() | ex::then([] { return 0; }));
    if (first == 0) co_return;
    say("draining");
    const int second = co_await ex::when_any(
        signals.wait(), say_goodbye(server, hall, ended, o) | ex::then([] { return 0; }));
    if (second != 0) std::_Exit(128 + second);
}

int serve(const chat::options& o) {
    chat::hall hall({o.rooms_max, o.visitors_max, o.backlog});
    std::optional<http::server> server;
    try {
        http::server_options how;
        how.endpoint = io::endpoint::parse(o.address, o.port).value();
        how.security = security(o);
        how.threads = o.threads;
#ifdef COPPICE_WITH_HTTP2
        how.http2 = http2::for_server();
#endif
        server.emplace(std::move(how), chat::make_routes(hall, o));
    } catch (const std::exception& e) {
        say(e.what());
        return 2;
    }
    std::exception_ptr failure;
    async_event ended;
    std::thread serving([&] {
        try {
            server->run();
        } catch (...) {
            failure = std::current_exception();
        }
        ended.set();
    });
    try {
        io::run([&](io::context& loop) { return watch(loop, *server, hall, ended, o); });
    } catch (...) {
        server->drain(std::chrono::nanoseconds(0));
        serving.join();
        throw;
    }
    serving.join();
    if (failure) std::rethrow_exception(failure);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const auto parsed = chat::parse(argc, argv);
    if (const int* const status = std::get_if<int>(&parsed)) return *status;
    common::prepare_process();
    try {
        return serve(std::get<chat::options>(parsed));
    } catch (const std::exception& e) {
        say(e.what());
        return 1;
    }
}
