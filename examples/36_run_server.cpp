// A server program: it serves until SIGINT or SIGTERM, then waits for its connections and ends.
#include <coppice/coppice.hpp>

#include <array>
#include <csignal>
#include <cstdio>
#include <span>
#include <string_view>
#include <thread>

#include <unistd.h>

using namespace coppice;
namespace ex = coppice::execution;

namespace {

task<> echo(io::tcp::socket socket) {
    std::array<std::byte, 1024> buffer;
    while (const std::size_t n = co_await socket.receive(buffer))
        co_await socket.send_all(std::span(buffer).first(n));
}

// Says hello to the server, sends this process a SIGTERM, and waits for the end of its connection.
class visitor {
public:
    explicit visitor(io::endpoint server)
        : thread_([server] {
              io::context loop;
              io::tcp::socket socket(loop);
              std::array<char, 16> answer;
              socket.connect(server, block);
              socket.send_all(std::as_bytes(std::span(std::string_view("hello"))), block);
              const std::size_t n =
                  socket.receive(std::as_writable_bytes(std::span(answer)), block);
              std::printf("%.*s\n", static_cast<int>(n), answer.data());
              ::kill(::getpid(), SIGTERM);
              std::error_code ec;  // the server closes, or resets
              socket.receive(std::as_writable_bytes(std::span(answer)), block[ec]);
          }) {}
    ~visitor() { thread_.join(); }

private:
    std::thread thread_;
};

// [serve]
// One echo per connection. A stop ends the accept and each echo, and the scope waits for them.
task<> serve(io::context& loop) {
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    const visitor client(acceptor.local());  // says hello, then sends a SIGTERM
    co_await ex::scoped([&](auto scope) -> task<> {
        const auto has_left = [](auto&&) noexcept {};  // an error of one client ends only its echo
        for (;;) ex::spawn(echo(co_await acceptor.accept()), scope, has_left);
    });
}
// [/serve]

}  // namespace

// [main]
int main() {
    io::run(serve, {.stop_on = {SIGINT, SIGTERM}});
    std::printf("stopped\n");
}
// [/main]
