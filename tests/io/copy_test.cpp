// io/copy.hpp: copies from stream to stream until the end, one way and both ways, on every ring.
#include <coppice/io/copy.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/token/block.hpp>

#include "detached.hpp"
#include "outcome.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
using coppice::test::bytes_of;
using coppice::test::detached;
using coppice::test::outcome;
using coppice::test::outcome_receiver;
using coppice::test::text_of;

// Two connected sockets.
struct joined {
    explicit joined(io::context& loop) : near(loop), far(loop) {
        io::tcp::acceptor acceptor(loop, io::loopback(0));
        auto connect = [&]() -> detached { co_await near.connect(acceptor.local()); };
        connect();
        far = acceptor.accept(block);
        loop.run();
    }
    io::tcp::socket near, far;
};

// client.near <-> client.far = copied = server.near <-> server.far
struct proxied {
    explicit proxied(io::context& loop) : client(loop), server(loop) {}
    joined client, server;
    io::stream& from_client() { return client.far; }
    io::stream& to_server() { return server.near; }
};

detached send_and_end(io::stream& s, std::string_view text) {
    std::error_code ec;
    co_await s.send_all(bytes_of(text), use_await[ec]);
    s.shutdown_send();
}
// Appends received bytes to `into`, and sets `ended` at the end of the stream.
detached receive_all(io::stream& s, std::string& into, bool& ended) {
    for (;;) {
        std::array<std::byte, 3000> memory;
        std::error_code ec;
        const std::size_t n = co_await s.receive(memory, use_await[ec]);
        if (ec || n == 0) break;
        into += text_of(std::span(memory).first(n));
    }
    ended = true;
}

const std::string lot = [] {
    std::string text(400'000, ' ');
    for (std::size_t i = 0; i != text.size(); ++i) text[i] = static_cast<char>(i * 7 % 251);
    return text;
}();

class copy_on : public testing::TestWithParam<io::backend> {
protected:
    const bool real = GetParam() != io::backend::sim;
    io::context loop{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(rings, copy_on, test::all_rings, test::ring_name);

TEST_P(copy_on, a_stream_that_is_copied_to_itself_is_an_echo) {
    joined pair(loop);
    std::string echoed;
    bool ended = false;
    std::uint64_t count = 0;
    io::copy(pair.far, pair.far, [&](std::error_code ec, std::uint64_t n) {
        EXPECT_FALSE(ec);
        count = n;
        pair.far.shutdown_send();
    });
    send_and_end(pair.near, lot);
    receive_all(pair.near, echoed, ended);
    loop.run();
    EXPECT_TRUE(ended);
    EXPECT_EQ(echoed, lot);
    EXPECT_EQ(count, lot.size());
}

TEST_P(copy_on, both_ways_are_copied_and_the_end_of_each_is_passed_on) {
    proxied p(loop);
    std::string asked, answered;
    bool answer_ended = false;
    io::copied result;
    bool done = false;
    io::copy_both(p.from_client(), p.to_server(), [&](std::error_code ec, io::copied c) {
        EXPECT_FALSE(ec);
        result = c;
        done = true;
    });
    // The server answers when it has received the whole question.
    auto serve = [&]() -> detached {
        bool ended = false;
        receive_all(p.server.far, asked, ended);
        io::timer timer(loop);
        while (!ended) co_await timer.wait_for(1ms);
        EXPECT_FALSE(done);
        send_and_end(p.server.far, "the answer");
    };
    serve();
    send_and_end(p.client.near, lot);
    receive_all(p.client.near, answered, answer_ended);
    loop.run();
    EXPECT_TRUE(done);
    EXPECT_EQ(asked, lot);
    EXPECT_EQ(answered, "the answer");
    EXPECT_EQ(result, (io::copied{lot.size(), 10}));
}

TEST_P(copy_on, large_streams_are_copied_both_ways_at_once) {
    proxied p(loop);
    std::string there, back;
    bool ended[2] = {false, false};
    io::copied result;
    io::copy_both(p.from_client(), p.to_server(), {.idle_max = 1h},
                  [&](std::error_code ec, io::copied c) {
                      EXPECT_FALSE(ec);
                      result = c;
                  });
    send_and_end(p.client.near, lot);
    send_and_end(p.server.far, std::string_view(lot).substr(1));
    receive_all(p.server.far, there, ended[0]);
    receive_all(p.client.near, back, ended[1]);
    loop.run();
    EXPECT_EQ(there, lot);
    EXPECT_EQ(back, lot.substr(1));
    EXPECT_EQ(result, (io::copied{lot.size(), lot.size() - 1}));
}

TEST_P(copy_on, the_end_of_one_way_is_not_passed_on_so_that_more_may_follow) {
    proxied p(loop);
    std::string received;
    bool ended = false;
    send_and_end(p.client.near, "first, ");
    receive_all(p.server.far, received, ended);
    EXPECT_EQ(io::copy(p.from_client(), p.to_server(), block), 7u);
    p.to_server().send_all(bytes_of("second"), block);
    EXPECT_FALSE(ended);
    p.to_server().shutdown_send();
    loop.run();
    EXPECT_EQ(received, "first, second");
}

TEST_P(copy_on, an_error_of_one_way_ends_both) {
    if (!real) GTEST_SKIP() << "below, by the call that fails";
    proxied p(loop);
    std::error_code error;
    int ends = 0;
    io::copy_both(p.from_client(), p.to_server(), [&](std::error_code ec, io::copied) {
        error = ec;
        ++ends;
    });
    // A reset of one stream while the other way waits.
    EXPECT_FALSE(p.server.far.set(io::linger(std::chrono::seconds(0))));
    p.server.far.close();
    loop.run();
    EXPECT_EQ(ends, 1);
    EXPECT_EQ(error, std::errc::connection_reset);
    p.client.near.close();
    loop.run();
}

TEST_P(copy_on, streams_that_are_not_open_or_are_closed_meanwhile_are_errors) {
    joined pair(loop);
    io::tcp::socket none(loop);
    std::error_code ec;
    EXPECT_EQ(io::copy(none, pair.near, block[ec]), 0u);
    EXPECT_EQ(ec, std::errc::bad_file_descriptor);
    EXPECT_EQ(io::copy_both(pair.near, none, block[ec]), io::copied());
    EXPECT_EQ(ec, std::errc::bad_file_descriptor);
    int ends = 0;
    io::copy(pair.near, pair.far, [&](std::error_code e, std::uint64_t) {
        ec = e;
        ++ends;
    });
    pair.near.close();
    loop.run();
    EXPECT_EQ(ends, 1);
    EXPECT_EQ(ec, std::errc::operation_canceled);
}

TEST_P(copy_on, the_end_of_the_context_cancels_it) {
    std::optional<io::context> ending(std::in_place, GetParam());
    std::optional<proxied> p(std::in_place, *ending);
    outcome ended;
    auto op = ex::connect(io::copy_both(p->from_client(), p->to_server(), {.idle_max = 1h}),
                          outcome_receiver(ended));
    ex::start(op);
    EXPECT_FALSE(ending->drain(0ms));
    EXPECT_EQ(ended.error, std::errc::operation_canceled);
    p.reset();
}

TEST_P(copy_on, a_receiver_that_does_not_read_holds_the_sender_up) {
    if (!real) GTEST_SKIP() << "below by seeds";
    proxied p(loop);
    bool sent = false, ended = false;
    const std::string much(32u << 20, 'x');
    std::string received;
    auto send = [&]() -> detached {
        co_await p.client.near.send_all(bytes_of(much));
        sent = true;
        p.client.near.shutdown_send();
    };
    send();
    io::copy_both(p.from_client(), p.to_server(), [](std::error_code, io::copied) {});
    (void)loop.run_for(20ms);
    EXPECT_FALSE(sent);
    receive_all(p.server.far, received, ended);
    p.server.far.shutdown_send();
    loop.run();
    EXPECT_TRUE(sent);
    EXPECT_EQ(received.size(), much.size());
}

TEST_P(copy_on, it_is_started_and_stopped_on_another_thread) {
    if (!real) GTEST_SKIP() << "a simulation has one thread";
    for (int i = 0; i != 20; ++i) {
        proxied p(loop);
        std::optional<io::context::work_guard> guard(loop);
        std::thread runner([&] { loop.run(); });
        inplace_stop_source source;
        outcome ended;
        std::thread stopper([&] { source.request_stop(); });
        auto op = ex::connect(io::copy_both(p.from_client(), p.to_server()),
                              outcome_receiver(ended, source.get_token()));
        ex::start(op);
        stopper.join();
        guard.reset();
        runner.join();
        loop.run();
        EXPECT_EQ(ended.stops, 1);
    }
}

// ---- Time, by the clock of a simulation -------------------------------------------------------

TEST(copy_simulated, it_times_out_only_if_both_ways_were_silent_for_the_limit) {
    io::simulation world(1, io::simulated_faults::none());
    io::context loop(world);
    proxied p(loop);
    std::string received;
    bool ended = false;
    std::error_code error;
    io::copied result;
    time_point end{};
    io::copy_both(p.from_client(), p.to_server(), {.idle_max = 1s},
                  [&](std::error_code ec, io::copied c) {
                      error = ec;
                      result = c;
                      end = loop.now();
                  });
    time_point last{};
    auto talk = [&]() -> detached {  // one way only, for ten times the limit
        io::timer timer(loop);
        for (int i = 0; i != 20; ++i) {
            co_await timer.wait_for(500ms);
            co_await p.client.near.send_all(bytes_of("x"));
            last = loop.now();
        }
    };
    talk();
    receive_all(p.server.far, received, ended);
    loop.run_for(1min);
    EXPECT_EQ(error, std::errc::timed_out);
    EXPECT_EQ(result, (io::copied{20, 0}));
    EXPECT_GE(end - last, 1s);
    EXPECT_LT(end - last, 1001ms);
    p.to_server().close();
    loop.run();
}

TEST(copy_simulated, bytes_that_came_before_another_completion_held_the_loop_are_activity) {
    io::simulation world(1, io::simulated_faults::none());
    io::context loop(world);
    joined holder(loop);
    proxied p(loop);
    std::string received;
    bool ended = false, held = false;
    std::error_code error = std::make_error_code(std::errc::operation_in_progress);
    io::copy_both(p.from_client(), p.to_server(), {.idle_max = 10ms},
                  [&](std::error_code ec, io::copied) { error = ec; });
    std::array<std::byte, 1> one;
    holder.far.receive(one, [&](std::error_code, std::size_t) {
        (void)loop.turn_time();  // as a timer that is armed here would ask for it
        const time_point until = loop.now() + 20ms;
        while (loop.now() < until) (void)holder.far.set(io::no_delay(true));
        held = true;
    });
    // Everything arrives in one turn.
    send_and_end(holder.near, "x");
    send_and_end(p.client.near, "question");
    send_and_end(p.server.far, "");
    receive_all(p.server.far, received, ended);
    EXPECT_FALSE(loop.run_for(1min));
    EXPECT_TRUE(held);
    EXPECT_FALSE(error) << error.message();
    EXPECT_EQ(received, "question");
    p.to_server().close();
    loop.run();
}

TEST(copy_simulated, a_limit_of_no_time_is_over_at_once) {
    for (const duration none : {duration(0s), duration(-1s), duration::min()}) {
        io::simulation world(1);
        io::context loop(world);
        proxied p(loop);
        std::error_code ec;
        (void)io::copy_both(p.from_client(), p.to_server(), {.idle_max = none}, block[ec]);
        EXPECT_EQ(ec, std::errc::timed_out);
    }
}

// A stop or the deadline comes after any time. The copy ends once, and the received bytes are a
// beginning of the sent ones.
TEST(copy_simulated, a_stop_or_deadline_at_any_time_leaves_a_prefix_copied) {
    int whole = 0, stopped = 0;
    const std::string_view text = std::string_view(lot).substr(0, 30'000);
    for (std::uint64_t seed = 1; seed != 200; ++seed) {
        io::simulation world(seed);
        io::context loop(world);
        proxied p(loop);
        const auto after = std::chrono::microseconds(seed * 977 % 120'000);
        const bool by_deadline = seed % 2 == 0;
        std::string there, back;
        bool ended[2] = {false, false};
        inplace_stop_source source;
        outcome end;
        auto op = ex::connect(
            io::copy_both(p.from_client(), p.to_server()),
            outcome_receiver(end, source.get_token(),
                             by_deadline ? ex::instant(loop.now() + after) : ex::instant::never()));
        ex::start(op);
        send_and_end(p.client.near, text);
        send_and_end(p.server.far, text.substr(1));
        receive_all(p.server.far, there, ended[0]);
        receive_all(p.client.near, back, ended[1]);
        io::timer timer(loop);
        timer.wait_for(after, [&](std::error_code) {
            if (!by_deadline) source.request_stop();
        });
        while (end.ends() == 0) (void)loop.run_for(1ms);
        EXPECT_EQ(end.ends(), 1);
        EXPECT_EQ(end.errors, 0) << end.error.message();
        p.from_client().close();
        p.to_server().close();
        loop.run();
        EXPECT_EQ(there, text.substr(0, there.size()));
        EXPECT_EQ(back, text.substr(1, back.size()));
        if (end.values == 1) {
            EXPECT_EQ(there.size() + 1, back.size() + 2);
        }
        (end.values == 1 ? whole : stopped) += 1;
    }
    EXPECT_GT(whole, 0);
    EXPECT_GT(stopped, 0);
}

TEST(copy_simulated, whichever_call_fails_it_ends_once_and_leaves_nothing_pending) {
    for (std::uint64_t n = 1;; ++n) {
        io::simulation world(5, io::simulated_faults::none());
        io::context loop(world);
        proxied p(loop);
        world.fail_call(n);
        outcome end;
        auto op = ex::connect(io::copy_both(p.from_client(), p.to_server()), outcome_receiver(end));
        ex::start(op);
        send_and_end(p.client.near, "question");
        send_and_end(p.server.far, "answer");
        loop.run_for(1s);
        p.client.near.close();
        p.server.far.close();
        loop.run();
        EXPECT_EQ(end.ends(), 1) << n;
        EXPECT_EQ(end.stops, 0) << n;
        if (!world.failed()) break;
    }
}

}  // namespace
