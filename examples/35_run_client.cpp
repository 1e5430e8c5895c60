// A client program: main() calls io::run(), which runs a task until it ends or is stopped.
#include <coppice/coppice.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <span>
#include <string>
#include <thread>

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;

namespace {

// The server: accepts one client and echoes one message, on a thread of its own.
class echo_server {
public:
    echo_server() : acceptor_(loop_, io::loopback(0)), runner_([this] { serve(); }) {}
    ~echo_server() { runner_.join(); }
    io::endpoint where() const { return where_; }

private:
    void serve() {
        std::array<std::byte, 64> buffer;
        io::tcp::socket socket = acceptor_.accept(block);
        socket.send_all(std::span(buffer).first(socket.receive(buffer, block)), block);
    }
    io::context loop_;
    io::tcp::acceptor acceptor_;
    io::endpoint where_ = acceptor_.local();
    std::thread runner_;
};

// [ask]
task<std::string> ask(io::context& loop, io::endpoint server, std::string_view words) {
    io::tcp::socket socket(loop);
    co_await socket.connect(server);
    co_await socket.send_all(std::as_bytes(std::span(words)));
    std::string answer(64, '\0');
    answer.resize(co_await socket.receive(std::as_writable_bytes(std::span(answer))));
    co_return answer;
}
// [/ask]

}  // namespace

// [main]
int main() {
    const echo_server server;  // on a thread of its own
    const auto asked = [&](io::context& loop) {
        return ex::timeout(ask(loop, server.where(), "hello"), 5s);
    };
    try {
        const std::optional<std::string> answer = io::run(asked, {.stop_on = {SIGINT}});
        std::printf("%s\n", answer ? answer->c_str() : "stopped");  // by Ctrl-C
    } catch (const std::system_error& error) {  // not connected, or 5 s have passed
        std::printf("%s\n", error.what());
    }
}
// [/main]
