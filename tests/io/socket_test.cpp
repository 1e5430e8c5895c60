// io/socket.hpp on both rings: streams between sockets of one loop, errors, closing, and
// allocation.
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/task/task.hpp>

#include "allocations.hpp"
#include "detached.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <string>
#include <thread>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
using coppice::test::bytes_of;
using coppice::test::detached;
using coppice::test::open_files;

class socket_on : public testing::TestWithParam<io::backend> {
protected:
    io::context loop{GetParam()};
    io::tcp::acceptor acceptor{loop, io::loopback(0)};
};

INSTANTIATE_TEST_SUITE_P(rings, socket_on, test::all_rings, test::ring_name);

// For tests that need the real system: other programs, its descriptors, or that it allocates
// nothing.
class real_socket_on : public socket_on {};
INSTANTIATE_TEST_SUITE_P(rings, real_socket_on, test::real_rings, test::ring_name);

task<> echo(io::tcp::socket socket) {
    std::array<std::byte, 512> buffer;
    for (;;) {
        std::error_code ec;
        const std::size_t n = co_await socket.receive(buffer, use_await[ec]);
        if (ec || n == 0) co_return;
        co_await socket.send_all(std::span(buffer).first(n), use_await[ec]);
        if (ec) co_return;
    }
}

TEST_P(socket_on, what_is_sent_comes_back) {
    bool done = false;
    auto server = [&]() -> detached { co_await echo(co_await acceptor.accept()); };
    auto client = [&]() -> detached {
        io::tcp::socket socket(loop);
        co_await socket.connect(acceptor.local());
        for (int i = 0; i != 100; ++i) {
            const std::string message(static_cast<std::size_t>(i * 37 % 400 + 1), 'a');
            co_await socket.send_all(bytes_of(message));
            std::string back(message.size(), ' ');
            for (std::size_t got = 0; got != back.size();) {
                got +=
                    co_await socket.receive(std::as_writable_bytes(std::span(back)).subspan(got));
            }
            EXPECT_EQ(back, message);
        }
        socket.shutdown_send();
        std::byte one;
        EXPECT_EQ(co_await socket.receive(std::span(&one, 1)), 0u);
        done = true;
    };
    server();
    client();
    loop.run();
    EXPECT_TRUE(done);
}

TEST_P(socket_on, a_stream_larger_than_the_kernels_buffers_arrives_whole) {
    const std::size_t total = GetParam() == io::backend::sim ? 1u << 20 : 8u << 20;
    std::size_t received = 0;
    bool right = true;
    auto server = [&]() -> detached {
        io::tcp::socket socket = co_await acceptor.accept();
        for (;;) {
            const io::pooled_buffer buffer = co_await socket.receive_pooled();
            if (buffer.empty()) break;
            for (const std::byte b : buffer.bytes()) {
                right = right && b == static_cast<std::byte>(received++ % 251);
            }
        }
    };
    auto client = [&]() -> detached {
        std::string data(total, ' ');
        for (std::size_t i = 0; i != total; ++i) data[i] = static_cast<char>(i % 251);
        io::tcp::socket socket(loop);
        co_await socket.connect(acceptor.local());
        co_await socket.send_all(bytes_of(data));
    };
    server();
    client();
    loop.run();
    EXPECT_EQ(received, total);
    EXPECT_TRUE(right);
}

TEST_P(socket_on, more_connections_than_lent_buffers_all_receive) {
    constexpr int count = 400;
    int received = 0;
    auto serve = [&](io::tcp::socket socket) -> detached {
        std::size_t got = 0;
        while (got != 5) {
            const io::pooled_buffer buffer = co_await socket.receive_pooled();
            got += buffer.bytes().size();
            co_await socket.send_all(buffer.bytes());
        }
        ++received;
    };
    auto server = [&]() -> detached {
        for (int i = 0; i != count; ++i) serve(co_await acceptor.accept());
    };
    auto client = [&]() -> detached {
        io::tcp::socket socket(loop);
        co_await socket.connect(acceptor.local());
        co_await socket.send_all(bytes_of("hello"));
        std::byte back[8];
        for (std::size_t got = 0; got != 5;) got += co_await socket.receive(back);
    };
    server();
    for (int i = 0; i != count; ++i) client();
    loop.run();
    EXPECT_EQ(received, count);
}

TEST_P(socket_on, a_refused_connection_is_an_error) {
    const io::endpoint nobody = acceptor.local();
    acceptor.close();
    bool refused = false, thrown = false;
    auto client = [&]() -> detached {
        io::tcp::socket socket(loop);
        std::error_code ec;
        co_await socket.connect(nobody, use_await[ec]);
        refused = ec == std::errc::connection_refused;
        try {
            co_await socket.connect(nobody);
        } catch (const std::system_error& e) {
            thrown = e.code() == std::errc::connection_refused;
        }
    };
    client();
    loop.run();
    EXPECT_TRUE(refused);
    EXPECT_TRUE(thrown);
}

TEST_P(socket_on, closing_ends_a_pending_receive_and_accept) {
    std::error_code received, accepted;
    io::tcp::socket pending(loop);
    auto server = [&]() -> detached {
        const io::tcp::socket first = co_await acceptor.accept();
        io::tcp::socket second = co_await acceptor.accept(use_await[accepted]);
        EXPECT_FALSE(second.is_open());
    };
    auto client = [&]() -> detached {
        co_await pending.connect(acceptor.local());
        std::byte one;
        co_await pending.receive(std::span(&one, 1), use_await[received]);
    };
    auto closer = [&]() -> detached {
        io::timer timer(loop);
        co_await timer.wait_for(5ms);
        pending.close();
        acceptor.close();
    };
    server();
    client();
    closer();
    loop.run();
    EXPECT_EQ(received, std::errc::operation_canceled);
    EXPECT_EQ(accepted, std::errc::operation_canceled);
}

TEST_P(real_socket_on, a_reset_by_the_peer_is_an_error) {
    std::error_code ec;
    auto server = [&]() -> detached {
        io::tcp::socket socket = co_await acceptor.accept();
        std::byte one;
        co_await socket.receive(std::span(&one, 1), use_await[ec]);
    };
    server();
    std::thread client([to = acceptor.local()] {
        const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
        ASSERT_EQ(::connect(fd, to.data(), to.size()), 0);
        const linger now{1, 0};
        ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        ::close(fd);
    });
    loop.run();
    client.join();
    EXPECT_EQ(ec, std::errc::connection_reset);
}

TEST_P(socket_on, a_port_in_use_is_an_error_even_when_it_is_shared) {
    EXPECT_THROW(io::tcp::acceptor(loop, acceptor.local()), std::system_error);
    io::tcp::acceptor_options shared;
    shared.share_port = true;
    EXPECT_THROW(io::tcp::acceptor(loop, acceptor.local(), shared), std::system_error);
}

TEST_P(real_socket_on, steady_state_allocates_nothing) {
    std::size_t allocated = 1;
    auto serve = [&]() -> detached {
        io::tcp::socket socket = co_await acceptor.accept();
        for (;;) {
            const io::pooled_buffer buffer = co_await socket.receive_pooled();
            if (buffer.empty()) break;
            co_await socket.send_all(buffer.bytes());
        }
    };
    auto client = [&]() -> detached {
        io::tcp::socket socket(loop);
        co_await socket.connect(acceptor.local());
        std::array<std::byte, 64> bytes{};
        for (int i = 0; i != 20; ++i) {
            if (i == 10) {
                const coppice::test::allocation_count count;
                for (int j = 0; j != 500; ++j) {
                    co_await socket.send_all(bytes);
                    co_await socket.receive(bytes);
                }
                allocated = count.so_far();
            }
            co_await socket.send_all(bytes);
            co_await socket.receive(bytes);
        }
    };
    serve();
    client();
    loop.run();
    EXPECT_EQ(allocated, 0u);
}

detached receive_once(io::tcp::acceptor& from, std::error_code& ec) {
    io::tcp::socket socket = co_await from.accept();
    std::byte one;
    co_await socket.receive(std::span(&one, 1), use_await[ec]);
}
detached connect_stop_and_wait(io::context& loop, io::endpoint to) {
    io::tcp::socket socket(loop);
    co_await socket.connect(to);
    loop.stop();
    io::timer timer(loop);
    std::error_code ignored;
    co_await timer.wait_for(1h, use_await[ignored]);
}

TEST_P(real_socket_on, nothing_stays_open_when_the_context_ends_on_either_thread) {
    const int before = open_files();
    for (const bool elsewhere : {false, true}) {
        std::error_code ec;
        io::context inner(GetParam());
        io::tcp::acceptor listening(inner, io::loopback(0));
        auto run = [&] {
            receive_once(listening, ec);
            connect_stop_and_wait(inner, listening.local());
            inner.run();
        };
        if (elsewhere) {
            std::thread(run).join();
        } else {
            run();
        }
    }
    EXPECT_EQ(open_files(), before);
}

TEST_P(socket_on, two_receives_at_once_stop_the_process) {
    EXPECT_DEATH(
        {
            // A forked child has no loop thread yet, so everything is made in the child.
            io::context inner(io::backend::epoll);
            io::tcp::acceptor listening(inner, io::loopback(0));
            auto wait = [&]() -> detached { co_await listening.accept(); };
            wait();
            wait();
            inner.run();
        },
        "two operations in one direction");
}

}  // namespace
