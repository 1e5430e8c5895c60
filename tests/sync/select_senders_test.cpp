// select with branches that are other senders: timers, sockets, tasks, and senders that fail.
#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/io.hpp>
#include <coppice/pool.hpp>
#include <coppice/sync.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include "channel_operation.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;
using namespace std::chrono_literals;
using nothing = std::monostate;
using item = std::optional<int>;

// A sender of an int that a test completes, or a stop. It counts what happens to it.
struct by_hand {
    int started = 0;
    int stopped = 0;
    int destroyed = 0;
    void (*complete)(by_hand&, int) = nullptr;
    void* operation = nullptr;

    template <class Rcvr>
    struct op : immovable {
        using operation_state_concept = ex::operation_state_tag;
        struct on_stop {
            op* self;
            void operator()() const noexcept { self->stop(); }
        };
        op(by_hand& h, Rcvr r) : hand(h), rcvr(std::move(r)) {}
        ~op() { ++hand.destroyed; }
        void start() noexcept {
            ++hand.started;
            hand.operation = this;
            hand.complete = [](by_hand& h, int value) {
                op& self = *static_cast<op*>(h.operation);
                self.callback.reset();
                ex::set_value(std::move(self.rcvr), int(value));
            };
            callback.emplace(get_stop_token(ex::get_env(rcvr)), on_stop{this});
        }
        void stop() noexcept {
            ++hand.stopped;
            if (hand.ignores_stop) return;
            callback.reset();
            ex::set_stopped(std::move(rcvr));
        }
        by_hand& hand;
        Rcvr rcvr;
        std::optional<stop_callback_for_t<stop_token_of_t<ex::env_of_t<Rcvr>>, on_stop>> callback;
    };
    struct sender {
        using sender_concept = ex::sender_tag;
        using completion_signatures =
            ex::completion_signatures<ex::set_value_t(int), ex::set_stopped_t()>;
        by_hand* hand;
        template <class Rcvr>
        op<Rcvr> connect(Rcvr rcvr) const {
            if (hand->fails_to_connect) throw std::runtime_error("cannot connect");
            return {*hand, std::move(rcvr)};
        }
    };
    bool ignores_stop = false;
    bool fails_to_connect = false;
    sender wait() { return {this}; }
    void send(int value) { complete(*this, value); }
};

TEST(select_senders, are_not_started_if_a_branch_of_the_room_is_ready) {
    channel<int> a(1);
    by_hand hand;
    EXPECT_TRUE(a.try_send(1));
    auto s = operation_of<std::variant<int, item>>(coppice::select(hand.wait(), a.receive()));
    s.start();
    EXPECT_EQ(std::get<1>(s.value()), 1);
    EXPECT_EQ(hand.started, 0);
}

TEST(select_senders, the_first_that_completes_is_the_result_and_nothing_was_taken) {
    channel<int> a(0);
    by_hand hand;
    by_hand other;
    auto s = operation_of<std::variant<int, item, int>>(
        coppice::select(hand.wait(), a.receive(), other.wait()));
    s.start();
    EXPECT_EQ(hand.started + other.started, 2);
    other.send(5);
    ASSERT_EQ(s.how(), channel_end::value);
    EXPECT_EQ(std::get<2>(s.value()), 5);
    EXPECT_EQ(hand.stopped, 1);
    EXPECT_FALSE(a.try_send(1));
}

TEST(select_senders, are_stopped_and_waited_for_when_a_branch_was_granted) {
    channel<int> a(0);
    by_hand hand;
    hand.ignores_stop = true;
    auto s = operation_of<std::variant<item, int>>(coppice::select(a.receive(), hand.wait()));
    s.start();
    EXPECT_TRUE(a.try_send(1));
    EXPECT_EQ(hand.stopped, 1);
    EXPECT_TRUE(s.pending());
    hand.send(9);  // too late: the value is destroyed
    ASSERT_EQ(s.how(), channel_end::value);
    EXPECT_EQ(std::get<0>(s.value()), 1);
}

TEST(select_senders, a_stop_reaches_them_and_takes_nothing) {
    channel<int> a(0);
    by_hand hand;
    auto s = operation_of<std::variant<item, int>>(coppice::select(a.receive(), hand.wait()));
    s.start();
    s.stop();
    EXPECT_EQ(s.how(), channel_end::stopped);
    EXPECT_EQ(hand.stopped, 1);
    EXPECT_FALSE(a.try_send(1));
}

TEST(select_senders, one_that_completes_as_stopped_stops_the_select) {
    channel<int> a(0);
    auto s = operation_of<std::variant<item, nothing>>(
        coppice::select(a.receive(), ex::just_stopped() | ex::then([] {})));
    s.start();
    EXPECT_EQ(s.how(), channel_end::stopped);
    EXPECT_FALSE(a.try_send(1));
}

TEST(select_senders, the_error_of_one_ends_the_select_with_it) {
    channel<int> a(0);
    auto run = [](channel<int>& c) -> task<std::string> {
        try {
            co_await coppice::select(c.receive(), ex::just() | ex::then([]() -> int {
                                                      throw std::runtime_error("broken");
                                                  }));
        } catch (const std::runtime_error& error) {
            co_return error.what();
        }
        co_return "no error";
    };
    EXPECT_EQ(sync_wait(run(a)), std::tuple(std::string("broken")));
    EXPECT_FALSE(a.try_send(1));
}

TEST(select_senders, that_complete_inside_their_start_end_the_select_inside) {
    channel<int> a(0);
    by_hand hand;
    auto s = operation_of<std::variant<item, int, int>>(
        coppice::select(a.receive(), ex::just(3), hand.wait()));
    s.start();
    ASSERT_EQ(s.how(), channel_end::value);
    EXPECT_EQ(std::get<1>(s.value()), 3);
    EXPECT_EQ(hand.started, 0);  // it was not needed
    EXPECT_FALSE(a.try_send(1));
}

TEST(select_senders, of_which_one_fails_to_connect_leave_nothing_started_or_linked) {
    channel<int> a(0);
    by_hand hand;
    by_hand broken;
    broken.fails_to_connect = true;
    auto run = [](channel<int>& c, by_hand& first, by_hand& second) -> task<std::string> {
        try {
            co_await coppice::select(first.wait(), c.receive(), second.wait());
        } catch (const std::runtime_error& error) {
            co_return error.what();
        }
        co_return "no error";
    };
    EXPECT_EQ(sync_wait(run(a, hand, broken)), std::tuple(std::string("cannot connect")));
    EXPECT_EQ(hand.started, 0);
    EXPECT_EQ(hand.destroyed, 1);
    EXPECT_FALSE(a.try_send(1));

    std::vector<by_hand::sender> senders{hand.wait(), broken.wait()};
    EXPECT_THROW(sync_wait(select_range(std::move(senders))), std::runtime_error);
    EXPECT_EQ(hand.destroyed, 2);
}

TEST(select_senders, alone_are_a_first_of_several_with_its_index) {
    by_hand a;
    by_hand b;
    auto s = operation_of<std::variant<int, int>>(coppice::select(a.wait(), b.wait()));
    s.start();
    b.send(2);
    ASSERT_EQ(s.how(), channel_end::value);
    EXPECT_EQ(s.value().index(), 1u);
    EXPECT_EQ(a.stopped, 1);

    std::array<by_hand, 3> hands;
    std::vector<by_hand::sender> senders;
    for (by_hand& hand : hands) senders.push_back(hand.wait());
    auto r = operation_of<std::pair<std::size_t, int>>(select_range(std::move(senders)));
    r.start();
    hands[2].send(7);
    EXPECT_EQ(r.value(), std::pair(std::size_t{2}, 7));
    EXPECT_EQ(hands[0].stopped + hands[1].stopped, 2);
}

TEST(select_senders, see_the_deadline_as_one_that_arrives_as_a_stop) {
    const auto when = ex::monotonic_now() + ex::time_span(3'600'000'000'000);
    channel<int> a(0);
    bool is_told = false;
    auto look = ex::read_env(ex::get_deadline) | ex::then([&](ex::instant told) {
                    is_told = told == when;
                    return 1;
                });
    auto got = sync_wait(ex::write_env(coppice::select(a.receive(), std::move(look)),
                                       ex::prop(ex::get_deadline, when)));
    EXPECT_EQ(std::get<0>(*got).index(), 1u);
    EXPECT_TRUE(is_told);
}

// On a loop

TEST(select_senders, a_timer_of_a_loop_ends_a_select_that_waits) {
    channel<int> a(0);
    async_mutex m;
    auto held = m.try_lock();
    auto work = [&](io::context& loop) -> task<std::size_t> {
        io::timer clock(loop);
        const auto got = co_await coppice::select(a.receive(), clock.wait_for(1ms), m.lock());
        co_return got.index();
    };
    EXPECT_EQ(io::run(work), 1u);
    EXPECT_FALSE(a.try_send(1));
    held.reset();
    EXPECT_TRUE(m.try_lock());
}

TEST(select_senders, a_timer_is_stopped_when_an_item_comes) {
    channel<int> a(0);
    auto work = [&](io::context& loop) -> task<int> {
        io::timer clock(loop);
        io::timer soon(loop);
        auto send = [](io::timer& t, channel<int>& c) -> task<int> {
            co_await t.wait_for(1ms);
            co_await c.send(4);
            co_return 0;
        };
        auto receive = [](io::timer& t, channel<int>& c) -> task<int> {
            const auto got = co_await coppice::select(t.wait_for(1h), c.receive());
            co_return std::get<1>(got).value();
        };
        const auto [zero, got] = co_await ex::when_all(send(soon, a), receive(clock, a));
        co_return zero + got;
    };
    EXPECT_EQ(io::run(work), 4);
}

TEST(select_senders, a_socket_and_a_channel_are_waited_for_together) {
    channel<int> a(1);
    auto work = [&](io::context& loop) -> task<std::string> {
        io::tcp::acceptor acceptor(loop, io::loopback(0));
        io::tcp::socket client(loop);
        co_await client.connect(acceptor.local());
        io::tcp::socket server = co_await acceptor.accept();
        std::string seen;
        std::array<std::byte, 16> bytes{};
        for (int i = 0; i != 2; ++i) {
            if (i == 0) {
                EXPECT_TRUE(a.try_send(1));
            } else {
                co_await client.send_all(std::as_bytes(std::span("x", 1)));
            }
            const auto got = co_await coppice::select(server.receive(bytes), a.receive());
            seen += got.index() == 0 ? 's' : 'c';
        }
        co_return seen;
    };
    EXPECT_EQ(io::run(work), "cs");
}

TEST(select_senders, a_task_is_a_branch) {
    channel<int> a(0);
    by_hand hand;
    auto child = [](by_hand& h) -> task<int> { co_return co_await h.wait() + 1; };
    auto s = operation_of<std::variant<item, int>>(coppice::select(a.receive(), child(hand)));
    s.start();
    hand.send(1);
    s.wait();
    EXPECT_EQ(std::get<1>(s.value()), 2);
    by_hand second;
    auto t = operation_of<std::variant<item, int>>(coppice::select(a.receive(), child(second)));
    t.start();
    EXPECT_TRUE(a.try_send(3));
    t.wait();
    EXPECT_EQ(std::get<0>(t.value()), 3);
    EXPECT_EQ(second.stopped, 1);
}

TEST(select_senders, a_branch_of_the_room_in_an_adaptor_is_another_sender) {
    channel<int> a(0);
    channel<int> b(0);
    auto twice = [](item got) { return *got * 2; };
    auto s = operation_of<std::variant<int, item>>(
        coppice::select(a.receive() | ex::then(twice), b.receive()));
    s.start();
    EXPECT_TRUE(a.try_send(4));
    EXPECT_EQ(std::get<0>(s.value()), 8);
    EXPECT_FALSE(b.try_send(1));
}

// Where a task continues

TEST(select_senders, a_task_on_a_loop_continues_there_when_a_thread_grants) {
    channel<int> a(0);
    std::thread sender;
    auto work = [&](io::context& loop) -> task<bool> {
        const std::thread::id mine = std::this_thread::get_id();
        sender = std::thread([&] { static_cast<void>(sync_wait(a.send(1))); });
        channel<int> never(0);
        co_await coppice::select(a.receive(), never.receive());
        static_cast<void>(loop);
        co_return std::this_thread::get_id() == mine;
    };
    EXPECT_EQ(io::run(work), true);
    sender.join();
}

TEST(select_senders, tasks_on_a_pool_select_from_channels_of_each_other) {
    thread_pool pool(2);
    channel<int> a(0);
    channel<int> b(0);
    auto send = [](channel<int>& x, channel<int>& y) -> task<int> {
        int to_first = 0;
        for (int i = 0; i != 500; ++i)
            to_first += (co_await coppice::select(x.send(1), y.send(1))).index() == 0 ? 1 : 0;
        x.close();
        y.close();
        co_return to_first;
    };
    auto receive = [](channel<int>& x, channel<int>& y) -> task<int> {
        int count = 0;
        for (;;) {
            const auto got = co_await coppice::select(x.receive(), y.receive());
            if (!(got.index() == 0 ? std::get<0>(got) : std::get<1>(got))) co_return count;
            ++count;
        }
    };
    const auto sch = pool.get_scheduler();
    const auto got =
        sync_wait(ex::when_all(ex::starts_on(sch, send(a, b)), ex::starts_on(sch, receive(a, b))));
    EXPECT_EQ(std::get<1>(*got), 500);
}

TEST(select_senders, a_timeout_around_a_select_takes_nothing) {
    channel<int> a(0);
    auto work = [&](io::context&) -> task<bool> {
        channel<int> b(0);
        try {
            co_await ex::timeout(coppice::select(a.receive(), b.receive()), 1ms);
        } catch (const std::system_error& error) {
            co_return error.code() == std::errc::timed_out;
        }
        co_return false;
    };
    EXPECT_EQ(io::run(work), true);
    EXPECT_FALSE(a.try_send(1));
}

}  // namespace
