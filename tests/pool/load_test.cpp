// Pools under load: a million tasks from outside, more workers than processors, pools in pools.
#include <coppice/pool/contract_pool.hpp>
#include <coppice/pool/parallel.hpp>
#include <coppice/pool/queue_pool.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/task/task.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

namespace ex = coppice::execution;
using namespace coppice;
using namespace coppice::internal;
using coppice::this_thread::sync_wait;

task<> count_one(thread_pool& pool, atomic<int>& ran) {
    if (pool.is_current()) ran.fetch_add(1, relaxed);
    co_return;
}

TEST(pool_load, a_million_tasks_from_outside_threads_each_end_once_on_the_pool) {
    constexpr int each = 500'000;
    atomic<int> ran{0};
    ex::counting_scope scope;
    thread_pool pool(2);
    std::vector<std::thread> foreign;
    for (int t = 0; t != 2; ++t) {
        foreign.emplace_back([&] {
            for (int i = 0; i != each; ++i) {
                ex::spawn(ex::starts_on(pool.get_scheduler(), count_one(pool, ran)) |
                              ex::upon_error([](std::exception_ptr) noexcept {}),
                          scope.get_token());
            }
        });
    }
    for (std::thread& t : foreign) t.join();
    sync_wait(scope.join());
    EXPECT_EQ(ran.load(relaxed), 2 * each);
}

TEST(pool_load, sixteen_workers_on_few_processors_all_take_part_and_lose_nothing) {
    thread_pool pool(16);
    for (int round = 0; round != 20; ++round) {
        atomic<int> there{0};
        // An index for each worker: no call returns before all have begun.
        EXPECT_TRUE(pool.run([&] {
            return parallel_for(0, 16, [&](int) {
                there.fetch_add(1, relaxed);
                while (there.load(relaxed) < 16) std::this_thread::yield();
            });
        }));
        EXPECT_EQ(there.load(relaxed), 16);
    }
    EXPECT_EQ(pool.run([] {
        return parallel_reduce(
            0l, 1'000'000, 0l, [](long i) { return i; }, [](long a, long b) { return a + b; });
    }),
              499'999'500'000l);
}

// A worker of a pool may make, use, and destroy another pool.
TEST(pool_load, a_worker_may_make_use_and_destroy_another_pool) {
    thread_pool outer(2);
    const auto sum = [] {
        return parallel_reduce(
            0, 1000, 0, [](int i) { return i; }, [](int a, int b) { return a + b; });
    };
    for (int round = 0; round != 50; ++round) {
        EXPECT_EQ(outer.run([&] {
            thread_pool inner(2);
            const auto [a, b] = fork_join([&] { return inner.run(sum); }, [&] { return sum(); });
            return a + b;
        }),
                  2 * 499'500);
    }
    queue_pool<lockfree_queue> other(1);
    EXPECT_TRUE(outer.run(
        [&] { return other.run([&] { return other.is_current() && !outer.is_current(); }); }));
}

TEST(pool_load, an_exception_crosses_pools) {
    thread_pool outer(2);
    queue_pool<mutex_queue> inner(1);
    for (int round = 0; round != 100; ++round) {
        EXPECT_THROW(outer.run([&] {
            fork_join([&] { inner.run([] { throw std::runtime_error("inner"); }); }, [] {});
        }),
                     std::runtime_error);
    }
}

struct counting_item : work_item {
    explicit counting_item(atomic<int>& c) : work_item(&count), counter(c) {}
    static void count(work_item* item) noexcept {
        static_cast<counting_item*>(item)->counter.fetch_add(1, relaxed);
    }
    atomic<int>& counter;
};

// The only worker is busy until the destructor waits, so all items are still queued.
TEST(pool_load, the_destructor_runs_a_full_queue_once) {
    constexpr int count = 10'000;
    atomic<int> ran{0};
    atomic<bool> go_on{false};
    std::vector<std::unique_ptr<counting_item>> items;
    for (int i = 0; i != count; ++i) items.push_back(std::make_unique<counting_item>(ran));
    std::thread releaser;
    {
        thread_pool pool(1);
        ex::counting_scope scope;
        ex::spawn(ex::schedule(pool.get_scheduler()) | ex::then([&]() noexcept {
                      while (!go_on.load(relaxed)) std::this_thread::yield();
                  }),
                  scope.get_token());
        for (auto& each : items) pool.submit(*each);
        EXPECT_EQ(ran.load(relaxed), 0);
        pool.request_stop();
        releaser = std::thread([&] { go_on.store(true, relaxed); });
        sync_wait(scope.join());
    }
    releaser.join();
    EXPECT_EQ(ran.load(relaxed), count);
}

}  // namespace
