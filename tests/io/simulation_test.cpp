// io/simulation.hpp: runs that repeat exactly, and exchanges that survive every simulated fault.
#include <coppice/io/simulation.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>

#include "allocations.hpp"
#include "detached.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using coppice::test::bytes_of;
using coppice::test::detached;

// Counts how often a coroutine of a scenario begins, and how often one ends, in whatever way.
struct tally {
    int begun = 0;
    int ended = 0;
    struct entry {
        explicit entry(tally& t) noexcept : all(t) { ++all.begun; }
        ~entry() { ++all.ended; }
        tally& all;
    };
};

// Returns the text that a client sends and its server sends back.
std::string message(int client, int number) {
    return std::string(static_cast<std::size_t>((client * 131 + number * 977) % 3000 + 1),
                       static_cast<char>('a' + (client + number) % 26));
}

// A server that echoes, and clients that check what comes back. `whole` counts messages that came
// back unchanged; `wrong` counts received bytes that the client had not sent.
struct exchange {
    static constexpr int clients = 3;
    static constexpr int messages = 5;

    void run(io::context& loop) {
        try {
            io::tcp::acceptor acceptor(loop, io::loopback(0));
            const io::endpoint at = acceptor.local();
            listening = &acceptor;
            serve(acceptor);
            for (int i = 0; i != clients; ++i) talk(loop, at, i);
            loop.run();
        } catch (const std::system_error&) {
            failed = true;  // the acceptor could not be made
        }
    }

    detached serve(io::tcp::acceptor& acceptor) {
        const tally::entry entry(all);
        for (;;) {
            std::error_code ec;
            io::tcp::socket socket = co_await acceptor.accept(use_await[ec]);
            if (ec == std::errc::operation_canceled) co_return;
            if (ec) {
                failed = true;
            } else {
                echo(std::move(socket));
            }
        }
    }
    detached echo(io::tcp::socket socket) {
        const tally::entry entry(all);
        for (;;) {
            std::error_code ec;
            const io::pooled_buffer buffer = co_await socket.receive_pooled(use_await[ec]);
            if (ec || buffer.empty()) co_return;
            co_await socket.send_all(buffer.bytes(), use_await[ec]);
            if (ec) co_return;
        }
    }
    detached talk(io::context& loop, io::endpoint to, int client) {
        const tally::entry entry(all);
        io::tcp::socket socket(loop);
        std::error_code ec;
        co_await socket.connect(to, use_await[ec]);
        for (int i = 0; i != messages && !ec; ++i) {
            const std::string text = message(client, i);
            co_await socket.send_all(bytes_of(text), use_await[ec]);
            std::string back(text.size(), '\0');
            std::size_t got = 0;
            while (!ec && got != back.size()) {
                const std::size_t n = co_await socket.receive(
                    std::as_writable_bytes(std::span(back)).subspan(got), use_await[ec]);
                if (n == 0) break;
                got += n;
            }
            wrong += back.substr(0, got) != text.substr(0, got);
            whole += back == text;
            if (got != back.size()) break;
            io::timer pause(loop);
            co_await pause.wait_for(1ms * client, use_await[ec]);
        }
        if (++done == clients) listening->close();
    }

    tally all;
    int whole = 0;
    int wrong = 0;
    int done = 0;
    bool failed = false;
    io::tcp::acceptor* listening = nullptr;
};

std::uint64_t trace_of(std::uint64_t seed) {
    io::simulation world(seed);
    io::context loop(world);
    exchange e;
    e.run(loop);
    return world.trace();
}

TEST(simulation, the_same_seed_runs_the_same_way_to_the_last_call) {
    for (std::uint64_t seed = 1; seed != 20; ++seed) {
        const std::uint64_t trace = trace_of(seed);
        EXPECT_EQ(trace_of(seed), trace) << "seed " << seed;
        EXPECT_NE(trace_of(seed + 1), trace) << "seed " << seed;
    }
}

TEST(simulation, an_hour_of_waiting_takes_no_time_and_keeps_its_order) {
    io::simulation world(7);
    io::context loop(world);
    std::vector<int> order;
    auto wait = [&](int id, duration time) -> detached {
        const time_point before = loop.now();
        co_await io::timer(loop).wait_for(time);
        EXPECT_GE(loop.now() - before, time);
        EXPECT_LT(loop.now() - before, time + 1s);
        order.push_back(id);
    };
    wait(2, 1h);
    wait(1, 59min);
    wait(3, 24h * 365);
    loop.run();
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(simulation, a_thousand_seeds_lose_duplicate_and_leak_nothing) {
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
        SCOPED_TRACE(seed);
        const std::size_t allocated = test::live_allocations();
        {
            io::simulation world(seed);
            exchange e;
            {
                io::context loop(world);
                e.run(loop);
                EXPECT_EQ(world.open_descriptors(), 0u);
            }
            EXPECT_EQ(e.whole, exchange::clients * exchange::messages);
            EXPECT_EQ(e.wrong, 0);
            EXPECT_EQ(e.all.ended, e.all.begun);
        }
        ASSERT_EQ(test::live_allocations(), allocated);
        if (HasFailure()) break;
    }
}

TEST(simulation, a_thousand_seeds_with_resets_end_every_operation_and_corrupt_nothing) {
    int whole = 0;
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
        SCOPED_TRACE(seed);
        const std::size_t allocated = test::live_allocations();
        {
            io::simulated_faults faults;
            faults.resets = 30;
            io::simulation world(seed, faults);
            exchange e;
            {
                io::context loop(world);
                e.run(loop);
                EXPECT_EQ(world.open_descriptors(), 0u);
            }
            whole += e.whole;
            EXPECT_EQ(e.wrong, 0);
            EXPECT_EQ(e.all.ended, e.all.begun);
            EXPECT_EQ(e.done, exchange::clients);
        }
        ASSERT_EQ(test::live_allocations(), allocated);
        if (HasFailure()) break;
    }
    EXPECT_GT(whole, 1000);  // some exchanges were completed, and some were not
    EXPECT_LT(whole, 1000 * exchange::clients * exchange::messages);
}

TEST(simulation, the_end_of_a_context_in_the_middle_leaks_nothing) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        SCOPED_TRACE(seed);
        const std::size_t allocated = test::live_allocations();
        {
            io::simulation world(seed);
            std::optional<io::context> loop(std::in_place, world);
            exchange e;
            {
                io::tcp::acceptor acceptor(*loop, io::loopback(0));
                e.listening = &acceptor;
                e.serve(acceptor);
                for (int i = 0; i != exchange::clients; ++i) {
                    e.talk(*loop, acceptor.local(), i);
                }
                (void)loop->run_for(duration(static_cast<std::int64_t>(seed) * 100'000));
                (void)loop->drain(duration::zero());
                EXPECT_EQ(e.all.ended, e.all.begun);
            }
            EXPECT_EQ(world.open_descriptors(), 0u);
            loop.reset();
        }
        ASSERT_EQ(test::live_allocations(), allocated);
        if (HasFailure()) break;
    }
}

}  // namespace
