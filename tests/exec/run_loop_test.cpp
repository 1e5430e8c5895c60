// Plan: run_loop [exec.run.loop]: order, stops, many threads, timers, misuse.
#include <coppice/exec/connect.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timed_scheduler.hpp>
#include <coppice/exec/when_all.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace {

namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;
using namespace std::chrono_literals;

// Runs what is queued now.
void run_queued(ex::run_loop& loop) {
    loop.finish();
    loop.run();
}

TEST(exec_run_loop, runs_operations_first_in_first_out) {
    ex::run_loop loop;
    std::string order;
    probes::record r;
    auto say = [&](char c) {
        return ex::schedule(loop.get_scheduler()) | ex::then([&order, c] { order += c; });
    };
    auto a = ex::connect(say('a'), probes::receiver<>(r));
    auto b = ex::connect(say('b'), probes::receiver<>(r));
    auto c = ex::connect(say('c'), probes::receiver<>(r));
    ex::start(a);
    ex::start(b);
    ex::start(c);
    EXPECT_EQ(order, "");
    run_queued(loop);
    EXPECT_EQ(order, "abc");
}

TEST(exec_run_loop, an_operation_that_was_stopped_before_its_turn_completes_with_stopped) {
    ex::run_loop loop;
    coppice::inplace_stop_source source;
    probes::record r;
    auto op = ex::connect(ex::schedule(loop.get_scheduler()),
                          probes::receiver(r, probes::stop_env(source)));
    ex::start(op);
    source.request_stop();
    run_queued(loop);
    EXPECT_EQ(r.said(), "stopped");
}

TEST(exec_run_loop_types, the_signatures_have_stopped_only_where_a_stop_is_possible) {
    using sndr = ex::schedule_result_t<ex::run_loop::scheduler>;
    using stoppable = ex::prop<coppice::get_stop_token_t, coppice::inplace_stop_token>;
    static_assert(std::is_same_v<ex::completion_signatures_of_t<sndr, ex::env<>>,
                                 ex::completion_signatures<ex::set_value_t()>>);
    static_assert(
        std::is_same_v<ex::completion_signatures_of_t<sndr, stoppable>,
                       ex::completion_signatures<ex::set_value_t(), ex::set_stopped_t()>>);
    static_assert(noexcept(ex::schedule(std::declval<ex::run_loop::scheduler>())));
    static_assert(noexcept(ex::connect(std::declval<sndr>(), std::declval<probes::receiver<>>())));
}

TEST(exec_run_loop_types, schedulers_of_one_loop_are_equal) {
    ex::run_loop a;
    ex::run_loop b;
    EXPECT_TRUE(a.get_scheduler() == a.get_scheduler());
    EXPECT_FALSE(a.get_scheduler() == b.get_scheduler());
}

TEST(exec_run_loop_members, run_serves_what_was_queued_after_finish_while_it_drains) {
    ex::run_loop loop;
    probes::record r;
    auto inner = ex::connect(ex::schedule(loop.get_scheduler()), probes::receiver<>(r));
    auto outer =
        ex::connect(ex::schedule(loop.get_scheduler()) | ex::then([&] { ex::start(inner); }),
                    probes::receiver<>(r));
    ex::start(outer);
    run_queued(loop);
    EXPECT_EQ(r.said(), "value() and value()");
}

TEST(exec_run_loop, many_threads_push_and_one_runs_each_once) {
    ex::run_loop loop;
    std::thread runner([&] { loop.run(); });
    constexpr int threads = 4;
    constexpr int each = 2000;
    std::vector<std::thread> pushers;
    std::vector<int> counts(threads, 0);
    for (int t = 0; t != threads; ++t) {
        pushers.emplace_back([&, t] {
            for (int i = 0; i != each; ++i) {
                sync_wait(ex::starts_on(loop.get_scheduler(),
                                        ex::just() | ex::then([&] { ++counts[t]; })));
            }
        });
    }
    for (std::thread& p : pushers) p.join();
    loop.finish();
    runner.join();
    for (int c : counts) EXPECT_EQ(c, each);
}

TEST(exec_run_loop_death, misuse_ends_the_process) {
    EXPECT_DEATH(
        {
            probes::record r;
            ex::run_loop loop;
            auto op = ex::connect(ex::schedule(loop.get_scheduler()), probes::receiver<>(r));
            ex::start(op);
            ex::start(op);
        },
        "started twice");
    EXPECT_DEATH(
        {
            probes::record r;
            ex::run_loop loop;
            auto op = ex::connect(ex::schedule(loop.get_scheduler()), probes::receiver<>(r));
            ex::start(op);
        },
        "destroyed while it was queued");
    EXPECT_DEATH(
        {
            probes::record r;
            auto loop = std::make_unique<ex::run_loop>();
            auto op = ex::connect(ex::schedule(loop->get_scheduler()), probes::receiver<>(r));
            ex::start(op);
            loop.reset();
        },
        "destroyed with operations in its queue");
    EXPECT_DEATH(
        {
            ex::run_loop loop;
            probes::record r;
            auto op =
                ex::connect(ex::schedule(loop.get_scheduler()) | ex::then([&] { loop.run(); }),
                            probes::receiver<>(r));
            ex::start(op);
            loop.finish();
            loop.run();
        },
        "while the loop was running");
}

TEST(run_loop_timers, expire_in_the_order_of_their_times) {
    static_assert(ex::timed_scheduler<ex::run_loop::scheduler>);
    std::string order;
    sync_wait(ex::read_env(ex::get_scheduler) | ex::let_value([&](auto sch) {
                  const auto say = [&order, sch](auto after, char c) {
                      return ex::schedule_after(sch, after) | ex::then([&order, c] { order += c; });
                  };
                  return ex::when_all(say(3ms, 'c'), say(1ms, 'a'), say(2ms, 'b'), say(0ms, '0'));
              }));
    EXPECT_EQ(order, "0abc");
}

TEST(run_loop_timers, never_expire_early) {
    const ex::instant before = ex::monotonic_now();
    sync_wait(ex::read_env(ex::get_scheduler) |
              ex::let_value([](auto sch) { return ex::schedule_after(sch, 2ms); }));
    EXPECT_GE(ex::monotonic_now() - before, ex::time_span(2ms));
    sync_wait(ex::read_env(ex::get_scheduler) |
              ex::let_value([&](auto sch) { return ex::schedule_at(sch, before); }));
}

TEST(run_loop_timers, a_stop_ends_the_wait_from_any_thread) {
    for (int round = 0; round != 50; ++round) {
        ex::run_loop loop;
        coppice::inplace_stop_source source;
        std::thread runner([&] { loop.run(); });
        probes::record r;
        struct finishing {
            using receiver_concept = ex::receiver_tag;
            finishing(probes::record& rec, ex::run_loop& l,
                      coppice::inplace_stop_source& s) noexcept
                : record(&rec), loop(&l), source(&s) {}
            void set_value() && noexcept {
                record->value();
                loop->finish();
            }
            void set_stopped() && noexcept {
                record->stopped();
                loop->finish();
            }
            auto get_env() const noexcept { return probes::stop_env(*source); }
            probes::record* record;
            ex::run_loop* loop;
            coppice::inplace_stop_source* source;
        };
        auto op =
            ex::connect(ex::schedule_after(loop.get_scheduler(), 100s), finishing(r, loop, source));
        std::thread stopper([&] { source.request_stop(); });
        ex::start(op);
        stopper.join();
        runner.join();
        EXPECT_EQ(r.said(), "stopped");
    }
}

}  // namespace
