// Stopping on every ring: stop requests, deadlines, closing, and the end of the context, for every
// operation that can wait; and the same as programs write it, with when_any and timeout.
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/when_any.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/io/datagram.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/pool/contract_pool.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/task/task.hpp>

#include "allocations.hpp"
#include "detached.hpp"
#include "outcome.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
using coppice::test::bytes_of;
using coppice::test::detached;
using coppice::test::outcome;
using coppice::test::outcome_receiver;

class stop_on : public testing::TestWithParam<io::backend> {
protected:
    // Two connected sockets.
    detached connect_pair() { co_await near.connect(acceptor.local()); }
    detached accept_pair() { far = co_await acceptor.accept(); }
    void make_pair() {
        connect_pair();
        accept_pair();
        loop.run();
        ASSERT_TRUE(near.is_open() && far.is_open());
    }
    // Calls `check` for every operation that can wait forever, one after the other.
    template <class Check>
    void for_each_waiting(Check check) {
        check("accept", acceptor.accept());
        check("receive", far.receive(memory));
        check("receive into pieces", far.receive(pieces));
        check("receive_pooled", far.receive_pooled());
        check("send_all", near.send_all(lot));
        check("send_all of pieces", near.send_all(lots));
        check("receive_from", datagrams.receive_from(memory));
        check("wait_for", timer.wait_for(1h));
        check("schedule_after", loop.get_scheduler().schedule_after(1h));
    }

    static inline const std::vector<std::byte> lot = std::vector<std::byte>(32u << 20);
    io::context loop{GetParam()};
    io::tcp::acceptor acceptor{loop, io::loopback(0)};
    io::tcp::socket near{loop};
    io::tcp::socket far{loop};
    io::udp::socket datagrams{loop, io::loopback(0)};
    io::timer timer{loop};
    std::array<std::byte, 64> memory{};
    std::array<io::mutable_buffer, 1> pieces{io::mutable_buffer(memory)};
    std::array<io::const_buffer, 1> lots{io::const_buffer(lot)};
};
INSTANTIATE_TEST_SUITE_P(rings, stop_on, test::all_rings, test::ring_name);

// Starts an operation on the loop, and returns after how many turns it had ended.
template <class Operation>
detached stop_in_a_turn(io::context& loop, Operation& op, inplace_stop_source& source,
                        const outcome& ended, int& turns) {
    co_await loop.get_scheduler().schedule();
    ex::start(op);
    co_await loop.get_scheduler().schedule();
    EXPECT_EQ(ended.ends(), 0);
    source.request_stop();
    for (turns = 0; ended.ends() == 0 && turns != 5; ++turns) {
        co_await loop.get_scheduler().schedule();
    }
}

TEST_P(stop_on, a_stop_on_the_loop_ends_every_waiting_operation_within_a_turn) {
    make_pair();
    for_each_waiting([this](const char* name, auto sender) {
        SCOPED_TRACE(name);
        inplace_stop_source source;
        outcome ended;
        int turns = -1;
        auto op = ex::connect(std::move(sender), outcome_receiver(ended, source.get_token()));
        stop_in_a_turn(loop, op, source, ended, turns);
        loop.run();
        EXPECT_EQ(ended.stops, 1);
        EXPECT_EQ(ended.ends(), 1);
        EXPECT_LE(turns, 1);
    });
}

TEST_P(stop_on, a_stop_on_another_thread_ends_every_waiting_operation) {
    if (GetParam() == io::backend::sim) GTEST_SKIP() << "an hour passes before a thread starts";
    make_pair();
    for_each_waiting([this](const char* name, auto sender) {
        SCOPED_TRACE(name);
        inplace_stop_source source;
        outcome ended;
        auto op = ex::connect(std::move(sender), outcome_receiver(ended, source.get_token()));
        ex::start(op);
        std::thread other([&] { source.request_stop(); });
        loop.run();  // returns when nothing is pending any longer
        other.join();
        EXPECT_EQ(ended.stops, 1);
        EXPECT_EQ(ended.ends(), 1);
    });
}

TEST_P(stop_on, a_stop_that_came_before_the_start_lets_nothing_start) {
    make_pair();
    for_each_waiting([this](const char* name, auto sender) {
        SCOPED_TRACE(name);
        inplace_stop_source source;
        source.request_stop();
        outcome ended;
        auto op = ex::connect(std::move(sender), outcome_receiver(ended, source.get_token()));
        ex::start(op);
        loop.run();
        EXPECT_EQ(ended.stops, 1);
        EXPECT_EQ(ended.ends(), 1);
    });
}

TEST_P(stop_on, a_deadline_stops_every_waiting_operation_and_never_early) {
    make_pair();
    for (const duration left : {3ms, -1ms}) {
        for_each_waiting([&](const char* name, auto sender) {
            SCOPED_TRACE(name);
            outcome ended;
            const time_point deadline = loop.now() + left;
            auto op =
                ex::connect(std::move(sender), outcome_receiver(ended, {}, ex::instant(deadline)));
            ex::start(op);
            loop.run();
            EXPECT_EQ(ended.stops, 1);
            EXPECT_EQ(ended.ends(), 1);
            EXPECT_GE(loop.now(), deadline);
        });
    }
}

TEST_P(stop_on, the_end_of_the_context_is_an_error_to_operations_and_a_stop_to_its_scheduler) {
    {
        io::context ending(GetParam());
        io::tcp::acceptor listening(ending, io::loopback(0));
        io::udp::socket receiving(ending, io::loopback(0));
        outcome accepted, received, waited, scheduled;
        auto a = ex::connect(listening.accept(), outcome_receiver(accepted));
        auto b = ex::connect(receiving.receive_from(memory), outcome_receiver(received));
        auto c = ex::connect(io::timer(ending).wait_for(1h), outcome_receiver(waited));
        auto d =
            ex::connect(ending.get_scheduler().schedule_after(1h), outcome_receiver(scheduled));
        ex::start(a);
        ex::start(b);
        ex::start(c);
        ex::start(d);
        EXPECT_FALSE(ending.drain(1ms));
        for (const outcome* const o : {&accepted, &received, &waited}) {
            EXPECT_EQ(o->errors, 1);
            EXPECT_EQ(o->ends(), 1);
            EXPECT_EQ(o->error, std::errc::operation_canceled);
        }
        EXPECT_EQ(scheduled.stops, 1);
        EXPECT_EQ(scheduled.ends(), 1);
    }
}

TEST_P(stop_on, closing_ends_what_is_pending_with_operation_canceled) {
    make_pair();
    outcome accepted, received, sent;
    auto a = ex::connect(acceptor.accept(), outcome_receiver(accepted));
    auto b = ex::connect(datagrams.receive_from(memory), outcome_receiver(received));
    auto c = ex::connect(near.send_all(lot), outcome_receiver(sent));
    ex::start(a);
    ex::start(b);
    ex::start(c);
    auto closer = [this]() -> detached {
        co_await timer.wait_for(2ms);
        acceptor.close();
        datagrams.close();
        near.close();
    };
    closer();
    loop.run();
    for (const outcome* const o : {&accepted, &received, &sent}) {
        EXPECT_EQ(o->ends(), 1);
        EXPECT_EQ(o->error, std::errc::operation_canceled);
    }
}

TEST_P(stop_on, an_operation_started_elsewhere_finds_a_socket_closed_meanwhile) {
    make_pair();
    outcome received;
    auto op = ex::connect(far.receive(memory), outcome_receiver(received));
    ex::start(op);  // posted: no loop runs on this thread
    far.close();
    far = io::tcp::socket(loop);
    io::udp::socket takes_the_slot(loop, io::loopback(0));
    loop.run();
    EXPECT_EQ(received.error, std::errc::operation_canceled);
    EXPECT_EQ(received.ends(), 1);
}

TEST_P(stop_on, operations_on_a_closed_socket_are_errors) {
    std::error_code ec;
    auto use = [&]() -> detached {
        co_await near.receive(memory, use_await[ec]);
        EXPECT_EQ(ec, std::errc::bad_file_descriptor);
        co_await near.send_all(memory, use_await[ec]);
        EXPECT_EQ(ec, std::errc::bad_file_descriptor);
        co_await near.send_all(lots, use_await[ec]);
        EXPECT_EQ(ec, std::errc::bad_file_descriptor);
    };
    use();
    loop.run();
    EXPECT_EQ(ec, std::errc::bad_file_descriptor);
    EXPECT_EQ(near.shutdown(io::internal::shutdown_direction::both),
              std::errc::bad_file_descriptor);
}

TEST_P(stop_on, a_stopped_receive_takes_no_bytes_and_leaves_its_memory_alone) {
    make_pair();
    inplace_stop_source source;
    outcome ended;
    int turns = 0;
    auto op = ex::connect(far.receive(memory), outcome_receiver(ended, source.get_token()));
    stop_in_a_turn(loop, op, source, ended, turns);
    loop.run();
    ASSERT_EQ(ended.stops, 1);
    std::array<std::byte, 5> into{};
    auto send = [this]() -> detached { co_await near.send_all(bytes_of("hello")); };
    auto receive = [&]() -> detached {
        for (std::size_t got = 0; got != into.size();) {
            got += co_await far.receive(std::span(into).subspan(got));
        }
    };
    send();
    receive();
    loop.run();
    EXPECT_EQ(test::text_of(into), "hello");
    for (const std::byte b : memory) EXPECT_EQ(b, std::byte{0});
}

// ---- As programs write it ---------------------------------------------------------------------

TEST_P(stop_on, the_first_of_a_receive_and_a_timer_wins_and_stops_the_other) {
    make_pair();
    bool timed_out = false, received = false;
    auto wait = [&]() -> task<> {
        co_await ex::when_any(far.receive(memory) | ex::then([&](std::size_t) { received = true; }),
                              timer.wait_for(3ms) | ex::then([&] { timed_out = true; }));
        EXPECT_TRUE(timed_out);
        EXPECT_FALSE(received);
        timed_out = false;
        co_await near.send_all(bytes_of("x"));
        co_await ex::when_any(far.receive(memory) | ex::then([&](std::size_t) { received = true; }),
                              timer.wait_for(1h) | ex::then([&] { timed_out = true; }));
    };
    auto run = [](task<> t) -> detached { co_await std::move(t); };
    run(wait());
    loop.run();
    EXPECT_TRUE(received);
    EXPECT_FALSE(timed_out);
}

TEST_P(stop_on, a_timeout_ends_a_receive_with_timed_out) {
    make_pair();
    std::error_code ec;
    auto wait = [&]() -> task<> {
        try {
            // The environment of a task names no timer, so the receive's loop provides it.
            co_await ex::timeout(far.receive(memory) | ex::then([](std::size_t n) { return n; }),
                                 3ms);
        } catch (const std::system_error& e) {
            ec = e.code();
        }
    };
    auto run = [](task<> t) -> detached { co_await std::move(t); };
    run(wait());
    loop.run();
    EXPECT_EQ(ec, std::errc::timed_out);
}

// Outside a task, with a receiver that names no timer.
TEST_P(stop_on, a_timeout_of_the_loops_own_senders_is_timed_by_the_loop) {
    ex::scheduler auto sch = loop.get_scheduler();
    const auto outcome_of = [&](auto sender) {
        outcome o;
        auto op = ex::connect(std::move(sender), outcome_receiver(o));
        ex::start(op);
        loop.run();
        EXPECT_EQ(o.ends(), 1);
        return o;
    };
    const auto one = []() noexcept { return 1; };
    const auto same = [](int n) noexcept { return n; };
    EXPECT_EQ(outcome_of(ex::timeout(sch.schedule(), 1h)).values, 1);
    EXPECT_EQ(outcome_of(ex::timeout(sch.schedule_after(1ms), 1h)).values, 1);
    EXPECT_EQ(outcome_of(ex::timeout(sch.schedule_at(loop.now()), 1h)).values, 1);
    EXPECT_EQ(outcome_of(ex::timeout(sch.schedule() | ex::then(one) | ex::then(same), 1h)).values,
              1);
    EXPECT_EQ(outcome_of(ex::timeout(sch.schedule_after(1h), 1ms)).error, std::errc::timed_out);
    EXPECT_EQ(outcome_of(ex::timeout(sch.schedule_after(1h) | ex::then(one), 1ms)).error,
              std::errc::timed_out);
    EXPECT_EQ(outcome_of(ex::timeout(sch.schedule_at(loop.now() + 1h), 1ms)).error,
              std::errc::timed_out);
    // A group of contracts has no timers and names none; pools are timed.
    using untimed = decltype(std::declval<contract_pool&>().group().get_scheduler().schedule());
    static_assert(!ex::sender_in<decltype(ex::timeout(std::declval<untimed>(), 1h)), ex::env<>>);
    using timed = decltype(std::declval<thread_pool&>().get_scheduler().schedule());
    static_assert(ex::sender_in<decltype(ex::timeout(std::declval<timed>(), 1h)), ex::env<>>);
}

TEST_P(stop_on, waiting_with_a_limit_allocates_nothing_in_steady_state) {
    if (GetParam() == io::backend::sim) GTEST_SKIP() << "a simulation allocates";
    make_pair();
    std::size_t allocated = 1;
    auto wait = [&]() -> task<> {
        for (int i = 0; i != 3; ++i) {
            const coppice::test::allocation_count count;
            for (int j = 0; j != 20; ++j) {
                co_await near.send_all(bytes_of("x"));
                co_await ex::when_any(far.receive(memory) | ex::then([](std::size_t) {}),
                                      timer.wait_for(1h));
            }
            allocated = count.so_far();
        }
    };
    auto run = [](task<> t) -> detached { co_await std::move(t); };
    run(wait());
    loop.run();
    EXPECT_EQ(allocated, 0u);
}

TEST_P(stop_on, a_sender_waits_for_io_that_another_thread_runs) {
    std::optional<io::context::work_guard> guard(loop);
    std::thread runner([this] { loop.run(); });
    const auto before = loop.now();
    ex::scheduler auto sch = loop.get_scheduler();
    const auto result = this_thread::sync_wait(sch.schedule_after(2ms) |
                                               ex::then([&] { return loop.is_current(); }));
    EXPECT_TRUE(std::get<0>(result.value()));
    EXPECT_GE(loop.now() - before, 2ms);
    const auto none =
        this_thread::sync_wait(ex::when_any(timer.wait_for(1h), sch.schedule_at(loop.now() + 1ms)));
    EXPECT_TRUE(none.has_value());
    guard.reset();
    runner.join();
}

}  // namespace
