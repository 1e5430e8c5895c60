// A loop that changes threads at any moment: operations started before continue, and report what
// really happened.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/datagram.hpp>
#include <coppice/io/file.hpp>
#include <coppice/io/open_file.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/token/block.hpp>

#include "detached.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
using coppice::test::bytes_of;
using coppice::test::detached;

class moving_on : public testing::TestWithParam<io::backend> {
protected:
    // Calls `begin` in a completion that the ring delivers and that stops the loop. On io_uring,
    // the kernel has then not seen what `begin` starts. Another thread runs the loop to its end.
    void run_on_two_threads(const std::function<void()>& begin) {
        auto last_completion = [&]() -> detached {
            std::byte byte;
            (void)co_await wakes.receive_from(std::span(&byte, 1));
            begin();
            loop.stop();
        };
        auto sender = [&]() -> detached {
            io::udp::socket from(loop, io::loopback(0));
            (void)co_await from.send_to(bytes_of("x"), wakes.local());
        };
        last_completion();
        sender();
        std::thread([&] { loop.run(); }).join();
        loop.restart();
        std::thread([&] { loop.run(); }).join();
    }
    static bool is_connected(const io::tcp::socket& socket) {
        sockaddr_storage peer;
        socklen_t size = sizeof peer;
        void* const where = &peer;
        return ::getpeername(socket.native(), static_cast<sockaddr*>(where), &size) == 0;
    }

    io::context loop{GetParam()};
    io::udp::socket wakes{loop, io::loopback(0)};
};

INSTANTIATE_TEST_SUITE_P(rings, moving_on, test::real_rings, test::ring_name);

TEST_P(moving_on, a_connect_that_the_kernel_has_not_seen_connects) {
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    io::tcp::socket socket(loop);
    int ends = 0;
    run_on_two_threads([&] {
        socket.connect(acceptor.local(), [&](std::error_code ec) {
            ++ends;
            EXPECT_FALSE(ec) << ec.message();
            EXPECT_TRUE(is_connected(socket));
        });
    });
    EXPECT_EQ(ends, 1);
}

TEST_P(moving_on, a_connect_that_the_kernel_has_not_seen_fails_as_usual) {
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    const io::endpoint nobody = acceptor.local();
    acceptor.close();
    io::tcp::socket socket(loop);
    std::vector<std::error_code> ends;
    run_on_two_threads(
        [&] { socket.connect(nobody, [&](std::error_code ec) { ends.push_back(ec); }); });
    ASSERT_EQ(ends.size(), 1u);
    EXPECT_EQ(ends[0], std::errc::connection_refused);
}

TEST_P(moving_on, everything_that_the_kernel_has_not_seen_is_done_once) {
    char path[] = "/tmp/coppice_moving_XXXXXX";
    ::close(::mkstemp(path));
    io::file file(loop, path, io::open_mode::truncate);
    ::unlink(path);
    io::udp::socket from(loop, io::loopback(0)), to(loop, io::loopback(0));
    std::array<std::byte, 8> received{};
    std::size_t got = 0, written = 0, sent = 0;
    int ends = 0;
    run_on_two_threads([&] {
        to.receive_from(received, [&](std::error_code, const io::received_datagram& d) {
            ++ends, got = d.size;
        });
        from.send_to(bytes_of("abc"), to.local(),
                     [&](std::error_code, std::size_t n) { ++ends, sent = n; });
        file.write_at(2, bytes_of("de"),
                      [&](std::error_code, std::size_t n) { ++ends, written = n; });
    });
    EXPECT_EQ(ends, 3);
    EXPECT_EQ(got, 3u);
    EXPECT_EQ(sent, 3u);
    EXPECT_EQ(written, 2u);
    EXPECT_EQ(file.size().value(), 4u);
}

TEST_P(moving_on, an_operation_canceled_between_two_threads_is_not_begun) {
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    std::vector<std::error_code> ends;
    {
        io::tcp::socket socket(loop);
        auto last_completion = [&]() -> detached {
            std::byte byte;
            (void)co_await wakes.receive_from(std::span(&byte, 1));
            socket.connect(acceptor.local(), [&](std::error_code ec) { ends.push_back(ec); });
            loop.stop();
        };
        last_completion();
        io::udp::socket from(loop, io::loopback(0));
        std::thread([&] {
            from.send_to(bytes_of("x"), wakes.local(), [](std::error_code, std::size_t) {});
            loop.run();
        }).join();
        loop.restart();
        socket.close();
        std::thread([&] { loop.run(); }).join();
    }
    ASSERT_EQ(ends.size(), 1u);
    if (GetParam() == io::backend::uring) {
        EXPECT_EQ(ends[0], std::errc::operation_canceled);
    }
}

// The listener's queue is full. On epoll that is an error; io_uring waits.
TEST(moving, a_connect_that_waited_for_a_unix_listener_reports_whether_it_is_connected) {
    const std::string path = "/tmp/coppice_moving_" + std::to_string(::getpid());
    const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    void* const where = &at;
    ::unlink(path.c_str());  // left by an earlier process with the same number
    ASSERT_EQ(::bind(listener, static_cast<sockaddr*>(where), sizeof at), 0);
    ASSERT_EQ(::listen(listener, 0), 0);
    const int first = ::socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(::connect(first, static_cast<sockaddr*>(where), sizeof at), 0);

    io::context loop(io::backend::uring);
    io::local::socket socket(loop);
    int ends = 0;
    auto client = [&]() -> detached {
        std::error_code ec;
        co_await socket.connect(io::endpoint::unix_path(path).value(), use_await[ec]);
        ++ends;
        sockaddr_storage peer;
        socklen_t size = sizeof peer;
        void* const to = &peer;
        const bool connected =
            ::getpeername(socket.native(), static_cast<sockaddr*>(to), &size) == 0;
        EXPECT_EQ(connected, !ec) << ec.message();
    };
    client();
    std::thread([&] { (void)loop.run_for(5ms); }).join();
    std::thread([&] { (void)loop.run_for(5ms); }).join();
    const int accepted = ::accept(listener, nullptr, nullptr);
    (void)loop.drain(100ms);
    EXPECT_EQ(ends, 1);
    for (const int fd : {listener, first, accepted}) ::close(fd);
    ::unlink(path.c_str());
}

// The kernel removes an ended ring a moment later, and interrupts the call that its thread waits
// in.
TEST_P(moving_on, a_wait_on_a_thread_whose_ring_has_ended_is_not_cut_short) {
    const auto end_a_ring = [] {
        io::context ended(io::backend::uring);
        (void)ended.run_for(0ms);
    };
    io::timer timer(loop);
    for (int round = 0; round != 5; ++round) {
        end_a_ring();
        const auto before = loop.now();
        std::error_code ec;
        timer.wait_for(2ms, block[ec]);
        EXPECT_FALSE(ec) << ec.message();
        EXPECT_GE(loop.now() - before, 2ms);

        // Waits for a loop that another thread runs.
        std::optional<io::context::work_guard> guard(loop);
        std::thread runner([&] { loop.run(); });
        end_a_ring();
        timer.wait_for(2ms, block[ec]);
        EXPECT_FALSE(ec) << ec.message();
        EXPECT_GE(loop.now() - before, 4ms);
        guard.reset();
        runner.join();
    }
}

// One thread makes sockets while two others, which block, take the loop from each other.
TEST_P(moving_on, sockets_are_made_while_the_loop_changes_threads) {
    coppice::internal::atomic<bool> end{false};
    auto blocks = [&] {
        io::timer timer(loop);
        while (!end.load(coppice::internal::relaxed)) timer.wait_for(1us, block);
    };
    std::thread one(blocks), other(blocks);
    std::vector<io::udp::socket> kept;
    for (int i = 0; i != 200; ++i) kept.emplace_back(loop, io::loopback(0));
    end.store(true, coppice::internal::relaxed);
    one.join();
    other.join();
    EXPECT_EQ(kept.size(), 200u);
}

}  // namespace
