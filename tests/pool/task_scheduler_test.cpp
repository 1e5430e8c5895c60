// Plan: task_scheduler of a pool [exec.task.scheduler]: bulk side by side on its workers, in tasks.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/bulk.hpp>
#include <coppice/exec/continues_on.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/parallel_scheduler.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/pool/parallel_backend.hpp>
#include <coppice/pool/queue_pool.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/task/task.hpp>

#include "allocations.hpp"

#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

namespace ex = coppice::execution;
using coppice::task;
using coppice::thread_pool;
using coppice::this_thread::sync_wait;

// Two calls that wait for each other; they end only if two workers make them.
template <class Pool>
class meeting {
public:
    explicit meeting(Pool& pool) noexcept : pool_(&pool) {}
    auto call() noexcept {
        return [this](std::size_t i, auto&...) {
            threads_[i] = std::this_thread::get_id();
            inside_[i] = pool_->is_current();
            both_.arrive_and_wait();
        };
    }
    void expect_two_workers() const {
        EXPECT_NE(threads_[0], threads_[1]);
        EXPECT_TRUE(inside_[0] && inside_[1]);
    }

private:
    Pool* pool_;
    std::barrier<> both_{2};
    std::array<std::thread::id, 2> threads_;
    std::array<bool, 2> inside_{};
};

constexpr std::size_t two = 2;

template <class Pool, class Scheduler>
void meets_on_two_workers(Pool& pool, Scheduler held) {
    const ex::task_scheduler sch(held);
    meeting<Pool> meet(pool);
    sync_wait(ex::schedule(sch) | ex::bulk(ex::par, two, meet.call()));
    meet.expect_two_workers();
    sync_wait(ex::schedule(sch) | ex::bulk_unchunked(ex::par_unseq, two, meet.call()));
    meet.expect_two_workers();
    sync_wait(ex::just(1) | ex::continues_on(sch) | ex::bulk(ex::par, two, meet.call()) |
              ex::then([](int) {}) | ex::bulk(ex::par, two, meet.call()));
    meet.expect_two_workers();
    sync_wait(ex::starts_on(sch, ex::just() | ex::bulk(ex::par, two, meet.call())));
    meet.expect_two_workers();
}

TEST(pool_task_scheduler, bulk_runs_side_by_side_on_the_workers_of_any_pool) {
    thread_pool pool(2);
    meets_on_two_workers(pool, pool.get_scheduler());
    meets_on_two_workers(pool,
                         ex::parallel_scheduler(std::make_shared<coppice::parallel_backend>(pool)));
    coppice::stealing_pool<coppice::kept_deques> other(2);
    meets_on_two_workers(other, other.get_scheduler());
}

task<void> bulk_after_schedule(meeting<thread_pool>& meet) {
    co_await (ex::schedule(co_await ex::read_env(ex::get_scheduler)) |
              ex::bulk(ex::par, two, meet.call()));
}
task<void> bulk_in_place(meeting<thread_pool>& meet) {
    co_await (ex::just() | ex::bulk(ex::par, two, meet.call()));
}
task<int> bulk_below(meeting<thread_pool>& meet) {
    co_await bulk_after_schedule(meet);
    co_await bulk_in_place(meet);
    co_return co_await (ex::just(7) | ex::bulk_unchunked(ex::par, two, meet.call()));
}

template <class Scheduler>
void tasks_meet(thread_pool& pool, Scheduler sch) {
    meeting<thread_pool> meet(pool);
    sync_wait(ex::starts_on(sch, bulk_after_schedule(meet)));
    meet.expect_two_workers();
    sync_wait(ex::starts_on(sch, bulk_in_place(meet)));
    meet.expect_two_workers();
    EXPECT_EQ(sync_wait(ex::starts_on(sch, bulk_below(meet))), std::tuple(7));
}

TEST(pool_task_scheduler, bulk_in_a_task_runs_side_by_side) {
    thread_pool pool(2);
    tasks_meet(pool, pool.get_scheduler());
    tasks_meet(pool, ex::task_scheduler(pool.get_scheduler()));
    tasks_meet(pool, ex::task_scheduler(ex::parallel_scheduler(
                         std::make_shared<coppice::parallel_backend>(pool))));
}

task<void> bulk_after_a_move(meeting<thread_pool>& meet, thread_pool& pool) {
    co_await ex::change_coroutine_scheduler(ex::task_scheduler(pool.get_scheduler()));
    co_await bulk_in_place(meet);
}

TEST(pool_task_scheduler, bulk_in_a_task_follows_it_to_another_pool) {
    thread_pool pool(2);
    meeting<thread_pool> meet(pool);
    sync_wait(bulk_after_a_move(meet, pool));
    meet.expect_two_workers();
}

task<std::vector<int>> order_in_a_task() {
    std::vector<int> order;
    co_await (ex::just() | ex::bulk(ex::par, 5, [&](int i) { order.push_back(i); }));
    co_await (ex::just() | ex::bulk_unchunked(ex::par, 5, [&](int i) { order.push_back(i); }));
    co_return order;
}

TEST(pool_task_scheduler, bulk_in_a_task_on_a_loop_runs_in_order) {
    EXPECT_EQ(sync_wait(order_in_a_task()),
              std::tuple(std::vector<int>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
}

TEST(pool_task_scheduler, bulk_calls_each_index_once_and_passes_the_values_on) {
    thread_pool pool(2);
    const ex::task_scheduler sch(pool.get_scheduler());
    std::vector<int> calls(10'000);
    for (int round = 0; round != 50; ++round) {
        const auto result = sync_wait(
            ex::schedule(sch) | ex::then([] { return std::make_unique<int>(7); }) |
            ex::bulk(ex::par, calls.size(), [&](std::size_t i, const auto& v) { calls[i] += *v; }));
        ASSERT_TRUE(result);
        EXPECT_EQ(*std::get<0>(*result), 7);
    }
    for (const int n : calls) ASSERT_EQ(n, 350);
}

TEST(pool_task_scheduler, bulk_allocates_nothing) {
    thread_pool pool(2);
    const ex::task_scheduler sch(pool.get_scheduler());
    const auto work = [&] {
        sync_wait(ex::schedule(sch) | ex::bulk(ex::par, 100, [](int) noexcept {}) |
                  ex::bulk_unchunked(ex::par, 100, [](int) noexcept {}));
    };
    // The state is steady once each worker has begun, which may take a while.
    std::size_t allocated = 1;
    for (int round = 0; round != 1000 && allocated != 0; ++round) {
        const coppice::test::allocation_count count;
        work();
        allocated = count.so_far();
    }
    EXPECT_EQ(allocated, 0u);
}

task<void> fails() {
    co_await (ex::just() | ex::bulk(ex::par, 100, [](int i) {
                  if (i == 50) throw std::runtime_error("fifty");
              }));
}

TEST(pool_task_scheduler, an_exception_is_the_error_and_a_stop_request_ends_it) {
    thread_pool pool(2);
    const ex::task_scheduler sch(pool.get_scheduler());
    EXPECT_THROW(sync_wait(ex::starts_on(sch, fails())), std::runtime_error);
    EXPECT_THROW(sync_wait(ex::schedule(sch) | ex::bulk_unchunked(ex::par, 100,
                                                                  [](int i) {
                                                                      if (i == 50) throw i;
                                                                  })),
                 int);
    coppice::inplace_stop_source source;
    auto work =
        ex::schedule(sch) | ex::bulk(ex::par, 2'000'000'000, [&](int) { source.request_stop(); });
    EXPECT_EQ(sync_wait(ex::write_env(std::move(work),
                                      ex::prop(coppice::get_stop_token, source.get_token()))),
              std::nullopt);
}

TEST(pool_task_scheduler, a_stop_request_in_the_last_call_does_not_overtake_the_result) {
    thread_pool pool(2);
    coppice::inplace_stop_source source;
    coppice::internal::atomic<int> calls{0};
    auto work =
        ex::schedule(ex::task_scheduler(pool.get_scheduler())) | ex::bulk(ex::par, 50, [&](int) {
            if (calls.fetch_add(1, coppice::internal::relaxed) == 49) source.request_stop();
        });
    EXPECT_TRUE(sync_wait(
        ex::write_env(std::move(work), ex::prop(coppice::get_stop_token, source.get_token()))));
    EXPECT_EQ(calls.load(coppice::internal::relaxed), 50);
}

}  // namespace
