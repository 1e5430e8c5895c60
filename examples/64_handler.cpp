// A request handler that forks its computation on the pool, and stops when its client leaves.
#include <coppice/coppice.hpp>

#include <atomic>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;

namespace {

bool is_prime(std::uint64_t n) {
    for (std::uint64_t d = 2; d * d <= n; ++d) {
        if (n % d == 0) return false;
    }
    return n > 1;
}

// What the handlers of this program did, for the program to say.
struct diary {
    std::atomic<bool> begun{false};
    std::atomic<int> stopped{0};
};

// [handler]
// Counts primes below n: in parallel on the pool, while the connection's loop serves others. The
// request's token is stopped when the client resets its connection, when the deadline has passed,
// and when the server cuts off; the loop over the numbers then ends within a few of them.
task<http::response> primes(http::request& r, thread_pool& pool, diary& notes) {
    const auto n = r.parameter<std::uint64_t>("n");
    if (!n) co_return http::response::status(400, "n must be a number");
    const inplace_stop_token stop = r.stop_token();
    co_await pool.get_scheduler().schedule();
    notes.begun = true;
    std::atomic<std::uint64_t> count{0};
    const auto [all] = fork_join(stop, [&] {
        return parallel_for(std::uint64_t{0}, *n, [&](std::uint64_t i) {
            if (is_prime(i)) count.fetch_add(1, std::memory_order_relaxed);
        });
    });
    if (!all) {
        ++notes.stopped;
        co_return http::response::status(503, "stopped");  // nobody reads it
    }
    co_return http::response::text(std::to_string(count.load()));
}
// [/handler]

// Asks, and is gone as soon as the handler computes.
task<> leave(io::context& loop, io::endpoint server, diary& notes) {
    io::tcp::socket socket(loop);
    co_await socket.connect(server);
    const std::string_view request = "GET /primes/1000000000000 HTTP/1.1\r\nHost: x\r\n\r\n";
    co_await socket.send_all(std::as_bytes(std::span(request)));
    io::timer timer(loop);
    while (!notes.begun) co_await timer.wait_for(1ms);
    socket.set(io::linger(0s));  // closing is a reset
    socket.close();
    while (notes.stopped == 0) co_await timer.wait_for(1ms);
}

task<> visit(io::context& loop, http::server& server, diary& notes) {
    http::client client(loop);
    http::client_response answer = co_await client.get(server.local(), "/primes/1000");
    std::printf("below 1000: %s primes\n", std::string(answer.body()).c_str());
    co_await leave(loop, server.local(), notes);
    std::printf("handlers stopped by their client: %d\n", notes.stopped.load());
    server.drain();
}

}  // namespace

int main() {
    thread_pool pool(2);
    diary notes;
    http::router routes;
    // [route]
    routes.get("/primes/{n:int}",
               [&](http::request& r) -> task<http::response> { return primes(r, pool, notes); });
    http::server server({.endpoint = io::loopback(0), .threads = 1}, std::move(routes));
    // [/route]
    std::thread visitor([&] {
        io::context loop;
        std::optional<io::context::work_guard> guard(loop);
        std::thread network([&] { loop.run(); });
        this_thread::sync_wait(ex::starts_on(loop.get_scheduler(), visit(loop, server, notes)));
        guard.reset();
        network.join();
    });
    server.run();
    visitor.join();
}
