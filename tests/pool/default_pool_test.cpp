// pool/default_pool.hpp: made at first use, chosen before it, there until the process ends.
#include <coppice/pool/default_pool.hpp>

#include <coppice/base/internal/atomic.hpp>
#include <coppice/execution.hpp>
#include <coppice/pool/fork_join.hpp>
#include <coppice/pool/parallel.hpp>

#include "allocations.hpp"
#include "emulated.hpp"
#include "sanitizers.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <new>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <vector>

namespace {

using coppice::default_pool;
using coppice::fork_join;
using coppice::parallel_for;
using coppice::set_default_pool;
using coppice::this_thread::sync_wait;
namespace ex = coppice::execution;

TEST(default_pool, has_a_worker_for_each_processor_of_the_process) {
    EXPECT_EQ(&default_pool(), &default_pool());
    EXPECT_EQ(default_pool().size(), coppice::thread_pool::hardware());
    EXPECT_FALSE(default_pool().is_current());
}

TEST(default_pool, forks_and_loops_of_other_threads_run_on_it) {
    const auto there = [] { return default_pool().is_current(); };
    EXPECT_EQ(fork_join(there, there), std::tuple(true, true));
    EXPECT_EQ(std::get<2>(fork_join([] {}, [] {}, there)), true);
    EXPECT_TRUE(parallel_for(0, 100, [&](int) { EXPECT_TRUE(there()); }));
    EXPECT_EQ(
        coppice::parallel_reduce(
            0, 100, 0, [&](int) { return there() ? 1 : 0; }, [](int a, int b) { return a + b; }),
        100);
    coppice::thread_pool other(1);
    other.run([&] { EXPECT_EQ(fork_join(there, there), std::tuple(false, false)); });
}

TEST(default_pool, what_moves_to_it_inherits_the_stop_token) {
    coppice::inplace_stop_source source;
    const auto [all] = fork_join(source.get_token(), [&] {
        return parallel_for(0, 1'000'000'000, [&](int i) {
            EXPECT_EQ(coppice::fork_join_stop_token(), source.get_token());
            if (i == 0) source.request_stop();
        });
    });
    EXPECT_FALSE(all);
}

TEST(default_pool, exceptions_come_back_to_the_thread_that_forked) {
    EXPECT_THROW(fork_join([] { throw std::runtime_error("first"); }, [] {}), std::runtime_error);
    EXPECT_THROW(parallel_for(0, 10, [](int) { throw std::logic_error("each"); }),
                 std::logic_error);
}

TEST(default_pool, many_threads_may_be_the_first_to_use_it) {
    coppice::internal::atomic<int> calls{0};
    std::vector<std::thread> threads;
    for (int t = 0; t != 4; ++t) {
        threads.emplace_back([&] {
            parallel_for(0, 1'000, [&](int) { calls.fetch_add(1, coppice::internal::relaxed); });
        });
    }
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(calls.load(coppice::internal::relaxed), 4'000);
}

TEST(default_pool, is_chosen_before_its_first_use_only) {
    GTEST_FLAG_SET(death_test_style, coppice::test::style_of_new_process);
    EXPECT_EXIT(
        {
            set_default_pool({.threads = 3});
            std::exit(default_pool().size() == 3 ? 7 : 1);
        },
        testing::ExitedWithCode(7), "");
    EXPECT_EXIT(
        {
            coppice::thread_pool mine(1);
            set_default_pool(mine);
            std::_Exit(&default_pool() == &mine && parallel_for(0, 9, [](int) {}) ? 7 : 1);
        },
        testing::ExitedWithCode(7), "");
    EXPECT_DEATH(
        {
            default_pool();
            set_default_pool({.threads = 3});
        },
        "after the default pool was first used");
}

// Uses the pool when the process exits. Constructed before the pool is.
struct uses_it_at_exit {
    ~uses_it_at_exit() {
        const auto [a, b] = fork_join([] { return 40; }, [] { return 2; });
        std::fprintf(stderr, "at exit: %d\n", a + b);
    }
};

TEST(default_pool, destructors_of_static_objects_may_use_it_and_its_work_may_exit) {
    GTEST_FLAG_SET(death_test_style, coppice::test::style_of_new_process);
    EXPECT_EXIT(
        {
            static uses_it_at_exit made_first;
            default_pool();
            std::exit(7);
        },
        testing::ExitedWithCode(7), "at exit: 42");
    EXPECT_EXIT(default_pool().run([] { std::exit(8); }), testing::ExitedWithCode(8), "");
}

TEST(default_pool, a_child_of_fork_makes_its_own) {
    if (coppice::test::emulated) GTEST_SKIP() << coppice::test::no_threads_there;
    if (coppice::test::under_thread_sanitizer)
        GTEST_SKIP() << "the thread sanitizer lets no forked child start threads";
    default_pool();
    const pid_t child = ::fork();
    if (child == 0) {
        const auto [a, b] = fork_join([] { return 40; }, [] { return 2; });
        std::_Exit(a + b);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 42);
}

// Calls f on a thread whose first allocation fails.
template <class F>
void without_memory(F f) {
    coppice::test::fail_allocation(1);
    std::thread(f).join();
    EXPECT_TRUE(coppice::test::allocation_has_failed());
}

[[noreturn]] void fork_without_memory() {
    bool in_order = false;
    without_memory([&in_order] {
        const auto here = [caller = std::this_thread::get_id()] {
            return std::this_thread::get_id() == caller;
        };
        const auto [a, b] = fork_join(here, here);
        in_order = a && b;
    });
    without_memory([&in_order] {
        int next = 0;
        in_order =
            in_order && parallel_for(0, 9, [&next](int i) { next = i == next ? i + 1 : -1; });
        in_order = in_order && next == 9;
    });
    const auto there = [] { return default_pool().is_current(); };
    const auto [a, b] = fork_join(there, there);  // now there is memory
    std::exit(in_order && a && b ? 7 : 1);
}

TEST(default_pool, if_it_cannot_be_made_everything_runs_in_order_on_the_caller) {
    if (!coppice::test::fail_allocation(0)) GTEST_SKIP() << "operator new is the sanitizer's";
    (void)coppice::test::allocation_has_failed();
    GTEST_FLAG_SET(death_test_style, coppice::test::style_of_new_process);
    EXPECT_EXIT(fork_without_memory(), testing::ExitedWithCode(7), "");
}

TEST(default_pool, runs_the_parallel_scheduler) {
    const auto [there] = *sync_wait(ex::schedule(ex::get_parallel_scheduler()) |
                                    ex::then([] { return default_pool().is_current(); }));
    EXPECT_TRUE(there);
    EXPECT_TRUE(ex::get_parallel_scheduler() == ex::get_parallel_scheduler());
    sync_wait(ex::schedule(ex::get_parallel_scheduler()) |
              ex::bulk(ex::par, 100, [](int) { EXPECT_TRUE(default_pool().is_current()); }));
}

std::size_t threads_now() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST(default_pool, has_the_only_threads_that_the_library_starts_by_itself) {
    GTEST_FLAG_SET(death_test_style, coppice::test::style_of_new_process);
    EXPECT_EXIT(
        {
            set_default_pool({.threads = 3});
            default_pool();
            const std::size_t before = threads_now();
            sync_wait(ex::schedule(ex::get_parallel_scheduler()));
            fork_join([] {}, [] {});
            std::exit(threads_now() == before ? 7 : 1);
        },
        testing::ExitedWithCode(7), "");
}

TEST(default_pool, a_child_of_fork_runs_the_parents_parallel_scheduler_on_its_own) {
    if (coppice::test::emulated) GTEST_SKIP() << coppice::test::no_threads_there;
    if (coppice::test::under_thread_sanitizer)
        GTEST_SKIP() << "the thread sanitizer lets no forked child start threads";
    const auto of_parent = ex::get_parallel_scheduler();
    const pid_t child = ::fork();
    if (child == 0) {
        const auto [there] = *sync_wait(ex::schedule(of_parent) |
                                        ex::then([] { return default_pool().is_current(); }));
        std::_Exit(there ? 42 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 42);
}

[[noreturn]] void schedule_without_memory() {
    bool refused = true;
    for (std::size_t n = 1; refused && n != 100; ++n) {
        coppice::test::fail_allocation(n);
        std::thread([&refused] {
            try {
                ex::get_parallel_scheduler();
                refused = false;
            } catch (const std::bad_alloc&) {
            }
        }).join();
        (void)coppice::test::allocation_has_failed();
    }
    const bool ran = sync_wait(ex::schedule(ex::get_parallel_scheduler())).has_value();
    std::exit(!refused && ran ? 7 : 1);
}

TEST(default_pool, if_it_cannot_be_made_there_is_no_parallel_scheduler_yet) {
    if (!coppice::test::fail_allocation(0)) GTEST_SKIP() << "operator new is the sanitizer's";
    (void)coppice::test::allocation_has_failed();
    GTEST_FLAG_SET(death_test_style, coppice::test::style_of_new_process);
    EXPECT_EXIT(schedule_without_memory(), testing::ExitedWithCode(7), "");
}

}  // namespace
