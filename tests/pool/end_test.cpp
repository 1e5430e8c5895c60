// Work submitted to a pool or a group that was told to end: it runs once, and no thread waits.
#include <coppice/contract/blocking_group.hpp>
#include <coppice/exec/bulk.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/pool/contract_pool.hpp>
#include <coppice/pool/fork_join.hpp>
#include <coppice/pool/parallel.hpp>
#include <coppice/pool/parallel_backend.hpp>
#include <coppice/pool/queue_pool.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/task/task.hpp>
#include <coppice/task/wait_for_tasks.hpp>
#include <coppice/token/block.hpp>
#include <coppice/token/transform.hpp>

#include "sanitizers.hpp"
#include "small_stack.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
namespace ex = coppice::execution;
using this_thread::sync_wait;

template <class Pool>
class ended : public testing::Test {};
using every_pool = testing::Types<thread_pool, queue_pool<mutex_queue>, queue_pool<lockfree_queue>,
                                  stealing_pool<mutex_deques>, stealing_pool<kept_deques>,
                                  stealing_pool<counted_deques>, contract_pool>;
TYPED_TEST_SUITE(ended, every_pool);

template <class Pool>
task<int> hops(Pool& pool, int n) {
    int sum = 0;
    for (int i = 0; i != n; ++i) {
        co_await pool.get_scheduler().schedule();
        sum += i;
    }
    co_return sum;
}
template <class Pool>
task<int> forks(Pool& pool, int n) {
    co_await pool.get_scheduler().schedule();
    if (n < 2) co_return n;
    const auto [a, b] = co_await ex::wait_for_tasks(forks(pool, n - 1), forks(pool, n - 2));
    co_return a + b;
}

// Every kind of submission, by a thread that is not a worker of the pool.
template <class Pool>
void submit_all_kinds(Pool& pool) {
    const auto here = std::this_thread::get_id();
    const auto sch = pool.get_scheduler();
    EXPECT_EQ(pool.run([] { return std::this_thread::get_id(); }), here);
    EXPECT_THROW(pool.run([] { throw std::runtime_error("thrown"); }), std::runtime_error);
    EXPECT_EQ(pool.run([&] { return pool.run([&] { return pool.run([] { return 3; }); }); }), 3);
    EXPECT_EQ(sync_wait(ex::schedule(sch) | ex::then([] { return std::this_thread::get_id(); })),
              std::tuple(here));
    EXPECT_EQ(sync_wait(ex::starts_on(sch, hops(pool, 10'000))), std::tuple(49'995'000));
    EXPECT_EQ(sync_wait(ex::starts_on(sch, forks(pool, 10))), std::tuple(55));
    EXPECT_TRUE(sync_wait(ex::when_all(ex::schedule(sch), ex::schedule(sch))).has_value());
    int calls = 0;
    EXPECT_TRUE(sync_wait(ex::schedule(sch) | ex::bulk(ex::par, 100, [&](int) { ++calls; })));
    EXPECT_EQ(calls, 100);
    atomic<int> forked{0};  // on the default pool
    pool.run([&] {
        const auto call = [&] { forked.fetch_add(1, relaxed); };
        fork_join(call, call);
        parallel_for(0, 100, [&](int) { call(); });
    });
    EXPECT_EQ(forked.load(relaxed), 102);
    // An item that blocks for the next one, which it has submitted.
    const auto [nested] = *sync_wait(
        ex::schedule(sch) | ex::then([&] {
            return std::get<0>(*sync_wait(ex::schedule(sch) | ex::then([] { return 5; })));
        }));
    EXPECT_EQ(nested, 5);
    // A stop request still has an effect.
    inplace_stop_source source;
    source.request_stop();
    EXPECT_FALSE(
        sync_wait(ex::write_env(ex::schedule(sch), ex::prop(get_stop_token, source.get_token())))
            .has_value());
}

TYPED_TEST(ended, runs_every_kind_of_submission_on_its_caller) {
    for (const std::size_t threads : {1u, 2u, 4u}) {
        TypeParam pool(threads);
        pool.run([] {});
        pool.request_stop();
        submit_all_kinds(pool);
        pool.request_stop();
        submit_all_kinds(pool);
    }
}

// Levels that block for the next one. Each has a frame of `Bytes` bytes, and waits by `Wait`.
template <std::size_t Bytes, class Wait>
int nested(const Wait& wait, int levels) {
    // Allocated in the frame and kept there, whatever sanitizer or optimization is used.
    void* const frame = __builtin_alloca(Bytes);
    asm volatile("" : : "r"(frame) : "memory");
    if (levels == 0) return 0;
    int below = 0;
    wait([&] { below = nested<Bytes>(wait, levels - 1); });
    return below + 1;
}

// A receiver that calls a function when its operation has ended.
template <class Done>
struct tells {
    using receiver_concept = ex::receiver_tag;
    Done done;
    void set_value() noexcept { done(); }
    void set_error(const std::exception_ptr&) noexcept { done(); }
    void set_stopped() noexcept { done(); }
};
// Starts the sender and waits for it by means that the library does not see.
template <class Sender>
void wait_elsewhere(Sender sender) {
    std::promise<void> promise;
    const auto done = [&promise]() noexcept { promise.set_value(); };
    auto op = ex::connect(std::move(sender), tells<decltype(done)>{done});
    ex::start(op);
    promise.get_future().wait();
}
// An operation of a completion token that calls f on the scheduler and completes there.
template <class Scheduler, class F>
void block_for(const Scheduler& sch, F f) {
    ex::counting_scope scope;
    completion_token_transform<void(std::error_code)>(block, [&](completion<> done) noexcept {
        const auto call = [f, done]() mutable noexcept {
            f();
            std::move(done)(std::error_code());
        };
        ex::spawn(ex::schedule(sch) | ex::then(call), scope.get_token());
    });
    sync_wait(scope.join());
}

// However a thread waits for what it submits to an ended pool, and however deep, it runs.
TYPED_TEST(ended, a_hundred_levels_may_block_for_each_other) {
    test::on_a_stack_of(8 << 20, [] {
        TypeParam pool(2);
        thread_pool other(2);
        pool.request_stop();
        const auto sch = pool.get_scheduler();
        const auto by_sync_wait = [&](auto f) { sync_wait(ex::schedule(sch) | ex::then(f)); };
        const auto by_task = [&](auto f) {
            sync_wait([](auto s, auto call) -> task<void> {
                co_await s.schedule();
                call();
            }(sch, f));
        };
        const auto by_block = [&](auto f) { block_for(sch, f); };
        const auto by_run = [&](auto f) { pool.run(f); };
        // The workers of another pool wait for what this thread has submitted here.
        const auto by_another = [&](auto f) {
            std::promise<void> promise;
            ex::counting_scope scope;
            ex::spawn(ex::schedule(sch) | ex::then([&]() noexcept {
                          f();
                          promise.set_value();
                      }),
                      scope.get_token());
            other.run([&] { promise.get_future().wait(); });
            sync_wait(scope.join());
        };
        const auto by_a_future = [&](auto f) { wait_elsewhere(ex::schedule(sch) | ex::then(f)); };
        EXPECT_EQ(nested<1>(by_sync_wait, 100), 100);
        EXPECT_EQ(nested<1>(by_task, 100), 100);
        EXPECT_EQ(nested<1>(by_block, 100), 100);
        EXPECT_EQ(nested<1>(by_run, 100), 100);
        EXPECT_EQ(nested<1>(by_another, 100), 100);
        EXPECT_EQ(nested<1>(by_a_future, 100), 100);
        // Frames for which there is soon no room: deferred items run when the thread would sleep.
        EXPECT_EQ(nested<24'000>(by_sync_wait, 100), 100);
        EXPECT_EQ(nested<24'000>(by_task, 100), 100);
        EXPECT_EQ(nested<24'000>(by_block, 100), 100);
        EXPECT_EQ(nested<(3 << 19)>(by_another, 2), 2);
    });
}

TYPED_TEST(ended, ten_thousand_flat_operations_need_a_small_stack) {
    test::on_a_stack_of(test::sanitized ? 1 << 20 : 1 << 17, [] {
        TypeParam pool(2);
        pool.request_stop();
        const auto sch = pool.get_scheduler();
        int runs = 0;
        for (int i = 0; i != 10'000; ++i) sync_wait(ex::schedule(sch) | ex::then([&] { ++runs; }));
        EXPECT_EQ(runs, 10'000);
        EXPECT_EQ(sync_wait(hops(pool, 10'000)), std::tuple(49'995'000));
        // Each operation submits the next one and does not wait for it.
        ex::counting_scope scope;
        struct submitting {
            decltype(sch) scheduler;
            ex::counting_scope& scope;
            int& left;
            void operator()() const noexcept {
                if (--left != 0) {
                    ex::spawn(ex::schedule(scheduler) | ex::then(*this), scope.get_token());
                }
            }
        };
        submitting{sch, scope, runs}();
        sync_wait(scope.join());
        EXPECT_EQ(runs, 0);
    });
}

TYPED_TEST(ended, items_run_by_the_caller_do_not_inherit_its_token) {
    TypeParam pool(2);
    pool.request_stop();
    inplace_stop_source source;
    fork_join(source.get_token(), [&] {
        EXPECT_TRUE(fork_join_stop_token().stop_possible());
        EXPECT_FALSE(pool.run([] { return fork_join_stop_token().stop_possible(); }));
        sync_wait(ex::schedule(pool.get_scheduler()) |
                  ex::then([] { EXPECT_FALSE(fork_join_stop_token().stop_possible()); }));
    });
}

// A worker that its item holds up does not make another thread wait.
TYPED_TEST(ended, run_does_not_wait_for_a_busy_worker) {
    TypeParam pool(2);
    atomic<int> held{0};
    atomic<bool> go{false};
    const auto hold = [&] {
        pool.run([&] {
            held.fetch_add(1, relaxed);
            while (!go.load(relaxed)) std::this_thread::yield();
        });
    };
    std::thread first(hold), second(hold);
    while (held.load(relaxed) != 2) std::this_thread::yield();
    pool.request_stop();
    pool.run([&] { go.store(true, relaxed); });
    first.join();
    second.join();
}

// Workers run what they submit while the pool ends, even the last item that any of them submits.
TYPED_TEST(ended, a_task_that_continues_while_the_pool_ends_completes) {
    for (int round = 0; round != 20; ++round) {
        auto pool = std::make_unique<TypeParam>(2);
        std::thread waiting([&] {
            EXPECT_EQ(sync_wait(ex::starts_on(pool->get_scheduler(), hops(*pool, 100))),
                      std::tuple(4950));
        });
        pool->request_stop();
        waiting.join();
    }
}

// Submissions race with the request. Each runs once, before the pool is gone.
TYPED_TEST(ended, nothing_is_lost_between_a_submission_and_the_request) {
    for (const std::size_t threads : {2u, 4u}) {
        for (int round = 0; round != 20; ++round) {
            auto pool = std::make_unique<TypeParam>(threads);
            atomic<int> ran{0}, ready{0};
            std::vector<std::thread> callers;
            for (int c = 0; c != 3; ++c) {
                callers.emplace_back([&, c] {
                    ready.fetch_add(1, relaxed);
                    while (ready.load(relaxed) != 4) std::this_thread::yield();
                    for (int i = 0; i != 10; ++i) {
                        if ((c + i) % 2 == 0) {
                            pool->run([&] { ran.fetch_add(1, relaxed); });
                        } else {
                            sync_wait(ex::schedule(pool->get_scheduler()) |
                                      ex::then([&] { ran.fetch_add(1, relaxed); }));
                        }
                    }
                });
            }
            ready.fetch_add(1, relaxed);
            while (ready.load(relaxed) != 4) std::this_thread::yield();
            for (int i = 0; i != round * 10; ++i) spin_hint();
            pool->request_stop();
            for (std::thread& each : callers) each.join();
            pool.reset();
            EXPECT_EQ(ran.load(relaxed), 30);
        }
    }
}

// The completion of the last operation lets another thread destroy the pool, while the submitter is
// about to return.
TYPED_TEST(ended, the_pool_may_be_destroyed_as_soon_as_the_last_call_has_run) {
    for (int round = 0; round != 50; ++round) {
        auto pool = std::make_unique<TypeParam>(2);
        atomic<bool> done{false};
        std::thread caller([&, raw = pool.get()] {
            sync_wait(ex::schedule(raw->get_scheduler()) |
                      ex::then([&] { done.store(true, release); }));
        });
        if (round % 2 == 0) pool->request_stop();
        while (!done.load(acquire)) std::this_thread::yield();
        pool.reset();
        caller.join();
    }
}

// Runs a function in the destructor of a thread_local object, on the thread that arms it.
class at_thread_exit {
public:
    static void arm(std::function<void()> f) { words().run = std::move(f); }

private:
    struct last_words {
        ~last_words() {
            if (run) run();
        }
        std::function<void()> run;
    };
    static last_words& words() {
        thread_local last_words instance;
        return instance;
    }
};

// The worker has then left its loop, and no longer looks at its deque.
TYPED_TEST(ended, an_item_submitted_by_a_thread_local_destructor_runs_on_that_worker) {
    int ran = 0;
    int joined = 0;
    ex::counting_scope scope;
    {
        TypeParam pool(1);
        pool.run([&] {
            at_thread_exit::arm([&] {
                ex::spawn(ex::schedule(pool.get_scheduler()) | ex::then([&]() noexcept { ++ran; }),
                          scope.get_token());
                pool.run([&] { ++ran; });
                joined = std::get<0>(*sync_wait(forks(pool, 5)));
            });
        });
    }
    sync_wait(scope.join());
    EXPECT_EQ(ran, 2);
    EXPECT_EQ(joined, 5);
}

TEST(ended_nodes, an_item_scheduled_on_a_node_runs_on_the_caller) {
    const topology machine(std::vector<processor>{{0, 0}, {1, 1}});
    thread_pool pool({.threads = 2, .machine = machine});
    ASSERT_EQ(pool.nodes(), 2u);
    pool.request_stop();
    for (const std::size_t node : {0u, 1u}) {
        const auto sch = pool.get_scheduler(node);
        EXPECT_EQ(
            sync_wait(ex::schedule(sch) | ex::then([] { return std::this_thread::get_id(); })),
            std::tuple(std::this_thread::get_id()));
    }
}

TEST(ended_nodes, a_worker_runs_items_for_a_node_whose_workers_have_ended) {
    const topology machine(std::vector<processor>{{0, 0}, {1, 1}});
    for (int round = 0; round != 50; ++round) {
        thread_pool pool({.threads = 2, .machine = machine});
        auto work = ex::schedule(pool.get_scheduler(0)) | ex::then([&] { pool.request_stop(); }) |
                    ex::let_value([&] { return ex::schedule(pool.get_scheduler(1)); }) |
                    ex::then([&] { return pool.is_current(); });
        EXPECT_EQ(sync_wait(std::move(work)), std::tuple(true));
    }
}

TEST(ended_backend, the_parallel_scheduler_of_an_ended_pool_runs_on_the_caller) {
    namespace replacement = ex::parallel_scheduler_replacement;
    thread_pool pool(2);
    replacement::set_parallel_scheduler_backend(std::make_shared<parallel_backend>(pool));
    pool.request_stop();
    int calls = 0;
    EXPECT_TRUE(sync_wait(ex::schedule(ex::get_parallel_scheduler()) |
                          ex::bulk(ex::par, 100, [&](int) { ++calls; }) |
                          ex::then([&] { ++calls; })));
    EXPECT_EQ(calls, 101);
    replacement::set_parallel_scheduler_backend(nullptr);
}

TEST(ended_group, a_pool_whose_group_was_drained_or_stopped_runs_on_the_caller) {
    contract_pool drained(2), stopped(2);
    drained.group().drain();
    submit_all_kinds(drained);
    stopped.group().stop();
    submit_all_kinds(stopped);
}

}  // namespace
