// An echo server and its client on one loop, with a timer: every wait is a co_await.
// [top]
#include <coppice/coppice.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <thread>

using namespace coppice;
using namespace std::chrono_literals;
// [/top]

namespace {

// [echo]
task<> echo(io::tcp::socket socket) {
    std::array<std::byte, 1024> buffer;
    for (;;) {
        std::error_code ec;  // use_await[ec]: the error is a value here, not an exception
        const std::size_t n = co_await socket.receive(buffer, use_await[ec]);
        if (ec || n == 0) co_return;
        co_await socket.send_all(std::span(buffer).first(n));
    }
}
// [/echo]

task<> serve_one(io::tcp::acceptor& acceptor) {
    co_await echo(co_await acceptor.accept());
}

task<> talk(io::context& loop, io::endpoint to) {
    io::tcp::socket socket(loop);
    co_await socket.connect(to);
    for (const std::string_view word : {"one", "two", "three"}) {
        co_await socket.send_all(std::as_bytes(std::span(word)));
        std::array<char, 16> answer;
        const std::size_t n = co_await socket.receive(std::as_writable_bytes(std::span(answer)));
        std::printf("%.*s\n", static_cast<int>(n), answer.data());
        io::timer pause(loop);
        co_await pause.wait_for(1ms);
    }
}

}  // namespace

int main() {
    io::context loop;
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    auto network = [&loop] { loop.run(); };
    std::thread runner;
    {
        const io::context::work_guard guard(loop);
        runner = std::thread(network);
        this_thread::sync_wait(execution::when_all(
            execution::starts_on(loop.get_scheduler(), serve_one(acceptor)),
            execution::starts_on(loop.get_scheduler(), talk(loop, acceptor.local()))));
    }
    runner.join();
}
