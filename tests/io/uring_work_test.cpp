// What the io_uring ring asks of the kernel: few buffers until they run out, and no submission for
// a single answer.
#include <coppice/io/internal/uring_calls.hpp>
#include <coppice/io/socket.hpp>

#include "detached.hpp"
#include "rings.hpp"
#include "sanitizers.hpp"

#include "../../src/io/uring_kernel.hpp"

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
namespace uring = coppice::io::uring;
using coppice::test::bytes_of;
using coppice::test::detached;
using coppice::test::sanitized;

constexpr int few = uring::lent_buffers::count_min;
constexpr int most = uring::lent_buffers::count_max;

// The kernel's calls, counted.
struct watched_calls final : io::internal::uring_calls {
    int enter(int ring, std::uint32_t submit, std::uint32_t least, std::uint32_t flags,
              const void* argument, std::size_t size) noexcept override {
        const int entered = uring_calls::enter(ring, submit, least, flags, argument, size);
        if (entered > 0) submitted += entered;
        return entered;
    }
    int register_with(int ring, std::uint32_t what, void* argument,
                      std::uint32_t count) noexcept override {
        if (what == uring::register_pbuf_ring) {
            const auto& r = *static_cast<const uring::buffer_ring_registration*>(argument);
            places = {reinterpret_cast<const uring::provided_buffer*>(r.ring_addr), r.ring_entries};
        }
        return uring_calls::register_with(ring, what, argument, count);
    }
    // Returns how many buffers the kernel has been lent; they are numbered from 0.
    int lent() const noexcept {
        int last = 0;
        for (const uring::provided_buffer& place : places) last = std::max<int>(last, place.bid);
        return last + 1;
    }

    int submitted = 0;
    std::span<const uring::provided_buffer> places;
};

// A blocking client.
class client {
public:
    explicit client(const io::endpoint& to) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
        EXPECT_EQ(::connect(fd_, to.data(), to.size()), 0);
    }
    client(client&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    ~client() {
        if (fd_ >= 0) ::close(fd_);
    }
    void send(std::string_view text) const {
        EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(text.size()));
    }
    std::string receive(std::size_t size) const {
        std::string text(size, ' ');
        EXPECT_EQ(::recv(fd_, text.data(), size, MSG_WAITALL), static_cast<ssize_t>(size));
        return text;
    }

    // Closes with a reset instead of the end of the stream.
    void reset() {
        const linger at_once{1, 0};
        EXPECT_EQ(::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
        ::close(std::exchange(fd_, -1));
    }

private:
    int fd_;
};

struct uring_work : testing::Test {
    // Accepts `connections` connections, and answers each message with itself, or with `answer` if
    // that is set.
    void serve(int connections) {
        [](uring_work& t, int count) -> detached {
            for (int i = 0; i != count; ++i) t.echo(co_await t.acceptor.accept());
        }(*this, connections);
    }
    detached echo(io::tcp::socket socket) {
        for (;;) {
            const io::pooled_buffer buffer = co_await socket.receive_pooled();
            if (buffer.empty()) break;
            received += static_cast<int>(buffer.bytes().size());
            co_await socket.send_all(answer.empty() ? buffer.bytes() : bytes_of(answer));
        }
    }
    // Runs until `bytes` were received, and then until the answers were sent: one turn submits
    // them, and takes their completions.
    void run_until_received(int bytes) {
        while (received != bytes) (void)loop.run_for(1ms);
        for (int turns = 0; turns != 3; ++turns) (void)loop.run_for(1us);
    }

    watched_calls calls;
    io::context loop{calls};
    io::tcp::acceptor acceptor{loop, io::loopback(0)};
    int received = 0;
    std::string answer;
};

TEST_F(uring_work, a_single_connection_needs_few_buffers_and_is_answered_without_the_ring) {
    constexpr int messages = 100;
    serve(1);
    std::thread other([&] {
        const client c(acceptor.local());
        for (int i = 0; i != messages; ++i) {
            c.send("hello");
            EXPECT_EQ(c.receive(5), "hello");
        }
    });
    loop.run();
    other.join();
    EXPECT_EQ(received, 5 * messages);
    EXPECT_EQ(calls.lent(), few);
    EXPECT_LT(calls.submitted, 10);  // an accept, a receive, and what closes them
}

// A busy machine may deliver the messages one by one, and a single one needs no ring; but not every
// time.
TEST_F(uring_work, answers_to_several_at_once_go_through_the_ring) {
    constexpr int count = 8;
    constexpr int rounds_max = 100;
    serve(count);
    std::vector<client> clients;
    for (int i = 0; i != count; ++i) clients.emplace_back(acceptor.local());
    bool together = false;
    for (int round = 1; !together && round != rounds_max; ++round) {
        const int before = calls.submitted;
        for (const client& c : clients) c.send("hello");
        run_until_received(5 * count * round);
        for (const client& c : clients) EXPECT_EQ(c.receive(5), "hello");
        // the first round has accepts and receives besides
        together = round != 1 && calls.submitted - before >= count;
    }
    EXPECT_TRUE(together);
    clients.clear();
    loop.run();
}

TEST_F(uring_work, an_answer_larger_than_the_socket_takes_arrives_whole) {
    answer.resize(std::size_t{16} << 20);
    for (std::size_t i = 0; i != answer.size(); ++i) answer[i] = static_cast<char>(i * 7 + i / 251);
    serve(1);
    std::thread other([&] {
        const client c(acceptor.local());
        for (int i = 0; i != 3; ++i) {
            c.send("x");
            EXPECT_TRUE(c.receive(answer.size()) == answer);
        }
    });
    loop.run();
    other.join();
    EXPECT_EQ(received, 3);
}

// The socket reports the error once, to the first operation that asks.
TEST_F(uring_work, an_answer_to_a_peer_that_has_gone_ends_with_the_sockets_error) {
    std::error_code error;
    client c(acceptor.local());
    auto server = [&]() -> detached {
        io::tcp::socket socket = co_await acceptor.accept();
        std::array<std::byte, 1> byte;
        co_await socket.receive(byte);
        c.reset();
        co_await socket.send_all(bytes_of("hello"), use_await[error]);
    };
    server();
    c.send("x");
    loop.run();
    EXPECT_TRUE(error == std::errc::connection_reset) << error;
}

// All clients have sent before any receive is pending, so the kernel finds no buffer for most of
// them.
TEST_F(uring_work, a_burst_gets_more_buffers_but_at_most_twice_as_many_in_one_turn) {
    constexpr int count = 60;
    serve(count);
    std::vector<client> clients;
    for (int i = 0; i != count; ++i) clients.emplace_back(acceptor.local());
    for (const client& c : clients) c.send("hello");
    run_until_received(5 * count);
    for (const client& c : clients) EXPECT_EQ(c.receive(5), "hello");
    EXPECT_GE(calls.lent(), 2 * few);
    EXPECT_LE(calls.lent(), 4 * few);  // two turns lend enough buffers
    clients.clear();
    loop.run();
}

TEST(lent_buffers, double_until_every_place_is_taken) {
    io::buffer_pool pool;
    uring::kernel_ring ring(io::internal::kernel_uring());
    uring::lent_buffers lent(pool, ring);
    for (int expected = few; expected != 2 * most; expected *= 2) {
        EXPECT_EQ(lent.count(), expected);
        lent.lend_more();
    }
    lent.lend_more();
    EXPECT_EQ(lent.count(), most);
}

// Returns true if no buffers are added when there is no memory.
bool stays_as_it_is() {
    io::buffer_pool pool;
    uring::kernel_ring ring(io::internal::kernel_uring());
    uring::lent_buffers lent(pool, ring);
    const rlimit none{0, 0};
    if (::setrlimit(RLIMIT_AS, &none) != 0) return false;
    std::byte* taken = nullptr;
    // uses up what malloc still has
    while (std::byte* const buffer = pool.try_take()) taken = buffer;
    const int before = lent.count();
    lent.lend_more();
    const bool stays = lent.count() == before;
    pool.give(taken);
    lent.lend_more();  // only one buffer is there to lend
    return stays && lent.count() == before + 1;
}

TEST(lent_buffers, stay_as_many_as_they_are_without_memory) {
    if (sanitized) GTEST_SKIP() << "the sanitizers have their own memory";
    EXPECT_EXIT(std::_Exit(stays_as_it_is() ? 0 : 1), testing::ExitedWithCode(0), "");
}

}  // namespace
