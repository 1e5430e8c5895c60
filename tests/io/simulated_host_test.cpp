// The hosts and signals of io/simulation.hpp: planted, delayed in virtual time, in the seed's
// order.
#include <coppice/io/resolver.hpp>
#include <coppice/io/signal_set.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/token/bind_env.hpp>

#include "allocations.hpp"
#include "detached.hpp"
#include "outcome.hpp"

#include <gtest/gtest.h>
#include <netdb.h>
#include <signal.h>

#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
using coppice::test::detached;
using coppice::test::outcome;
using coppice::test::outcome_receiver;

std::vector<io::endpoint> two_addresses() {
    return {*io::endpoint::parse("192.0.2.7", 1), *io::endpoint::parse("2001:db8::7", 1)};
}

TEST(simulated_names, a_planted_host_is_found_when_its_time_has_passed) {
    io::simulation world(3, io::simulated_faults::none());
    io::context loop(world);
    world.plant_host("far.example", two_addresses(), 90s);
    std::vector<std::string> found;
    const time_point before = loop.now();
    auto ask = [&]() -> detached {
        io::resolver resolver(loop);
        for (const io::endpoint& e : co_await resolver.resolve("far.example", 443)) {
            found.push_back(e.to_string());
        }
    };
    ask();
    loop.run();
    EXPECT_EQ(found, (std::vector<std::string>{"192.0.2.7:443", "[2001:db8::7]:443"}));
    EXPECT_GE(loop.now() - before, 90s);
    EXPECT_LT(loop.now() - before, 91s);
}

TEST(simulated_names, failures_and_unknown_hosts_are_errors_of_the_resolver) {
    io::simulation world(4);
    io::context loop(world);
    world.plant_host_failure("weak.example", EAI_AGAIN, 5s);
    std::error_code weak, absent;
    auto ask = [&](const char* name, std::error_code& ec) -> detached {
        co_await io::resolver(loop).resolve(name, 1, use_await[ec]);
    };
    ask("weak.example", weak);
    ask("absent.example", absent);
    loop.run();
    EXPECT_EQ(weak, std::error_code(EAI_AGAIN, io::resolver_category()));
    EXPECT_EQ(absent, std::error_code(EAI_NONAME, io::resolver_category()));
}

TEST(simulated_names, a_stop_and_a_deadline_do_not_wait_for_the_answer) {
    io::simulation world(5, io::simulated_faults::none());
    io::context loop(world);
    world.plant_host("far.example", two_addresses(), 1h);
    const time_point before = loop.now();
    inplace_stop_source source;
    outcome stopped, late;
    io::resolver resolver(loop);
    auto a = ex::connect(resolver.resolve("far.example", 1),
                         outcome_receiver(stopped, source.get_token()));
    auto b = ex::connect(resolver.resolve("far.example", 1),
                         outcome_receiver(late, {}, ex::instant(before + 7s)));
    ex::start(a);
    ex::start(b);
    auto stop = [&]() -> detached {
        co_await io::timer(loop).wait_for(1s);
        source.request_stop();
        EXPECT_EQ(stopped.ends() + late.ends(), 0);
    };
    stop();
    loop.run();
    EXPECT_EQ(stopped.stops, 1);
    EXPECT_EQ(late.stops, 1);
    EXPECT_GE(loop.now() - before, 7s);
    EXPECT_LT(loop.now() - before, 8s);
}

TEST(simulated_names, the_end_of_the_context_ends_a_look_up) {
    io::simulation world(6);
    outcome ended;
    std::optional<io::context> loop(std::in_place, world);
    world.plant_host("far.example", two_addresses(), 1h);
    auto a = ex::connect(io::resolver(*loop).resolve("far.example", 1), outcome_receiver(ended));
    ex::start(a);
    EXPECT_TRUE(loop->run_for(1s));
    EXPECT_EQ(ended.ends(), 0);
    loop.reset();
    EXPECT_EQ(ended.ends(), 1);
    EXPECT_EQ(ended.values, 0);
}

// Sends two signals at the same time, and returns the one received first.
int first_of_two(std::uint64_t seed, const io::simulated_faults& faults) {
    io::simulation world(seed, faults);
    io::context loop(world);
    io::signal_set signals(loop, {SIGUSR1, SIGUSR2});
    std::vector<int> got;
    auto collect = [&]() -> detached {
        for (int i = 0; i != 2; ++i) got.push_back(co_await signals.wait());
    };
    collect();
    world.raise(SIGUSR2, 10ms);
    world.raise(SIGUSR1, 10ms);
    const time_point before = loop.now();
    loop.run();
    EXPECT_GE(loop.now() - before, 10ms);
    EXPECT_LT(loop.now() - before, 30ms);
    EXPECT_EQ(std::multiset<int>(got.begin(), got.end()), (std::multiset<int>{SIGUSR1, SIGUSR2}));
    return got.front();
}

TEST(simulated_signals, sent_at_one_time_come_in_an_order_from_the_seed) {
    std::set<int> firsts;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        const int first = first_of_two(seed, {});
        EXPECT_EQ(first_of_two(seed, {}), first) << "seed " << seed;
        firsts.insert(first);
    }
    EXPECT_EQ(firsts, (std::set<int>{SIGUSR1, SIGUSR2}));
    // Without delays both come at once, and the lower number is received first, as on Linux.
    EXPECT_EQ(first_of_two(1, io::simulated_faults::none()), SIGUSR1);
}

TEST(simulated_signals, sent_twice_before_they_are_received_count_once_and_wait_for_a_set) {
    io::simulation world(9, io::simulated_faults::none());
    io::context loop(world);
    world.raise(SIGTERM);
    world.raise(SIGTERM);
    auto pause = [&]() -> detached { co_await io::timer(loop).wait_for(1ms); };
    pause();
    loop.run();
    io::signal_set signals(loop, {SIGTERM});
    int got = 0;
    auto collect = [&]() -> detached {
        for (;;) {
            std::error_code ec;
            co_await signals.wait(use_await[ec]);
            if (ec) co_return;
            ++got;
        }
    };
    collect();
    EXPECT_TRUE(loop.run_for(1s));
    EXPECT_EQ(got, 1);
    EXPECT_FALSE(loop.drain(duration::zero()));
}

TEST(simulated_signals, that_no_system_has_are_refused) {
    io::simulation world(2);
    io::context loop(world);
    for (const int none : {-1, 0, 65}) {
        EXPECT_THROW(io::signal_set(loop, {SIGTERM, none}), std::system_error);
    }
    EXPECT_EQ(world.open_descriptors(), 0u);
    EXPECT_DEATH(world.raise(0), "a signal's number is 1 to 64");
}

// Look-ups and signals beside timers, some of them stopped. Counts their ends.
struct busy_host {
    static constexpr int questions = 6;
    static constexpr int signals = 4;

    void run(io::simulation& world, io::context& loop) {
        world.plant_host("one.example", two_addresses(), 3ms);
        world.plant_host_failure("two.example", EAI_AGAIN, 1ms);
        for (int i = 0; i != questions; ++i) ask(loop, i);
        for (int i = 0; i != signals; ++i) world.raise(SIGRTMIN + i, 1ms * i);
        io::signal_set set(loop, {SIGRTMIN, SIGRTMIN + 1, SIGRTMIN + 2, SIGRTMIN + 3});
        collect(set);
        stop(loop);
        loop.run();
    }
    void ask(io::context& loop, int i) {
        static constexpr const char* names[] = {"one.example", "two.example", "absent.example"};
        const inplace_stop_token token = i < 3 ? source.get_token() : inplace_stop_token();
        io::resolver(loop).resolve(
            names[i % 3], 80,
            bind_env(ex::prop(get_stop_token, token),
                     [this, i](std::error_code ec, const std::vector<io::endpoint>& found) {
                         answered_with(i, ec, found.size());
                     }));
    }
    void answered_with(int i, std::error_code ec, std::size_t found) {
        static constexpr int expected[] = {0, EAI_AGAIN, EAI_NONAME};
        const bool cancelled = ec == std::errc::operation_canceled;
        if (cancelled ? i >= 3 : ec.value() != expected[i % 3]) ++wrong;
        if (found != (ec ? 0u : 2u)) ++wrong;
        stopped += cancelled ? 1 : 0;
        ++answered;
    }
    detached collect(io::signal_set& set) {
        for (int i = 0; i != signals; ++i) received.insert(co_await set.wait());
    }
    detached stop(io::context& loop) {
        co_await io::timer(loop).wait_for(3ms);
        source.request_stop();
    }

    inplace_stop_source source;
    int answered = 0;
    int stopped = 0;
    int wrong = 0;
    std::multiset<int> received;
};

TEST(simulated_names, a_thousand_seeds_answer_and_signal_once_and_leak_nothing) {
    int stopped = 0;
    std::set<std::uint64_t> traces;
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
        SCOPED_TRACE(seed);
        std::uint64_t trace[2]{};
        for (std::uint64_t& t : trace) {
            const std::size_t allocated = test::live_allocations();
            {
                io::simulation world(seed);
                busy_host host;
                {
                    io::context loop(world);
                    host.run(world, loop);
                    EXPECT_EQ(world.open_descriptors(), 0u);
                }
                EXPECT_EQ(host.answered, busy_host::questions);
                EXPECT_EQ(host.wrong, 0);
                EXPECT_EQ(host.received.size(), 4u);
                EXPECT_EQ(std::set<int>(host.received.begin(), host.received.end()).size(), 4u);
                stopped += host.stopped;
                t = world.trace();
            }
            // The first run leaves memory for callbacks, which later runs use again.
            if (seed != 1) {
                ASSERT_EQ(test::live_allocations(), allocated);
            }
        }
        EXPECT_EQ(trace[0], trace[1]);
        traces.insert(trace[0]);
        if (HasFailure()) break;
    }
    EXPECT_EQ(traces.size(), 1000u);
    EXPECT_GT(stopped, 0);
    EXPECT_LT(stopped, 1000 * 2 * 3);
}

}  // namespace
