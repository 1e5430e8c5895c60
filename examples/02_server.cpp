// A web server whose handlers compute on a pool; a client sends it three requests and stops it.
// [top]
#include <coppice/coppice.hpp>

#include <cstdio>
#include <string>
#include <thread>

using namespace coppice;
// [/top]

namespace {

// [client]
task<std::string> get(io::context& loop, io::endpoint from, std::string path) {
    io::tcp::socket socket(loop);
    co_await socket.connect(from);
    const std::string request =
        "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    co_await socket.send_all(std::as_bytes(std::span(request)));
    std::string answer;
    for (;;) {
        const io::pooled_buffer some = co_await socket.receive_pooled();
        if (some.empty()) break;
        answer.append(reinterpret_cast<const char*>(some.bytes().data()), some.bytes().size());
    }
    co_return answer.substr(answer.find("\r\n\r\n") + 4);
}
// [/client]

task<> ask(io::context& loop, http::server& server) {
    for (const char* const path : {"/hello/world", "/fib/20", "/fib/41"}) {
        const std::string body = co_await get(loop, server.local(), path);
        std::printf("%s: %s\n", path, body.c_str());
    }
    server.drain();
}

// Runs `ask` on a loop of its own, on another thread.
class visitor {
public:
    explicit visitor(http::server& server)
        : thread_([&server] {
              io::context loop;
              std::thread network;
              {
                  const io::context::work_guard guard(loop);
                  network = std::thread([&loop] { loop.run(); });
                  this_thread::sync_wait(
                      execution::starts_on(loop.get_scheduler(), ask(loop, server)));
              }
              network.join();
          }) {}
    ~visitor() { thread_.join(); }

private:
    std::thread thread_;
};

std::uint64_t fib(std::uint64_t n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

}  // namespace

// [server]
int main() {
    thread_pool pool;
    http::router routes;
    routes.get("/hello/{name}", [](http::request& r) {
        return http::response::text("hello " + r.parameter("name").value_or("stranger"));
    });
    routes.get("/fib/{n:int}", [&pool](http::request& r) -> task<http::response> {
        const auto n = r.parameter<std::uint64_t>("n");
        if (!n || *n > 40) co_return http::response::status(400, "n must be 0 to 40");
        co_await pool.get_scheduler().schedule();  // the event loop stays free meanwhile
        co_return http::response::text(std::to_string(fib(*n)));
    });
    http::server server({.endpoint = io::loopback(0), .threads = 2}, std::move(routes));
    const visitor client(server);  // sends three requests, then calls server.drain()
    server.run();
}
// [/server]
