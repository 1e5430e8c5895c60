// src/io/alarm.hpp on the rings: far times that are changed, given up, and moved to another thread.
// A wait beside a far time costs no more than any other wait.
#include <coppice/io/datagram.hpp>
#include <coppice/io/internal/uring_calls.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>

#include "detached.hpp"
#include "rings.hpp"
#include "without_call.hpp"

#include "../../src/io/alarm.hpp"
#include "../../src/io/uring_abi.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using coppice::test::bytes_of;
using coppice::test::detached;

TEST(alarm, is_set_for_the_first_far_time_and_again_for_earlier_ones_and_when_it_has_rung) {
    io::alarm a;
    std::vector<time_point> set;
    const auto covers = [&](time_point until) {
        return a.covers(until, [&](time_point at) {
            set.push_back(at);
            return true;
        });
    };
    const time_point now{};
    a.see(now);
    EXPECT_FALSE(covers(now - 1ms));
    EXPECT_FALSE(covers(now + 1ms));
    EXPECT_TRUE(set.empty());
    EXPECT_TRUE(covers(now + 20s));
    EXPECT_TRUE(covers(now + 30s));
    EXPECT_EQ(set, std::vector{now + 20s});
    EXPECT_TRUE(covers(now + 10s));
    EXPECT_EQ(set, (std::vector{now + 20s, now + 10s}));
    a.rang();
    EXPECT_FALSE(a.is_set());
    EXPECT_FALSE(covers(now + 10s));  // it has passed
    EXPECT_TRUE(covers(now + 30s));
    EXPECT_EQ(set.back(), now + 30s);
    a.reset();
    EXPECT_TRUE(covers(now + 40s));
    EXPECT_EQ(set.back(), now + 40s);
    EXPECT_EQ(set.size(), 4u);
}

TEST(alarm, that_cannot_be_set_covers_nothing) {
    io::alarm a;
    for (int i = 0; i != 2; ++i) {
        EXPECT_FALSE(a.covers(time_point() + 20s, [](time_point) { return false; }));
        EXPECT_FALSE(a.is_set());
    }
}

class alarm_on : public testing::TestWithParam<io::backend> {};
INSTANTIATE_TEST_SUITE_P(rings, alarm_on, test::real_rings, test::ring_name);

// Waits, notes when it has ended, and checks that it was not early.
detached wait(io::context& loop, duration time, int id, std::vector<int>& ended) {
    io::timer timer(loop);
    const time_point before = loop.now();
    co_await timer.wait_for(time);
    EXPECT_GE(loop.now() - before, time);
    ended.push_back(id);
}

// Lets the loop begin to wait for its next time.
void begin_to_wait(io::context& loop) {
    io::udp::socket socket(loop, io::loopback(0));
    auto stop_when_it_comes = [&]() -> detached {
        std::array<std::byte, 8> into;
        (void)co_await socket.receive_from(into);
        loop.stop();
    };
    auto send = [&]() -> detached { (void)co_await socket.send_to(bytes_of("x"), socket.local()); };
    stop_when_it_comes();
    send();
    loop.run();
    loop.restart();
}

TEST_P(alarm_on, far_waits_end_in_order_however_they_are_armed) {
    io::context loop(GetParam());
    std::vector<int> ended;
    wait(loop, 240ms, 5, ended);
    begin_to_wait(loop);  // the alarm is set for the last time
    wait(loop, 120ms, 3, ended);
    begin_to_wait(loop);
    wait(loop, 180ms, 4, ended);
    wait(loop, 20ms, 1, ended);
    begin_to_wait(loop);
    wait(loop, 70ms, 2, ended);
    loop.run();
    EXPECT_EQ(ended, (std::vector{1, 2, 3, 4, 5}));
}

struct rung : io::timer_entry {
    rung() noexcept : timer_entry(&ring) {}
    static void ring(timer_entry* entry) noexcept { ++static_cast<rung*>(entry)->times; }
    int times = 0;
};

TEST_P(alarm_on, an_alarm_that_is_moved_forward_comes_earlier) {
    io::context loop(GetParam());
    rung in_an_hour;
    loop.arm(in_an_hour, loop.now() + 1h);
    begin_to_wait(loop);
    auto give_it_up = [&]() -> detached {
        io::timer timer(loop);
        co_await timer.wait_for(100ms);
        loop.disarm(in_an_hour);
    };
    give_it_up();
    loop.run();  // would last an hour if the alarm stayed as it was
    EXPECT_EQ(in_an_hour.times, 0);
}

TEST_P(alarm_on, an_alarm_for_a_time_that_was_given_up_ends_nothing_else) {
    io::context loop(GetParam());
    std::vector<int> ended;
    rung given_up;
    loop.arm(given_up, loop.now() + 80ms);
    begin_to_wait(loop);
    loop.disarm(given_up);
    wait(loop, 200ms, 1, ended);
    loop.run();
    EXPECT_EQ(ended.size(), 1u);
    EXPECT_EQ(given_up.times, 0);
}

TEST_P(alarm_on, a_loop_takes_its_far_times_to_another_thread) {
    io::context loop(GetParam());
    std::vector<int> ended;
    wait(loop, 150ms, 1, ended);
    std::thread([&] { begin_to_wait(loop); }).join();
    wait(loop, 100ms, 0, ended);
    std::thread([&] { begin_to_wait(loop); }).join();
    loop.run();
    EXPECT_EQ(ended, (std::vector{0, 1}));
}

// Counts the limits that the loop passes to the kernel.
struct counting_calls final : io::internal::uring_calls {
    int enter(int fd, std::uint32_t submit, std::uint32_t least, std::uint32_t flags,
              const void* argument, std::size_t size) noexcept override {
        ++enters;
        with_limit += (flags & io::uring::enter_ext_arg) != 0;
        return uring_calls::enter(fd, submit, least, flags, argument, size);
    }
    int enters = 0;
    int with_limit = 0;
};

TEST(alarm_on_uring, no_wait_beside_a_far_time_passes_a_limit_to_the_kernel) {
    counting_calls calls;
    io::context loop(calls, io::backend::uring);
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    rung far;
    loop.arm(far, loop.now() + 1h);
    int rounds = 0;
    auto server = [&]() -> detached {
        io::tcp::socket socket = co_await acceptor.accept();
        std::array<std::byte, 8> memory;
        while (const std::size_t n = co_await socket.receive(memory)) {
            co_await socket.send_all(std::span(memory).first(n));
        }
    };
    auto client = [&]() -> detached {
        io::tcp::socket socket(loop);
        co_await socket.connect(acceptor.local());
        std::array<std::byte, 8> back;
        for (; rounds != 100; ++rounds) {
            co_await socket.send_all(bytes_of("x"));
            (void)co_await socket.receive(back);
        }
        loop.disarm(far);
    };
    server();
    client();
    loop.run();
    EXPECT_EQ(rounds, 100);
    EXPECT_GT(calls.enters, 50);
    EXPECT_EQ(calls.with_limit, 0);
    EXPECT_EQ(far.times, 0);
}

TEST(alarm_on_epoll, without_timerfd_each_wait_passes_its_limit) {
    test::expect_passes_without(SYS_timerfd_create, EPERM,
                                "rings/alarm_on.*/epoll:rings/context_on.*/epoll");
}

}  // namespace
