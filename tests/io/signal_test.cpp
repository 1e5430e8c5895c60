// io/signal_set.hpp: signals as operations, on every ring.
#include <coppice/io/signal_set.hpp>
#include <coppice/io/simulation.hpp>

#include "detached.hpp"
#include "outcome.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <optional>
#include <set>
#include <vector>

namespace {

using namespace coppice;
namespace ex = coppice::execution;
using coppice::test::detached;
using coppice::test::outcome;
using coppice::test::outcome_receiver;

class signals_on : public testing::TestWithParam<io::backend> {
protected:
    signals_on() {
        if (GetParam() == io::backend::sim) {
            loop.emplace(world);
        } else {
            loop.emplace(GetParam());
        }
    }
    void raise(int signal) {
        if (GetParam() == io::backend::sim) {
            world.raise(signal);
        } else {
            ::raise(signal);
        }
    }
    detached collect(io::signal_set& signals, int count) {
        for (int i = 0; i != count; ++i) got.push_back(co_await signals.wait());
    }

    io::simulation world{7};
    std::optional<io::context> loop;
    std::vector<int> got;
};
INSTANTIATE_TEST_SUITE_P(rings, signals_on, test::all_rings, test::ring_name);

TEST_P(signals_on, a_signal_ends_a_wait) {
    io::signal_set signals(*loop, {SIGUSR1});
    collect(signals, 1);
    raise(SIGUSR1);
    loop->run();
    EXPECT_EQ(got, std::vector<int>{SIGUSR1});
}

TEST_P(signals_on, signals_that_came_before_the_wait_are_received_once_each) {
    io::signal_set signals(*loop, {SIGUSR1, SIGUSR2});
    raise(SIGUSR2);
    raise(SIGUSR1);
    collect(signals, 2);
    loop->run();
    EXPECT_EQ(std::multiset<int>(got.begin(), got.end()), (std::multiset<int>{SIGUSR1, SIGUSR2}));
}

TEST_P(signals_on, a_set_receives_its_own_signals_alone) {
    io::signal_set ones(*loop, {SIGUSR1});
    io::signal_set twos(*loop, {SIGUSR2});
    std::vector<int> second;
    auto two = [&]() -> detached { second.push_back(co_await twos.wait()); };
    two();
    collect(ones, 1);
    raise(SIGUSR1);
    raise(SIGUSR2);
    loop->run();
    EXPECT_EQ(got, std::vector<int>{SIGUSR1});
    EXPECT_EQ(second, std::vector<int>{SIGUSR2});
}

TEST_P(signals_on, a_stop_and_a_close_end_a_wait_without_a_signal) {
    inplace_stop_source source;
    outcome stopped, closed;
    io::signal_set one(*loop, {SIGUSR1});
    io::signal_set other(*loop, {SIGUSR1});
    auto a = ex::connect(one.wait(), outcome_receiver(stopped, source.get_token()));
    auto b = ex::connect(other.wait(), outcome_receiver(closed));
    ex::start(a);
    ex::start(b);
    auto end = [&]() -> detached {
        co_await loop->get_scheduler().schedule();
        source.request_stop();
        other.close();
    };
    end();
    loop->run();
    EXPECT_EQ(stopped.stops, 1);
    EXPECT_EQ(closed.ends(), 1);
    EXPECT_EQ(closed.values, 0);
}

}  // namespace
