// Tasks on a pool: wait_for_tasks side by side, ends elsewhere, exceptions, stops, affinity.
#include <coppice/pool/thread_pool.hpp>
#include <coppice/task/wait_for_tasks.hpp>

#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/io/context.hpp>
#include <coppice/pool/queue_pool.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

namespace {

namespace ex = coppice::execution;
using coppice::task;
using coppice::thread_pool;
using coppice::wait_for_tasks;
using coppice::this_thread::sync_wait;

task<long> fib(int n) {
    if (n < 2) co_return n;
    const auto [a, b] = co_await wait_for_tasks(fib(n - 1), fib(n - 2));
    co_return a + b;
}

template <class T>
auto on(thread_pool& pool, task<T> t) {
    return sync_wait(ex::starts_on(pool.get_scheduler(), std::move(t)));
}

TEST(pool_tasks, recursion_returns_what_the_plain_function_returns) {
    for (const std::size_t threads : {1u, 2u, 4u, 16u}) {
        thread_pool pool(threads);
        for (int round = 0; round != 20; ++round) EXPECT_EQ(on(pool, fib(16)), std::tuple(987L));
    }
}

TEST(pool_tasks, wait_for_tasks_runs_children_on_idle_workers) {
    thread_pool pool(3);
    for (int round = 0; round != 100; ++round) {
        coppice::internal::atomic<int> there{0};
        auto come = [](coppice::internal::atomic<int>& all) -> task<> {
            all.fetch_add(1, coppice::internal::relaxed);
            while (all.load(coppice::internal::relaxed) < 3) std::this_thread::yield();
            co_return;
        };
        auto body = [&]() -> task<> {
            co_await wait_for_tasks(come(there), come(there), come(there));
        };
        EXPECT_TRUE(on(pool, body()));
    }
}

// Notes where it runs, and gives idle workers time to ask for work and to take some.
task<> notes_its_thread(coppice::internal::atomic<int>& elsewhere, std::thread::id home,
                        int depth) {
    if (std::this_thread::get_id() != home) elsewhere.fetch_add(1, coppice::internal::relaxed);
    for (int i = 0; i != 50; ++i) std::this_thread::yield();
    if (depth == 0) co_return;
    co_await wait_for_tasks(notes_its_thread(elsewhere, home, depth - 1),
                            notes_its_thread(elsewhere, home, depth - 1),
                            notes_its_thread(elsewhere, home, depth - 1));
}
template <class Run>
int run_elsewhere(Run run) {
    coppice::internal::atomic<int> elsewhere{0};
    run([&]() -> task<> { co_await notes_its_thread(elsewhere, std::this_thread::get_id(), 5); });
    return elsewhere.load(coppice::internal::relaxed);
}

// A loop that a worker runs is confined to that worker's thread, as are its tasks.
TEST(pool_tasks, children_of_a_task_on_another_scheduler_are_not_offered_to_the_pool) {
    thread_pool pool(4);
    const int in_sync_wait =
        run_elsewhere([&](auto make) { pool.run([&] { sync_wait(make()); }); });
    EXPECT_EQ(in_sync_wait, 0);
    const int on_a_run_loop = run_elsewhere([&](auto make) {
        ex::run_loop loop;
        std::thread waiting([&] {
            sync_wait(ex::starts_on(loop.get_scheduler(), make()));
            loop.finish();
        });
        pool.run([&] { loop.run(); });
        waiting.join();
    });
    EXPECT_EQ(on_a_run_loop, 0);
    const int on_an_io_context = run_elsewhere([&](auto make) {
        coppice::io::context loop;
        std::optional<coppice::io::context::work_guard> guard(std::in_place, loop);
        std::thread waiting([&] {
            sync_wait(ex::starts_on(loop.get_scheduler(), make()));
            guard.reset();
        });
        pool.run([&] { loop.run(); });
        waiting.join();
    });
    EXPECT_EQ(on_an_io_context, 0);
    thread_pool other(1);
    const int on_a_pool_of_one_thread = run_elsewhere([&](auto make) { on(other, make()); });
    EXPECT_EQ(on_a_pool_of_one_thread, 0);
}

TEST(pool_tasks, children_are_offered_whatever_type_the_scheduler_has) {
    using queue = coppice::queue_pool<coppice::mutex_queue>;
    thread_pool pool(2);
    queue slow(2);
    EXPECT_NE(ex::internal::team_of(pool.get_scheduler()), nullptr);
    EXPECT_EQ(ex::internal::team_of(pool.get_scheduler()),
              ex::internal::team_of(pool.get_scheduler(0)));
    EXPECT_EQ(ex::internal::team_of(ex::task_scheduler(pool.get_scheduler())),
              ex::internal::team_of(pool.get_scheduler()));
    EXPECT_NE(ex::internal::team_of(slow.get_scheduler()), nullptr);
    EXPECT_NE(ex::internal::team_of(slow.get_scheduler()),
              ex::internal::team_of(pool.get_scheduler()));
    EXPECT_EQ(ex::internal::team_of(ex::task_scheduler(ex::inline_scheduler())), nullptr);
}

// Children that leave the worker halfway, while their siblings are in its deque.
TEST(pool_tasks, the_worker_runs_the_siblings_of_a_child_that_suspends) {
    thread_pool pool(2), other(1);
    auto away = [](thread_pool& elsewhere, int n) -> task<int> {
        for (int i = 0; i != n; ++i) {
            co_await (ex::schedule(elsewhere.get_scheduler()) | ex::then([] {}));
        }
        co_return n;
    };
    auto body = [&](auto self, int depth) -> task<int> {
        if (depth == 0) co_return co_await away(other, 2);
        const auto [a, b, c] = co_await wait_for_tasks(
            self(self, depth - 1), away(other, depth % 3), self(self, depth - 1));
        co_return a + b + c;
    };
    int expected = 0;
    for (int round = 0; round != 10; ++round) {
        const auto got = on(pool, body(body, 5));
        ASSERT_TRUE(got);
        if (round == 0) expected = std::get<0>(*got);
        EXPECT_EQ(std::get<0>(*got), expected);
    }
    EXPECT_GT(expected, 64);
}

TEST(pool_tasks, exceptions_and_stops_cross_workers) {
    thread_pool pool(2);
    auto throws = [](int n) -> task<int> {
        if (n % 3 == 0) throw std::runtime_error("third");
        co_return n;
    };
    auto sum = [&]() -> task<int> {
        int caught = 0;
        for (int i = 0; i != 300; ++i) {
            try {
                co_await wait_for_tasks(throws(i), throws(i + 1));
            } catch (const std::runtime_error&) {
                ++caught;
            }
        }
        co_return caught;
    };
    EXPECT_EQ(on(pool, sum()), std::tuple(200));
    auto stops = [](bool really) -> task<> {
        if (really) co_await ex::just_stopped();
    };
    auto stopped = [&]() -> task<> { co_await wait_for_tasks(stops(false), stops(true)); };
    for (int i = 0; i != 100; ++i) EXPECT_EQ(on(pool, stopped()), std::nullopt);
}

TEST(pool_tasks, a_task_stays_on_the_pool_whatever_it_awaits) {
    thread_pool pool(2), other(1);
    auto body = [&]() -> task<bool> {
        bool at_home = true;
        for (int i = 0; i != 100; ++i) {
            co_await ex::schedule(other.get_scheduler());
            at_home = at_home && pool.is_current();
        }
        co_return at_home;
    };
    EXPECT_EQ(on(pool, body()), std::tuple(true));
    auto both = [&]() -> task<bool> {
        const auto [a, b] = co_await wait_for_tasks(body(), body());
        co_return a&& b&& pool.is_current();
    };
    EXPECT_EQ(on(pool, both()), std::tuple(true));
}

TEST(pool_tasks, when_all_runs_tasks_on_the_pool) {
    thread_pool pool(2);
    auto where = [](thread_pool& p) -> task<bool> { co_return p.is_current(); };
    auto both = ex::when_all(ex::starts_on(pool.get_scheduler(), where(pool)),
                             ex::starts_on(pool.get_scheduler(), where(pool)));
    EXPECT_EQ(sync_wait(std::move(both)), std::tuple(true, true));
}

// Every few calls go to another pool halfway, so that chains are detached while their parents
// continue to call. With Env = anywhere they also end there.
struct anywhere {
    using scheduler_type = ex::inline_scheduler;
};
template <class Env>
task<long, Env> wandering_fib(thread_pool& other, int n) {
    if (n < 2) {
        if (n == 0) co_await other.get_scheduler().schedule();
        co_return n;
    }
    if (n % 3 == 0) {
        const long a = co_await wandering_fib<Env>(other, n - 1);
        co_return a + co_await wandering_fib<Env>(other, n - 2);
    }
    if (n % 5 == 0) co_await other.get_scheduler().schedule();
    task<long, Env> kept = wandering_fib<Env>(other, n - 2);
    const auto [a] = co_await wait_for_tasks(wandering_fib<Env>(other, n - 1), kept);
    co_return a + std::move(kept).get();
}

TEST(pool_tasks, calls_that_are_detached_halfway_end_once_and_keep_their_results) {
    for (const std::size_t threads : {1u, 2u, 4u}) {
        thread_pool pool(threads), other(2);
        for (int round = 0; round != 10; ++round) {
            EXPECT_EQ(on(pool, wandering_fib<ex::env<>>(other, 12)), std::tuple(144L));
            EXPECT_EQ(
                sync_wait(ex::starts_on(pool.get_scheduler(), wandering_fib<anywhere>(other, 12))),
                std::tuple(144L));
        }
    }
}

}  // namespace
