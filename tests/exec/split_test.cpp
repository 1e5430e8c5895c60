// Plan: split (P2300R10 [exec.split]): one run for all consumers, stops, lifetime, races.
#include <coppice/exec/connect.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/split.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace {

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;
using probes::outcome;

TEST(split, runs_its_child_once_for_all_consumers) {
    int runs = 0;
    auto shared = ex::just() | ex::then([&] { return ++runs; }) | ex::split();
    static_assert(std::is_copy_constructible_v<decltype(shared)>);
    EXPECT_EQ(outcome(shared), "value(1)");
    EXPECT_EQ(outcome(shared), "value(1)");
    EXPECT_EQ(outcome(ex::when_all(shared, shared)), "value(1, 1)");
    EXPECT_EQ(runs, 1);
}

TEST(split, completes_all_waiting_consumers) {
    probes::by_hand hand;
    probes::record a;
    probes::record b;
    auto shared = ex::split(hand.get());
    auto op_a = ex::connect(shared, probes::receiver<>(a));
    auto op_b = ex::connect(shared, probes::receiver<>(b));
    ex::start(op_a);
    ex::start(op_b);
    EXPECT_EQ(hand.started, 1);
    hand.error(3);
    EXPECT_EQ(a.said(), "error(3)");
    EXPECT_EQ(b.said(), "error(3)");
    EXPECT_EQ(outcome(shared), "error(3)");
}

TEST(split, results_are_const_lvalues_of_one_value) {
    auto shared = ex::just(std::make_unique<int>(5)) | ex::split();
    using sigs = ex::completion_signatures_of_t<decltype(shared), ex::env<>>;
    static_assert(
        std::is_same_v<sigs, ex::completion_signatures<ex::set_value_t(const std::unique_ptr<int>&),
                                                       ex::set_stopped_t()>>);
    const int* seen = nullptr;
    auto look = ex::then([&](const std::unique_ptr<int>& p) { seen = p.get(); });
    outcome(shared | look);
    const int* const first = seen;
    outcome(shared | look);
    EXPECT_EQ(first, seen);
}

TEST(split, a_stop_of_any_consumer_reaches_the_child_through_a_single_source) {
    auto token = ex::read_env(coppice::get_stop_token) | ex::then([](auto t) {
                     return std::is_same_v<decltype(t), coppice::single_inplace_stop_token>;
                 });
    EXPECT_EQ(outcome(ex::split(token)), "value(true)");

    coppice::inplace_stop_source source;
    probes::record a;
    probes::record b;
    auto shared = ex::split(probes::until_stopped());
    auto op_a = ex::connect(shared, probes::receiver<>(a));
    auto op_b = ex::connect(shared, probes::receiver(b, probes::stop_env(source)));
    ex::start(op_a);
    ex::start(op_b);
    source.request_stop();
    EXPECT_EQ(a.said(), "stopped");
    EXPECT_EQ(b.said(), "stopped");
}

TEST(split, a_stop_before_the_first_start_completes_without_starting_the_child) {
    coppice::inplace_stop_source source;
    source.request_stop();
    probes::by_hand hand;
    auto shared = ex::split(hand.get());
    EXPECT_EQ(outcome(shared, probes::stop_env(source)), "stopped");
    EXPECT_EQ(hand.started, 0);
}

TEST(split, the_last_holder_destroys_the_state) {
    probes::by_hand hand;
    {
        auto shared = ex::split(hand.get());
        auto copy = shared;
        shared = copy;
    }
    EXPECT_EQ(hand.destroyed, 1);
    probes::record r;
    {
        std::optional<decltype(ex::split(hand.get()))> shared(ex::split(hand.get()));
        auto op = ex::connect(*shared, probes::receiver<>(r));
        shared.reset();
        ex::start(op);
        hand.value(2);
        EXPECT_EQ(r.said(), "value(2)");
        EXPECT_EQ(hand.destroyed, 1);
    }
    EXPECT_EQ(hand.destroyed, 2);
}

TEST(split, completes_each_consumer_once_under_concurrent_starts_and_stops) {
    for (int round = 0; round != 100; ++round) {
        ex::run_loop loop;
        std::thread runner([&] { loop.run(); });
        coppice::inplace_stop_source source;
        auto shared = ex::split(ex::starts_on(loop.get_scheduler(), ex::just(round)));
        std::vector<std::thread> consumers;
        std::vector<probes::record> records(3);
        for (int i = 0; i != 3; ++i) {
            consumers.emplace_back([&, i] {
                auto result = sync_wait(shared | ex::then([](int v) { return v; }));
                if (result) records[static_cast<std::size_t>(i)].value(std::get<0>(*result));
            });
        }
        for (std::thread& c : consumers) c.join();
        for (const probes::record& r : records) {
            EXPECT_EQ(r.said(), "value(" + std::to_string(round) + ")");
        }
        loop.finish();
        runner.join();
    }
}

}  // namespace
