// pool/thread_pool.hpp: every item runs once; results, exceptions, sleep, and the end.
#include <coppice/pool/thread_pool.hpp>

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/stop_token.hpp>
#include <coppice/task/task.hpp>

#include "allocations.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using coppice::thread_pool;
using coppice::internal::work_item;

struct counting_item : work_item {
    explicit counting_item(coppice::internal::atomic<int>& c) : work_item(&count), counter(c) {}
    static void count(work_item* item) noexcept {
        static_cast<counting_item*>(item)->counter.fetch_add(1, coppice::internal::relaxed);
    }
    coppice::internal::atomic<int>& counter;
};

// Splits itself into two until nothing is left to split.
struct splitting_item : work_item {
    splitting_item(thread_pool& p, coppice::internal::atomic<int>& l, int n)
        : work_item(&split), pool(p), leaves(l), depth(n) {}
    static void split(work_item* item) noexcept {
        splitting_item* const self = static_cast<splitting_item*>(item);
        if (self->depth == 0) {
            self->leaves.fetch_add(1, coppice::internal::relaxed);
        } else {
            for (int i = 0; i != 2; ++i) {
                self->pool.submit(*new splitting_item(self->pool, self->leaves, self->depth - 1));
            }
        }
        delete self;
    }
    thread_pool& pool;
    coppice::internal::atomic<int>& leaves;
    int depth;
};

TEST(thread_pool, zero_threads_is_an_error) {
    EXPECT_THROW(thread_pool pool(0), std::invalid_argument);
    EXPECT_GE(thread_pool::hardware(), 1u);
}

TEST(thread_pool, the_destructor_runs_everything_that_was_submitted_once) {
    constexpr int count = 20'000;
    coppice::internal::atomic<int> ran{0};
    std::vector<std::unique_ptr<counting_item>> items;
    for (int i = 0; i != count; ++i) items.push_back(std::make_unique<counting_item>(ran));
    {
        thread_pool pool(3);
        for (auto& i : items) pool.submit(*i);
    }
    EXPECT_EQ(ran.load(coppice::internal::relaxed), count);
}

TEST(thread_pool, many_threads_submit_at_once) {
    constexpr int each = 5000;
    coppice::internal::atomic<int> ran{0};
    std::vector<std::unique_ptr<counting_item>> items;
    for (int i = 0; i != 4 * each; ++i) items.push_back(std::make_unique<counting_item>(ran));
    {
        thread_pool pool(2);
        std::vector<std::thread> submitters;
        for (int t = 0; t != 4; ++t) {
            submitters.emplace_back([&, t] {
                for (int i = 0; i != each; ++i)
                    pool.submit(*items[static_cast<std::size_t>(t * each + i)]);
            });
        }
        for (auto& s : submitters) s.join();
    }
    EXPECT_EQ(ran.load(coppice::internal::relaxed), 4 * each);
}

TEST(thread_pool, work_that_overflows_a_deque_is_not_lost) {
    coppice::internal::atomic<int> leaves{0};
    {
        thread_pool pool(2);
        pool.submit(*new splitting_item(pool, leaves, 14));
    }
    EXPECT_EQ(leaves.load(coppice::internal::relaxed), 1 << 14);
}

TEST(thread_pool, run_returns_the_result_or_throws_the_exception) {
    thread_pool pool(2);
    EXPECT_EQ(pool.run([] { return 7; }), 7);
    const std::thread::id caller = std::this_thread::get_id();
    EXPECT_NE(pool.run([] { return std::this_thread::get_id(); }), caller);
    EXPECT_THROW(pool.run([]() -> int { throw std::runtime_error("lost"); }), std::runtime_error);
    bool ran = false;
    pool.run([&] { ran = true; });
    EXPECT_TRUE(ran);
}

TEST(thread_pool, run_on_a_worker_does_not_wait_for_another) {
    thread_pool pool(1);
    EXPECT_EQ(pool.run([&] { return pool.run([] { return 5; }); }), 5);
    EXPECT_FALSE(pool.is_current());
    EXPECT_TRUE(pool.run([&] { return pool.is_current(); }));
}

TEST(thread_pool, awaiting_schedule_moves_a_task_to_a_worker) {
    struct detached {
        struct promise_type {
            detached get_return_object() { return {}; }
            std::suspend_never initial_suspend() noexcept { return {}; }
            std::suspend_never final_suspend() noexcept { return {}; }
            void return_void() {}
            void unhandled_exception() { std::terminate(); }
        };
    };
    coppice::internal::atomic<int> hops{0};
    bool inside = true;
    {
        thread_pool pool(2);
        auto child = [](thread_pool& p) -> coppice::task<bool> {
            co_await p.get_scheduler().schedule();
            co_return p.is_current();
        };
        // The coroutine outlives its lambda, so the lambda captures nothing.
        auto parent = [](thread_pool& p, auto make_child, bool& all_inside,
                         coppice::internal::atomic<int>& h) -> detached {
            for (int i = 0; i != 1000; ++i) {
                const bool on_worker = co_await make_child(p);
                if (!on_worker) all_inside = false;
                h.fetch_add(1, coppice::internal::relaxed);
            }
        };
        parent(pool, child, inside, hops);
    }
    EXPECT_TRUE(inside);
    EXPECT_EQ(hops.load(coppice::internal::relaxed), 1000);
}

TEST(thread_pool, its_scheduler_is_a_senders_scheduler) {
    namespace ex = coppice::execution;
    static_assert(ex::scheduler<decltype(std::declval<thread_pool&>().get_scheduler())>);
    thread_pool pool(2), other(1);
    EXPECT_EQ(pool.get_scheduler(), pool.get_scheduler());
    EXPECT_NE(pool.get_scheduler(), other.get_scheduler());
    auto work = ex::schedule(pool.get_scheduler()) | ex::then([&] { return pool.is_current(); });
    EXPECT_EQ(coppice::this_thread::sync_wait(std::move(work)), std::tuple(true));
}

TEST(thread_pool, work_that_is_stopped_before_it_runs_completes_with_stopped) {
    namespace ex = coppice::execution;
    thread_pool pool(1);
    coppice::inplace_stop_source source;
    source.request_stop();
    auto work = ex::write_env(ex::schedule(pool.get_scheduler()),
                              ex::prop(coppice::get_stop_token, source.get_token()));
    EXPECT_EQ(coppice::this_thread::sync_wait(std::move(work)), std::nullopt);
}

TEST(thread_pool, a_task_is_a_sender_that_starts_on_the_pool) {
    namespace ex = coppice::execution;
    thread_pool pool(2);
    auto body = [](thread_pool& p) -> coppice::task<bool> {
        const bool before = p.is_current();
        co_await (ex::schedule(p.get_scheduler()) | ex::then([] {}));
        co_return before&& p.is_current();
    };
    EXPECT_EQ(coppice::this_thread::sync_wait(ex::starts_on(pool.get_scheduler(), body(pool))),
              std::tuple(true));
}

TEST(thread_pool, submitting_allocates_nothing) {
    thread_pool pool(2);
    // Waits until both workers have started, which may take a while on a busy machine.
    while (pool.counts(0).parks == 0 || pool.counts(1).parks == 0) pool.run([] {});
    const coppice::test::allocation_count count;
    for (int i = 0; i != 100; ++i) pool.run([] {});
    EXPECT_EQ(count.so_far(), 0u);
}

TEST(thread_pool, idle_workers_park) {
    thread_pool pool(2);
    // Each round lets the workers go idle. A park is counted when a worker gives up its search.
    std::uint64_t parks = 0;
    for (int i = 0; i != 10'000 && parks < 2; ++i) {
        pool.run([] {});
        std::this_thread::yield();
        parks = pool.counts(0).parks + pool.counts(1).parks;
    }
    EXPECT_GE(parks, 2u);
    std::uint64_t runs = 0;
    for (std::size_t i = 0; i != pool.size(); ++i) runs += pool.counts(i).runs;
    EXPECT_GE(runs, 1u);
}

TEST(thread_pool, items_submitted_after_request_stop_still_run) {
    coppice::internal::atomic<int> ran{0};
    std::vector<std::unique_ptr<counting_item>> items;
    for (int i = 0; i != 100; ++i) items.push_back(std::make_unique<counting_item>(ran));
    {
        thread_pool pool(2);
        pool.request_stop();
        for (auto& i : items) pool.submit(*i);
    }
    EXPECT_EQ(ran.load(coppice::internal::relaxed), 100);
}

TEST(thread_pool_death, an_index_out_of_range_stops_the_process) {
    EXPECT_DEATH(
        {
            thread_pool pool(1);
            (void)pool.counts(1);
        },
        "no such worker");
}

}  // namespace
