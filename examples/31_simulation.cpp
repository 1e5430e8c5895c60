// Testing network code without a network: each seed gives other faults, and repeats exactly.
#include <coppice/coppice.hpp>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

using namespace coppice;

namespace {

// [code]
// The code under test: it must not matter in how many pieces a line arrives.
task<std::string> receive_line(io::tcp::socket& socket) {
    std::string line;
    for (std::array<char, 16> piece; !line.ends_with('\n');) {
        const std::size_t n = co_await socket.receive(std::as_writable_bytes(std::span(piece)));
        if (n == 0) break;
        line.append(piece.data(), n);
    }
    co_return line;
}
// [/code]

// [simulation]
// Returns true if the line arrived as it was sent, in this seed's world.
bool survives(std::uint64_t seed) {
    io::simulation world(seed);  // short reads, EINTR, EAGAIN, delay, reordered events
    io::context loop(world);     // the usual context, with virtual time
    constexpr std::string_view sent = "a line that arrives in pieces\n";
    std::string received;
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    io::tcp::socket client(loop);
    io::tcp::socket server(loop);
    client.connect(acceptor.local(), [&](std::error_code) {
        client.send_all(std::as_bytes(std::span(sent)), [](std::error_code) {});
    });
    server = acceptor.accept(block);  // runs the loop until a client has connected
    execution::counting_scope scope;
    execution::spawn(
        execution::starts_on(loop.get_scheduler(), receive_line(server)) |
            execution::then([&](std::string line) noexcept { received = std::move(line); }),
        scope.get_token(), [](auto&&) noexcept {});
    loop.run();  // until nothing is pending
    this_thread::sync_wait(scope.join());
    return received == sent;
}
// [/simulation]

}  // namespace

int main() {
    int good = 0;
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) good += survives(seed);
    std::printf("%d of 1000 runs are good\n", good);
}
