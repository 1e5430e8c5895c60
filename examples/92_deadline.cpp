// A deadline: an answer that does not come in time is an error.
#include <coppice/coppice.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <system_error>

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;

// Connects to a server that never answers.
task<> ask(io::context& loop, io::endpoint server) {
    io::tcp::socket socket(loop);
    co_await socket.connect(server);
    std::array<std::byte, 64> answer;
    co_await socket.receive(answer);
}

int main() {
    const auto work = [](io::context& loop) -> task<> {
        io::tcp::acceptor silent(loop, io::loopback(0));
        // The whole task has 10 ms. Then it is stopped, and has ended before this continues.
        co_await ex::timeout(ask(loop, silent.local()), 10ms);
    };
    try {
        io::run(work);
    } catch (const std::system_error& error) {
        if (error.code() != std::errc::timed_out) throw;
        std::printf("no answer in time\n");
    }
}
