// A graceful drain: a server that is told to end first answers the requests in flight.
#include <coppice/coppice.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

using namespace coppice;
using namespace std::chrono_literals;

// Stands for a browser that is in the middle of a request when the server is told to end.
void visit(io::endpoint server) {
    io::run([&](io::context& loop) -> task<> {
        http::client client(loop);
        const http::client_response answer = co_await client.get(server, "/slow");
        std::printf("answer: %s\n", std::string(answer.body()).c_str());
    });
}

int main() {
    http::router routes;
    routes.get("/slow", [](http::request& r) -> task<http::response> {
        std::raise(SIGTERM);  // stands for the system, which ends the server
        co_await http::pause(r, 5ms);
        co_return http::response::text("whole");
    });
    http::server server({.endpoint = io::loopback(0)}, std::move(routes));
    server.drain_on({SIGINT, SIGTERM}, 30s);  // a second signal, or 30 s, cuts off what is left
    std::thread browser(visit, server.local());
    server.run();  // until the last answer has been sent
    browser.join();
    std::printf("drained\n");
}
