// when_any of a socket, a timer and a stop signal: one comes first, the others are stopped.
#include <coppice/coppice.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <thread>

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;

namespace {

// [loop]
enum class news { data, silence, signal };

// Returns what comes first. The other two have ended by then, and no longer touch the arguments.
task<news> next_event(io::tcp::socket& socket, std::span<std::byte> buffer, io::timer& timer,
                      io::signal_set& signals) {
    co_return co_await ex::when_any(
        signals.wait() | ex::then([](int) { return news::signal; }),
        socket.receive(buffer) | ex::then([](std::size_t) { return news::data; }),
        timer.wait_for(50ms) | ex::then([] { return news::silence; }));
}

task<> serve(io::context& loop, io::tcp::socket socket, io::signal_set& signals) {
    io::timer timer(loop);
    std::array<std::byte, 64> buffer;
    for (;;) {
        switch (co_await next_event(socket, buffer, timer, signals)) {
            case news::data:
                std::puts("data");
                break;
            case news::silence:
                std::puts("silence");
                std::raise(SIGTERM);  // as an operator would
                break;
            case news::signal:
                std::puts("a signal: we end");
                co_return;
        }
    }
}
// [/loop]

task<> talk(io::context& loop, io::signal_set& signals) {
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    io::tcp::socket client(loop);
    co_await client.connect(acceptor.local());
    co_await client.send_all(std::as_bytes(std::span("hello", 5)));
    co_await serve(loop, co_await acceptor.accept(), signals);
}

}  // namespace

int main() {
    io::context loop;
    io::signal_set signals(loop, {SIGTERM});
    std::optional<io::context::work_guard> guard(loop);
    std::thread network([&] { loop.run(); });
    this_thread::sync_wait(ex::starts_on(loop.get_scheduler(), talk(loop, signals)));
    guard.reset();
    network.join();
}
