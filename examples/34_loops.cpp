// One loop per core: each accepts on the same port, and keeps the connections that it accepts.
#include <coppice/coppice.hpp>

#include <array>
#include <cstdio>
#include <memory>
#include <vector>

using namespace coppice;

namespace {

// [pool]
// Answers one byte to each connection, on the loop that accepted it.
void serve(io::tcp::acceptor& acceptor) {
    acceptor.accept([&acceptor](std::error_code ec, io::tcp::socket socket) {
        if (ec) return;  // the pool is ending
        auto kept = std::make_shared<io::tcp::socket>(std::move(socket));
        static constexpr std::array<std::byte, 1> answer{std::byte{'!'}};
        kept->send_all(answer, [kept](std::error_code) { kept->close(); });
        serve(acceptor);
    });
}

int main_on(std::size_t threads) {
    io::context_pool pool(threads);
    std::vector<std::unique_ptr<io::tcp::acceptor>> acceptors;
    io::endpoint at = io::loopback(0);
    for (std::size_t i = 0; i != pool.size(); ++i) {
        io::tcp::acceptor_options how;
        how.share_port = true;
        how.first_sharer = i == 0;
        acceptors.push_back(std::make_unique<io::tcp::acceptor>(pool.at(i), at, how));
        at = acceptors[0]->local();  // the port that the system chose
        serve(*acceptors[i]);
    }
    // [/pool]
    int answers = 0;
    io::context mine;
    for (int i = 0; i != 20; ++i) {
        io::tcp::socket socket(mine);
        socket.connect(at, block);
        std::array<std::byte, 1> answer;
        answers += static_cast<int>(socket.receive(answer, block));
    }
    pool.stop();
    pool.join();  // the handlers use the acceptors until then
    return answers;
}

}  // namespace

int main() {
    std::printf("%d answers\n", main_on(2));
}
