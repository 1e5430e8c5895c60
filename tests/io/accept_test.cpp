// Accepting on every ring: nothing is lost between accepts, and connections that were not accepted
// are closed.
#include <coppice/exec/env.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/token/bind_env.hpp>

#include "detached.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <set>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using coppice::test::detached;
using coppice::test::open_files;

class accept_on : public testing::TestWithParam<io::backend> {
protected:
    io::context loop{GetParam()};
    io::tcp::acceptor acceptor{loop, io::loopback(0)};

    detached after(duration time, auto then) {
        io::timer timer(loop);
        co_await timer.wait_for(time);
        then();
    }
};
INSTANTIATE_TEST_SUITE_P(rings, accept_on, test::all_rings, test::ring_name);
class real_accept_on : public accept_on {};
INSTANTIATE_TEST_SUITE_P(rings, real_accept_on, test::real_rings, test::ring_name);

// Connects, sends its number, and notes how the connection ended.
detached client(io::context& loop, io::endpoint to, std::byte number, int& ended) {
    io::tcp::socket socket(loop);
    std::error_code ec;
    co_await socket.connect(to, use_await[ec]);
    if (!ec) co_await socket.send_all(std::span(&number, 1), use_await[ec]);
    std::byte end;
    co_await socket.receive(std::span(&end, 1), use_await[ec]);
    ++ended;
}
detached note(io::tcp::socket socket, std::multiset<int>& seen) {
    std::byte number{};
    std::error_code ec;
    const std::size_t n = co_await socket.receive(std::span(&number, 1), use_await[ec]);
    if (!ec && n == 1) seen.insert(static_cast<int>(number));
}

TEST_P(accept_on, connections_that_were_not_accepted_are_closed_with_the_acceptor) {
    constexpr int count = 20;
    int ended = 0;
    bool first = false;
    auto accept_one = [&]() -> detached {
        const io::tcp::socket taken = co_await acceptor.accept();
        first = taken.is_open();
    };
    accept_one();
    for (int i = 0; i != count; ++i) client(loop, acceptor.local(), std::byte(i), ended);
    after(20ms, [&] { acceptor.close(); });
    loop.run();  // returns only if no client waits forever
    EXPECT_TRUE(first);
    EXPECT_EQ(ended, count);
}

TEST_P(accept_on, canceled_accepts_lose_no_connection) {
    constexpr int count = 120;
    int ended = 0;
    int stopped = 0;
    std::multiset<int> seen;
    std::optional<inplace_stop_source> stop;
    int left = count;
    auto accept_next = [&](auto& self) -> void {
        stop.emplace();
        acceptor.accept(bind_env(execution::prop(get_stop_token, stop->get_token()),
                                 [&](std::error_code ec, io::tcp::socket socket) {
                                     if (ec) {
                                         EXPECT_EQ(ec, std::errc::operation_canceled);
                                         ++stopped;
                                     } else {
                                         note(std::move(socket), seen);
                                         --left;
                                     }
                                     if (left != 0) self(self);
                                 }));
    };
    auto stopper = [&]() -> detached {
        io::timer timer(loop);
        while (left != 0) {
            co_await timer.wait_for(300us);
            if (left != 0) stop->request_stop();
        }
    };
    auto clients = [&]() -> detached {
        io::timer timer(loop);
        for (int i = 0; i != count; ++i) {
            client(loop, acceptor.local(), std::byte(i), ended);
            if (i % 7 == 0) co_await timer.wait_for(500us);
        }
    };
    accept_next(accept_next);
    stopper();
    clients();
    loop.run();
    EXPECT_GT(stopped, 0);
    EXPECT_EQ(ended, count);
    ASSERT_EQ(seen.size(), std::size_t{count});
    for (int i = 0; i != count; ++i) EXPECT_EQ(seen.count(i), 1u) << i;
}

TEST_P(accept_on, connections_beyond_the_kept_ones_wait_for_their_accepts) {
    constexpr int count = 200;
    int ended = 0;
    std::multiset<int> seen;
    auto slow = [&]() -> detached {
        io::timer timer(loop);
        note(co_await acceptor.accept(), seen);
        co_await timer.wait_for(30ms);  // the other connections arrive meanwhile
        for (int i = 1; i != count; ++i) note(co_await acceptor.accept(), seen);
    };
    slow();
    for (int i = 0; i != count; ++i) client(loop, acceptor.local(), std::byte(i), ended);
    loop.run();
    EXPECT_EQ(ended, count);
    for (int i = 0; i != count; ++i) EXPECT_EQ(seen.count(i), 1u) << i;
}

TEST_P(real_accept_on, an_accept_continues_when_another_thread_runs_the_context) {
    int ended = 0;
    std::multiset<int> seen;
    auto accept_all = [&]() -> detached {
        for (int i = 0; i != 3; ++i) note(co_await acceptor.accept(), seen);
    };
    accept_all();
    client(loop, acceptor.local(), std::byte{0}, ended);
    client(loop, acceptor.local(), std::byte{1}, ended);
    std::thread([&] { loop.run_for(5ms); }).join();
    client(loop, acceptor.local(), std::byte{2}, ended);
    loop.run();
    EXPECT_EQ(ended, 3);
    EXPECT_EQ(seen, (std::multiset<int>{0, 1, 2}));
}

TEST_P(real_accept_on, connections_that_were_not_accepted_do_not_stay_open) {
    const int before = open_files();
    for (const bool close_first : {true, false}) {
        int ended = 0;
        io::context inner(GetParam());
        std::optional<io::tcp::acceptor> listening(std::in_place, inner, io::loopback(0));
        std::multiset<int> seen;
        auto accept_one = [&]() -> detached { note(co_await listening->accept(), seen); };
        accept_one();
        for (int i = 0; i != 10; ++i) client(inner, listening->local(), std::byte(i), ended);
        inner.run_for(10ms);
        if (close_first) listening->close();
    }
    EXPECT_EQ(open_files(), before);
}

}  // namespace
