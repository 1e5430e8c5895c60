// Peers that send and leave at once, where the kernel takes the bytes and then stays silent.
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>

#include "detached.hpp"
#include "rings.hpp"
#include "seen_calls.hpp"
#include "without_call.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
namespace uring = coppice::io::uring;
using coppice::test::detached;

// Makes the kernel's calls, but no multishot receive tries to read before it waits. What has come
// by then wakes it once. This makes certain what is otherwise a race between the kernel and the
// peer.
class late_calls final : public test::seen_calls {
public:
    int shots = 0;
    int looks = 0;   // how many looks have begun
    int looked = 0;  // how many looks have ended
    int cancels = 0;

private:
    static constexpr std::uint16_t poll_first = 1;  // in sqe::ioprio

    void see(uring::sqe& entry) noexcept override {
        if (test::receives_shots(entry)) {
            ++shots;
            entry.ioprio |= poll_first;
        }
        if (entry.opcode == uring::op::timeout && entry.op_flags == 0) {
            ++looks;
            look_ = entry.user_data;
        }
        cancels += entry.opcode == uring::op::async_cancel ? 1 : 0;
    }
    void see(int, uring::cqe& entry) noexcept override {
        looked += looks != 0 && entry.user_data == look_ ? 1 : 0;
    }

    std::uint64_t look_ = 0;
};

// A peer outside the loop.
class peer {
public:
    explicit peer(const io::endpoint& to)
        : fd_(::socket(to.data()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        EXPECT_EQ(::connect(fd_, to.data(), to.size()), 0);
    }
    ~peer() {
        if (fd_ >= 0) ::close(fd_);
    }
    peer(const peer&) = delete;

    void send(std::string_view text) {
        EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(text.size()));
    }
    // A reset; a local socket ends instead.
    void reset() {
        const linger now{1, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        ::close(std::exchange(fd_, -1));
    }
    void end() { ::shutdown(fd_, SHUT_WR); }

private:
    int fd_;
};

void come_and_go(const io::endpoint& to, std::string_view text) {
    peer p(to);
    p.send(text);
    p.reset();
}

// What one connection has received.
struct heard {
    std::string text;
    std::error_code error;
    bool ended = false;
};

template <class Acceptor>
class hearing {
public:
    explicit hearing(const io::endpoint& at) : acceptor(loop, at) {}

    // Accepts `count` connections, and receives from each until its end. Waits before all receives
    // but the first.
    void serve(std::size_t count, duration pause = {}) {
        all.resize(all.size() + count);
        accept(all.size() - count, pause);
    }
    // Returns false if some connection was not told of its end in all this time.
    bool run() { return !loop.run_for(60s); }
    template <class Condition>
    void run_until(Condition reached) {
        while (!reached()) loop.run_for(1ms);
    }

    late_calls calls;
    io::context loop{calls};
    Acceptor acceptor;
    std::vector<heard> all;

private:
    detached accept(std::size_t from, duration pause) {
        for (std::size_t i = from, end = all.size(); i != end; ++i) {
            hear(co_await acceptor.accept(), i, pause);
        }
    }
    template <class Socket>
    detached hear(Socket socket, std::size_t index, duration pause) {
        for (;;) {
            std::error_code ec;
            const io::pooled_buffer buffer = co_await socket.receive_pooled(use_await[ec]);
            heard& h = all[index];
            h.text += test::text_of(buffer.bytes());
            h.error = ec;
            h.ended = ec || buffer.empty();
            if (h.ended) co_return;
            if (pause != duration()) co_await io::timer(loop).wait_for(pause);
        }
    }
};

using hearing_tcp = hearing<io::tcp::acceptor>;

TEST(unseen_ends, a_reset_that_arrives_with_bytes_is_reported) {
    hearing_tcp h(io::loopback(0));
    come_and_go(h.acceptor.local(), "hello");
    h.serve(1);
    ASSERT_TRUE(h.run());
    EXPECT_EQ(h.all[0].text, "hello");
    EXPECT_EQ(h.all[0].error, std::errc::connection_reset);
    EXPECT_EQ(h.calls.cancels, 1);
}

TEST(unseen_ends, an_end_of_a_local_socket_that_arrives_with_bytes_is_reported) {
    const std::string name = "@coppice-unseen-" + std::to_string(::getpid());
    hearing<io::local::acceptor> h(*io::endpoint::unix_path(name));
    come_and_go(h.acceptor.local(), "hello");
    h.serve(1);
    ASSERT_TRUE(h.run());
    EXPECT_EQ(h.all[0].text, "hello");
    EXPECT_FALSE(h.all[0].error);
}

TEST(unseen_ends, that_no_receive_waits_for_are_reported_to_the_next_one) {
    hearing_tcp h(io::loopback(0));
    come_and_go(h.acceptor.local(), "hello");
    h.serve(1, 300ms);
    ASSERT_TRUE(h.run());
    EXPECT_EQ(h.all[0].text, "hello");
    EXPECT_EQ(h.all[0].error, std::errc::connection_reset);
}

TEST(unseen_ends, of_more_peers_than_are_looked_at_together_are_all_reported) {
    constexpr std::size_t count = 300;
    hearing_tcp h(io::loopback(0));
    for (std::size_t i = 0; i != count; ++i) {
        come_and_go(h.acceptor.local(), std::to_string(i));
    }
    h.serve(count);
    ASSERT_TRUE(h.run());
    for (std::size_t i = 0; i != count; ++i) {
        EXPECT_EQ(h.all[i].text, std::to_string(i));
        EXPECT_EQ(h.all[i].error, std::errc::connection_reset);
    }
    EXPECT_GE(h.calls.looks, 2);
    EXPECT_LT(h.calls.looks, 100) << "one for each";
}

TEST(unseen_ends, a_loop_that_moves_to_another_thread_finds_them) {
    hearing_tcp h(io::loopback(0));
    peer p(h.acceptor.local());
    p.send("hello, ");
    h.serve(1);
    std::thread([&] { h.run_until([&] { return !h.all[0].text.empty(); }); }).join();
    p.send("again");
    p.reset();
    ASSERT_TRUE(h.run());
    EXPECT_EQ(h.all[0].text, "hello, again");
    EXPECT_EQ(h.all[0].error, std::errc::connection_reset);
}

TEST(unseen_ends, are_reported_even_where_poll_is_forbidden) {
#if defined(SYS_poll)
    constexpr unsigned poll_call = SYS_poll;
#else
    constexpr unsigned poll_call = SYS_ppoll;
#endif
    test::expect_passes_without(poll_call, EPERM,
                                "unseen_ends.*_is_reported:unseen_ends.that_no_receive*");
}

// A connection whose peer stays is looked at once after it has sent, and is not disturbed.
TEST(unseen_ends, looking_for_them_leaves_others_alone) {
    hearing_tcp h(io::loopback(0));
    peer p(h.acceptor.local());
    h.serve(1);
    p.send("one,");
    h.run_until([&] { return h.calls.looked == 1; });
    h.loop.run_for(200ms);
    EXPECT_EQ(h.calls.looks, 1);
    p.send("two,");
    h.run_until([&] { return h.calls.looked == 2; });
    EXPECT_EQ(h.calls.looks, 2);
    EXPECT_EQ(h.calls.shots, 1);
    EXPECT_EQ(h.calls.cancels, 0);
    p.send("three");
    p.end();
    ASSERT_TRUE(h.run());
    EXPECT_EQ(h.all[0].text, "one,two,three");
    EXPECT_FALSE(h.all[0].error);
}

// A connection that is about to be looked at is closed, and the next one gets its file's number.
TEST(unseen_ends, the_next_file_with_the_same_number_is_not_disturbed) {
    hearing_tcp h(io::loopback(0));
    peer first(h.acceptor.local());
    first.send("first");
    first.end();  // this end is reported at once
    h.serve(1);
    h.run_until([&] { return h.all[0].ended; });
    const int cancels = h.calls.cancels;
    peer second(h.acceptor.local());
    h.serve(1);
    h.run_until([&] { return h.calls.shots == 2 && h.calls.looked == h.calls.looks; });
    second.send("second");
    h.run_until([&] { return h.all[1].text == "second" && h.calls.looked == 2; });
    EXPECT_EQ(h.calls.shots, 2);
    EXPECT_EQ(h.calls.cancels, cancels);
    second.reset();
    ASSERT_TRUE(h.run());
    EXPECT_EQ(h.all[0].text, "first");
    EXPECT_EQ(h.all[1].error, std::errc::connection_reset);
}

}  // namespace
