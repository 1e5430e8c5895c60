// io::run and pools: the result that a pool computes returns to the loop.
#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/io/context_pool.hpp>
#include <coppice/io/run.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/task/task.hpp>

#include <gtest/gtest.h>
#include <signal.h>

#include <system_error>
#include <thread>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;

class run_with_pool_on : public testing::TestWithParam<io::backend> {
protected:
    io::run_options here() const { return {.backend = GetParam()}; }
    thread_pool pool{pool_options{.threads = 2}};
};
INSTANTIATE_TEST_SUITE_P(rings, run_with_pool_on,
                         testing::Values(io::backend::epoll, io::backend::uring),
                         [](const auto& instance) {
                             return instance.param == io::backend::epoll ? "epoll" : "uring";
                         });

task<> for_ever(io::context& loop) {
    io::timer timer(loop);
    for (;;) co_await timer.wait_for(1h);
}

TEST_P(run_with_pool_on, a_task_is_on_its_loop_after_a_pools_work) {
    const auto self = std::this_thread::get_id();
    const auto work = [&](io::context& loop) -> task<int> {
        int sum = 0;
        for (int i = 0; i != 100; ++i) {
            const auto thread = co_await (ex::schedule(pool.get_scheduler()) |
                                          ex::then([] { return std::this_thread::get_id(); }));
            if (thread != self && loop.is_current()) ++sum;
        }
        co_return sum;
    };
    EXPECT_EQ(io::run(work, here()), 100);
}

TEST_P(run_with_pool_on, a_result_may_come_from_a_pool) {
    for (int i = 0; i != 200; ++i) {
        EXPECT_EQ(io::run(ex::schedule(pool.get_scheduler()) | ex::then([] { return 7; }), here()),
                  7);
        EXPECT_THROW(io::run(ex::schedule(pool.get_scheduler()) | ex::then([]() -> int {
                                 throw std::system_error(EIO, std::system_category());
                             }),
                             here()),
                     std::system_error);
    }
}

TEST_P(run_with_pool_on, work_that_a_pool_left_on_the_loop_is_waited_for) {
    bool waited = false;
    const auto work = [&](io::context& loop) {
        return ex::schedule(pool.get_scheduler()) | ex::then([&] {
                   io::timer(loop).wait_for(2ms, [&](std::error_code) { waited = true; });
                   return 7;
               });
    };
    EXPECT_EQ(io::run(work, here()), 7);
    EXPECT_TRUE(waited);
}

TEST_P(run_with_pool_on, a_task_on_a_pool_has_the_loops_timers) {
    const auto late = [](io::context& loop) -> task<bool> {
        EXPECT_FALSE(loop.is_current());
        try {
            co_await ex::timeout(for_ever(loop), 2ms);
        } catch (const std::system_error& error) {
            co_return !loop.is_current() && error.code() == std::errc::timed_out;
        }
        co_return false;
    };
    const auto at_once = [&](io::context& loop) {
        return ex::starts_on(pool.get_scheduler(), late(loop));
    };
    EXPECT_EQ(io::run(at_once, here()), true);
    const auto awaited = [&](io::context& loop) -> task<bool> {
        co_return co_await ex::starts_on(pool.get_scheduler(), late(loop));
    };
    EXPECT_EQ(io::run(awaited, here()), true);
}

TEST_P(run_with_pool_on, a_task_on_another_loop_has_that_loops_timers) {
    io::context_pool others(1, io::backend::epoll);
    const auto which = [&]() -> task<bool> {
        const auto timers = co_await ex::read_env(ex::get_timed_scheduler);
        co_return timers == ex::any_scheduler(others.at(0).get_scheduler());
    };
    EXPECT_EQ(io::run(ex::starts_on(others.at(0).get_scheduler(), which()), here()), true);
}

TEST_P(run_with_pool_on, a_stop_reaches_what_runs_on_a_pool) {
    const auto work = [&](io::context& loop) -> task<int> {
        ::raise(SIGUSR1);
        co_await ex::when_all(ex::starts_on(pool.get_scheduler(), for_ever(loop)),
                              ex::starts_on(pool.get_scheduler(), for_ever(loop)));
        co_return 7;
    };
    for (int i = 0; i != 50; ++i) {
        EXPECT_EQ(io::run(work, {.stop_on = {SIGUSR1}, .backend = GetParam()}), std::nullopt);
    }
}

TEST_P(run_with_pool_on, a_pools_threads_may_run_loops) {
    const auto on_loop = [](io::context& loop) -> task<int> {
        co_await io::timer(loop).wait_for(1ms);
        co_return 7;
    };
    const int sum = pool.run([&] { return *io::run(on_loop, here()); });
    EXPECT_EQ(sum, 7);
}

}  // namespace
