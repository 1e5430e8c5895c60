// Receives into a program's own memory between receives into buffers: nothing is lost or out of
// order, however both ways of asking for bytes alternate.
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/task/task.hpp>

#include "rings.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
namespace ex = coppice::execution;

// A peer that sends `text` in pieces of random sizes on a thread of its own, then ends.
class sender {
public:
    sender(const io::endpoint& to, std::string_view text, std::uint32_t seed, bool resets)
        : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        EXPECT_EQ(::connect(fd_, to.data(), to.size()), 0);
        thread_ = std::thread([=, this] { run(text, seed, resets); });
    }
    ~sender() { thread_.join(); }
    sender(const sender&) = delete;

private:
    void run(std::string_view left, std::uint32_t seed, bool resets) {
        std::mt19937 random(seed);
        while (!left.empty()) {
            const std::size_t most = random() % 4 == 0 ? 30'000 : 3000;
            const ssize_t n =
                ::send(fd_, left.data(), std::min(left.size(), 1 + random() % most), MSG_NOSIGNAL);
            if (n < 0) break;
            left.remove_prefix(static_cast<std::size_t>(n));
            if (random() % 8 == 0) std::this_thread::yield();
        }
        const linger now{1, 0};
        if (resets) ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        ::close(fd_);
    }

    int fd_;
    std::thread thread_;
};

// A socket that shows its file to this test.
struct open_socket : io::tcp::socket {
    explicit open_socket(io::tcp::socket s) noexcept : io::tcp::socket(std::move(s)) {}
    io::internal::descriptor& file() const noexcept { return *reference().on; }
};

class one_by_one : public testing::TestWithParam<io::backend> {
protected:
    // Receives until the end, in ways that `random` chooses.
    task<> receive_all(std::uint32_t seed) {
        std::mt19937 random(seed);
        open_socket socket(co_await acceptor.accept());
        std::vector<std::byte> memory(20'000);
        for (;;) {
            io::internal::descriptor& d = socket.file();
            if (random() % 8 == 0) loop.receive_one_by_one(d, random() % 4 != 0);
            if (random() % 2 == 0 && loop.may_try(d, io::opcode::receive)) {
                io::internal::ring_operation now(nullptr, io::opcode::receive);
                now.on = &d;
                now.data = memory.data();
                now.size = 1 + random() % memory.size();
                if (loop.try_here(now)) {
                    ++directly;
                    if (now.result <= 0) break;
                    got += test::text_of(
                        std::span(memory).first(static_cast<std::size_t>(now.result)));
                    continue;
                }
            }
            if (random() % 16 == 0) {  // another thread continues
                loop.stop();
                co_await io::timer(loop).wait_for(0ns);
            }
            if (random() % 4 == 0) {  // a timeout leaves a request behind that may bring bytes
                try {
                    const io::pooled_buffer buffer =
                        co_await ex::timeout(socket.receive_pooled(), 1us);
                    if (buffer.empty()) break;
                    got += test::text_of(buffer.bytes());
                } catch (const std::system_error& e) {
                    if (e.code() != std::errc::timed_out) break;
                }
                continue;
            }
            std::error_code ec;
            if (random() % 8 == 0) {
                const auto n = co_await socket.receive(std::span(memory), use_await[ec]);
                if (ec || n == 0) break;
                got += test::text_of(std::span(memory).first(n));
                continue;
            }
            const io::pooled_buffer buffer = co_await socket.receive_pooled(use_await[ec]);
            if (ec || buffer.empty()) break;
            got += test::text_of(buffer.bytes());
        }
    }
    void receive_from(std::uint32_t seed, std::string_view text, bool resets) {
        got.clear();
        bool is_over = false;
        ex::simple_counting_scope scope;
        ex::spawn(receive_all(seed) | ex::upon_error([](auto) noexcept { ADD_FAILURE(); }) |
                      ex::then([&is_over]() noexcept { is_over = true; }),
                  scope.get_token());
        const sender peer(acceptor.local(), text, seed, resets);
        while (!is_over) {
            loop.restart();
            std::thread([&] { loop.run(); }).join();
        }
        this_thread::sync_wait(scope.join());
    }

    io::context loop{GetParam()};
    io::tcp::acceptor acceptor{loop, io::loopback(0)};
    std::string got;
    int directly = 0;
};

std::string pattern(std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i != size; ++i) text[i] = static_cast<char>(i * 7 % 251);
    return text;
}

INSTANTIATE_TEST_SUITE_P(rings, one_by_one, test::real_rings, test::ring_name);

TEST_P(one_by_one, every_byte_comes_once_and_in_order_then_the_end) {
    const std::string text = pattern(1'000'000);
    for (std::uint32_t seed = 0; seed != 10; ++seed) {
        receive_from(seed, text, false);
        EXPECT_EQ(got.size(), text.size()) << seed;
        EXPECT_TRUE(got == text) << seed;
    }
    EXPECT_GT(directly, 0);
}

TEST_P(one_by_one, a_reset_ends_every_way_of_receiving_after_bytes_in_order) {
    const std::string text = pattern(200'000);
    for (std::uint32_t seed = 0; seed != 20; ++seed) {
        receive_from(seed, text, true);
        EXPECT_TRUE(text.starts_with(got)) << seed;
    }
}

}  // namespace
