// io/stream.hpp on every ring, over TCP and Unix sockets: pieces, shutdown, options, and endpoints.
#include <coppice/io/option.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/stream.hpp>
#include <coppice/io/timer.hpp>

#include "detached.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
using coppice::test::bytes_of;
using coppice::test::detached;
using coppice::test::text_of;

class stream_on : public testing::TestWithParam<io::backend> {
protected:
    io::context loop{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(rings, stream_on, test::all_rings, test::ring_name);

// Connects a pair of sockets of either family.
template <class Acceptor, class Socket>
void connect(io::context& loop, Acceptor& acceptor, Socket& near, Socket& far) {
    auto client = [&]() -> detached { co_await near.connect(acceptor.local()); };
    auto server = [&]() -> detached { far = co_await acceptor.accept(); };
    client();
    server();
    loop.run();
    ASSERT_TRUE(near.is_open() && far.is_open());
}

io::endpoint unix_name() {
    static int count = 0;
    return *io::endpoint::unix_path("@coppice-" + std::to_string(::getpid()) + "-" +
                                    std::to_string(++count));
}

// Sends pieces, and receives them as one stream into other pieces. Then each side sees the end of
// the other.
template <class Socket>
void exchange_pieces(io::context& loop, Socket& near, Socket& far) {
    const std::string head = "head;", body(100'000, 'b'), tail = ";tail";
    std::vector<io::const_buffer> out;
    for (int i = 0; i != 20; ++i) out.emplace_back();  // empty pieces have no effect
    for (const std::string* const text : {&head, &body, &tail}) {
        out.emplace_back(bytes_of(*text));
        out.emplace_back();
    }
    for (int i = 0; i != 40; ++i) out.emplace_back(bytes_of(head).first(1));
    std::string received;
    auto client = [&]() -> detached {
        co_await near.send_all(out);
        EXPECT_FALSE(near.shutdown(io::internal::shutdown_direction::send));
        std::byte none;
        EXPECT_EQ(co_await near.receive(std::span(&none, 1)), 0u);
    };
    auto server = [&]() -> detached {
        std::array<std::byte, 7> small{};
        std::vector<std::byte> large(3000);
        const std::array<io::mutable_buffer, 3> in{io::mutable_buffer(small), io::mutable_buffer(),
                                                   io::mutable_buffer(large)};
        for (;;) {
            const std::size_t n = co_await far.receive(in);
            if (n == 0) break;
            received += text_of(std::span(small).first(std::min(n, small.size())));
            if (n > small.size()) received += text_of(std::span(large).first(n - small.size()));
        }
        far.close();
    };
    client();
    server();
    loop.run();
    EXPECT_EQ(received, head + body + tail + std::string(40, 'h'));
}

TEST_P(stream_on, tcp_carries_pieces_in_order) {
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    io::tcp::socket near(loop), far(loop);
    connect(loop, acceptor, near, far);
    EXPECT_EQ(near.local(), far.remote());
    EXPECT_EQ(near.remote(), acceptor.local());
    exchange_pieces(loop, near, far);
}

TEST_P(stream_on, unix_streams_carry_pieces_in_order) {
    io::local::acceptor acceptor(loop, unix_name());
    io::local::socket near(loop), far(loop);
    connect(loop, acceptor, near, far);
    exchange_pieces(loop, near, far);
}

// Once receive_pooled was used, the kernel brings buffers ahead on io_uring. Their order is kept,
// and a slow receiver holds the sender back.
TEST_P(stream_on, receives_of_every_kind_take_one_stream_in_order) {
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    io::tcp::socket near(loop), far(loop);
    connect(loop, acceptor, near, far);
    std::string sent(3'000'000, ' ');
    for (std::size_t i = 0; i != sent.size(); ++i) sent[i] = static_cast<char>('a' + i % 23);
    std::string received;
    auto client = [&]() -> detached {
        co_await near.send_all(bytes_of(sent));
        near.close();
    };
    auto server = [&]() -> detached {
        std::array<std::byte, 777> a{};
        std::array<std::byte, 5000> b{};
        const std::array<io::mutable_buffer, 2> pieces{io::mutable_buffer(std::span(a).first(10)),
                                                       io::mutable_buffer(b)};
        for (std::size_t n = 1, i = 0; n != 0; ++i) {
            if (i % 50 == 0) co_await io::timer(loop).wait_for(1ms);  // lets bytes pile up
            if (i % 3 == 0) {
                const io::pooled_buffer buffer = co_await far.receive_pooled();
                n = buffer.bytes().size();
                received += text_of(buffer.bytes());
            } else if (i % 3 == 1) {
                n = co_await far.receive(a);
                received += text_of(std::span(a).first(n));
            } else {
                n = co_await far.receive(pieces);
                received += text_of(std::span(a).first(std::min<std::size_t>(n, 10)));
                if (n > 10) received += text_of(std::span(b).first(n - 10));
            }
        }
    };
    client();
    server();
    loop.run();
    EXPECT_TRUE(received == sent) << received.size() << " bytes of " << sent.size();
}

TEST_P(stream_on, the_end_of_a_stream_is_reported_to_every_receive) {
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    io::tcp::socket near(loop), far(loop);
    connect(loop, acceptor, near, far);
    int ends = 0;
    auto use = [&]() -> detached {
        co_await near.send_all(bytes_of("x"));
        near.close();
        EXPECT_EQ((co_await far.receive_pooled()).bytes().size(), 1u);
        std::array<std::byte, 4> into;
        for (int i = 0; i != 3; ++i) {
            ends += (co_await far.receive_pooled()).empty();
            ends += co_await far.receive(into) == 0;
        }
    };
    use();
    loop.run();
    EXPECT_EQ(ends, 6);
}

TEST_P(stream_on, a_unix_name_without_a_listener_refuses) {
    std::error_code ec;
    auto client = [&]() -> detached {
        io::local::socket socket(loop);
        co_await socket.connect(unix_name(), use_await[ec]);
    };
    client();
    loop.run();
    EXPECT_EQ(ec, std::errc::connection_refused);
}

TEST_P(stream_on, empty_transfers_end_at_once) {
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    io::tcp::socket near(loop), far(loop);
    connect(loop, acceptor, near, far);
    int done = 0;
    auto use = [&]() -> detached {
        EXPECT_EQ(co_await near.receive(std::span<std::byte>()), 0u);
        EXPECT_EQ(co_await near.send(std::span<const std::byte>()), 0u);
        co_await near.send_all(std::span<const std::byte>());
        co_await near.send_all(std::span<const io::const_buffer>());
        ++done;
    };
    use();
    loop.run();
    EXPECT_EQ(done, 1);
}

TEST_P(stream_on, sending_after_shutdown_is_broken_pipe_and_raises_no_signal) {
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    io::tcp::socket near(loop), far(loop);
    connect(loop, acceptor, near, far);
    std::error_code ec;
    auto use = [&]() -> detached {
        near.shutdown_send();
        co_await near.send_all(bytes_of("x"), use_await[ec]);
    };
    use();
    loop.run();
    EXPECT_EQ(ec, std::errc::broken_pipe);
}

TEST_P(stream_on, shutting_down_ends_a_pending_receive) {
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    io::tcp::socket near(loop), far(loop);
    connect(loop, acceptor, near, far);
    std::size_t got = 1;
    std::array<std::byte, 4> into;
    auto receive = [&]() -> detached { got = co_await far.receive(into); };
    auto shut = [&]() -> detached {
        co_await io::timer(loop).wait_for(1ms);
        EXPECT_FALSE(far.shutdown(io::internal::shutdown_direction::both));
    };
    receive();
    shut();
    loop.run();
    EXPECT_EQ(got, 0u);
}

TEST_P(stream_on, options_are_values_that_can_be_read_back) {
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    io::tcp::socket near(loop), far(loop);
    EXPECT_EQ(near.set(io::no_delay(true)), std::errc::bad_file_descriptor);
    EXPECT_EQ(near.get<io::no_delay>().error(), std::errc::bad_file_descriptor);
    connect(loop, acceptor, near, far);
    EXPECT_TRUE(near.get<io::no_delay>().value().value());
    EXPECT_FALSE(near.set(io::no_delay(false)));
    EXPECT_FALSE(near.get<io::no_delay>().value().value());
    EXPECT_FALSE(near.set(io::keep_alive_idle(77)));
    EXPECT_EQ(near.get<io::keep_alive_idle>().value().value(), 77);
    EXPECT_FALSE(near.get<io::linger>().value().value().has_value());
    EXPECT_FALSE(near.set(io::linger(3s)));
    EXPECT_EQ(near.get<io::linger>().value().value(), 3s);
}

TEST_P(stream_on, operations_may_be_started_on_a_thread_without_a_loop_or_with_another_one) {
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    io::tcp::socket near(loop), far(loop);
    connect(loop, acceptor, near, far);
    std::string got(5, ' ');
    int ended = 0;
    const io::context::work_guard guard(loop);
    auto exchange = [&]() -> detached {
        co_await near.send_all(bytes_of("hello"));  // from here on, runs on the loop
        EXPECT_TRUE(loop.is_current());
        io::context* const before = io::context::current();
        EXPECT_EQ(before, &loop);
        for (std::size_t n = 0; n != got.size();) {
            n += co_await far.receive(std::as_writable_bytes(std::span(got)).subspan(n));
        }
        ++ended;
        loop.stop();
    };
    std::thread stranger([&] {
        io::context other(io::backend::epoll);
        auto from_another_loop = [&]() -> detached {
            co_await other.get_scheduler().schedule();
            exchange();
        };
        from_another_loop();
        other.run();
    });
    loop.run();
    stranger.join();
    EXPECT_EQ(ended, 1);
    EXPECT_EQ(got, "hello");
}

// A context that changes threads takes its pending operations along, on io_uring too.
TEST_P(stream_on, pending_operations_continue_when_another_thread_runs_the_context) {
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    io::tcp::socket near(loop), far(loop);
    std::string got;
    auto server = [&]() -> detached {
        far = co_await acceptor.accept();
        std::array<std::byte, 16> into;
        for (;;) {
            std::error_code ec;
            const std::size_t n = co_await far.receive(into, use_await[ec]);
            if (ec || n == 0) break;
            got += text_of(std::span(into).first(n));
            loop.stop();
        }
    };
    server();
    for (int turn = 0; turn != 4; ++turn) {
        std::thread([&] {
            loop.restart();
            auto client = [&]() -> detached {
                if (!near.is_open()) co_await near.connect(acceptor.local());
                co_await near.send_all(bytes_of("x"));
                if (got.size() == 3) near.close();
            };
            client();
            loop.run();
        }).join();
    }
    EXPECT_EQ(got, "xxxx");
}

}  // namespace
