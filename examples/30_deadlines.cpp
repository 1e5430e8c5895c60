// A read that must not take long: the first of two operations wins, and a timeout is an error.
#include <coppice/coppice.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

using namespace coppice;
using namespace std::chrono_literals;

namespace {

// [first]
// Prints which of the two came first. The other is stopped before this continues.
task<> first_of(io::tcp::socket& socket, io::context& loop) {
    std::array<std::byte, 64> buffer;
    io::timer timer(loop);
    co_await execution::when_any(
        socket.receive(buffer) |
            execution::then([](std::size_t n) { std::printf("received %zu bytes\n", n); }),
        timer.wait_for(5ms) | execution::then([] { std::printf("nothing came in time\n"); }));
}
// [/first]

// [timeout]
// A limit for anything that can be stopped, however many operations it consists of.
task<> within(io::tcp::socket& socket) {
    std::array<std::byte, 64> buffer;
    try {
        co_await execution::timeout(socket.receive(buffer), 5ms);
    } catch (const std::system_error& error) {
        if (error.code() == std::errc::timed_out) std::printf("timed out\n");
    }
}
// [/timeout]

// [whole]
// Limits a whole task, which ends when one of its operations is stopped.
task<std::size_t> two_messages(io::tcp::socket& socket) {
    std::array<std::byte, 64> buffer;
    const std::size_t first = co_await socket.receive(buffer);
    co_return first + co_await socket.receive(buffer);
}

task<> both_within(io::tcp::socket& socket) {
    try {
        const std::size_t n = co_await execution::timeout(two_messages(socket), 5ms);
        std::printf("two messages of %zu bytes\n", n);
    } catch (const std::system_error& error) {
        if (error.code() == std::errc::timed_out)
            std::printf("two messages did not come in time\n");
    }
}
// [/whole]

task<> talk(io::context& loop) {
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    io::tcp::socket client(loop);
    co_await client.connect(acceptor.local());
    io::tcp::socket server = co_await acceptor.accept();
    co_await first_of(server, loop);
    co_await within(server);
    co_await client.send_all(std::as_bytes(std::span("hello", 5)));
    co_await first_of(server, loop);
    co_await client.send_all(std::as_bytes(std::span("one", 3)));
    co_await both_within(server);
}

}  // namespace

int main() {
    io::context loop;
    std::optional<io::context::work_guard> guard(loop);
    std::thread runner([&loop] { loop.run(); });
    this_thread::sync_wait(execution::starts_on(loop.get_scheduler(), talk(loop)));
    guard.reset();
    runner.join();
}
