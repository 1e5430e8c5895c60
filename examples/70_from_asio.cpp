// What a user of Asio writes: an acceptor's loop, a read with a timeout, a strand, a signal.
// [top]
#include <coppice/coppice.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
// [/top]

namespace {

// [session]
// co_spawn(strand, session(...), detached) becomes a task spawned into a scope, on the loop. A loop
// has one thread, so nothing needs a strand. Several loops are a context_pool.
task<> session(io::tcp::socket socket) {
    std::array<std::byte, 64> buffer;
    for (;;) {
        std::error_code ec;  // redirect_error(use_awaitable, ec)
        const std::size_t n = co_await socket.receive(buffer, use_await[ec]);
        if (ec || n == 0) co_return;
        co_await socket.send_all(std::span(buffer).first(n));
    }
}

task<> serve(io::tcp::acceptor& acceptor, ex::counting_scope& sessions, int most) {
    for (int i = 0; i != most; ++i) {
        ex::spawn(session(co_await acceptor.accept()), sessions.get_token(),
                  [](auto&&) noexcept {});
    }
    co_await sessions.join();  // detached sessions have no such moment
}
// [/session]

// [timeout]
// experimental::awaitable_operators' `read || timer` is when_any, without a variant to take apart.
task<std::string> answer_within(io::tcp::socket& socket, io::context& loop,
                                std::chrono::nanoseconds limit) {
    std::array<char, 64> text;
    io::timer timer(loop);
    co_return co_await ex::when_any(
        socket.receive(std::as_writable_bytes(std::span(text))) |
            ex::then([&](std::size_t n) { return std::string(text.data(), n); }),
        timer.wait_for(limit) | ex::then([] { return std::string("nothing"); }));
}
// [/timeout]

task<> client(io::context& loop, io::endpoint server) {
    io::tcp::socket socket(loop);
    co_await socket.connect(server);
    co_await socket.send_all(std::as_bytes(std::span("ping", 4)));
    std::printf("received %s\n", (co_await answer_within(socket, loop, 10s)).c_str());
    std::printf("received %s\n", (co_await answer_within(socket, loop, 1ms)).c_str());
}

}  // namespace

int main() {
    // [main]
    io::context loop;  // asio::io_context
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    ex::counting_scope sessions;
    std::optional<io::context::work_guard> guard(loop);  // make_work_guard(io_context)
    std::thread network([&] { loop.run(); });
    this_thread::sync_wait(
        ex::starts_on(loop.get_scheduler(),
                      ex::when_all(serve(acceptor, sessions, 1), client(loop, acceptor.local()))));
    guard.reset();
    network.join();
    // [/main]
}
