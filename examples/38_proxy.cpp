// A TCP proxy: copies bytes between its clients and a target until both sides have ended.
//
//   example_38_proxy 0.0.0.0:8080 example.org:80
//
// Without arguments it runs a trial of itself (38_proxy_trial.hpp).
#include <coppice/coppice.hpp>

#include "38_proxy_trial.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;

namespace {

constexpr int clients_max = 1000;
constexpr std::chrono::milliseconds connect_max = 10s, idle_max = 60s, pause = 100ms;

// [relay]
// Passes the end of one side on to the other, which may still send. Counts itself off at its end.
task<> relay(io::context& loop, io::tcp::socket client, const std::string& target, int& clients) {
    const scope_exit leave([&clients]() noexcept { --clients; });
    io::tcp::socket server = co_await ex::timeout(io::tcp::connect(loop, target), connect_max);
    co_await io::copy_both(client, server, {.idle_max = idle_max});
}
// [/relay]

void report(const std::string& about, const std::exception_ptr& error) noexcept {
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s: %s\n", about.c_str(), e.what());
    }
}

// [proxy]
// Serves until it is stopped. A stop also stops the relays, and the scope waits for them.
task<> proxy(io::context& loop, io::tcp::acceptor acceptor, const std::string& target) {
    int clients = 0;
    co_await ex::scoped([&](auto scope) -> task<> {
        for (;;) {
            std::error_code ec;
            io::tcp::socket client = co_await acceptor.accept(use_await[ec]);
            if (ec) {  // for example too many open files: clients that leave free some
                co_await loop.get_scheduler().schedule_after(pause);
                std::fprintf(stderr, "accept: %s\n", ec.message().c_str());
            } else if (clients != clients_max) {  // else it is closed at once
                ++clients;
                ex::spawn(relay(loop, std::move(client), target, clients), scope,
                          [&](std::exception_ptr error) noexcept { report(target, error); });
            }
        }
    });
}
// [/proxy]

}  // namespace

// [main]
int main(int argc, char** argv) try {
    if (argc != 1 && argc != 3) {
        std::fprintf(stderr, "usage: %s LISTEN TARGET, as in 0.0.0.0:8080 example.org:80\n", *argv);
        return 2;
    }
    const auto trial = argc == 1 ? std::make_unique<proxy_trial>() : nullptr;
    const std::string from = trial ? "127.0.0.1:0" : argv[1];
    const std::string to = trial ? trial->target() : argv[2];
    const auto serve = [&](io::context& loop) {
        io::tcp::acceptor acceptor = io::tcp::listen(loop, from);
        if (trial) trial->begin(acceptor.local().to_string());
        return proxy(loop, std::move(acceptor), to);
    };
    io::run(serve, {.stop_on = {SIGINT, SIGTERM}});
    std::printf("stopped\n");
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
// [/main]
