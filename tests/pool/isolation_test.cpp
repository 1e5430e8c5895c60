// What a join may run, and which token is in force there: calls of its own region, with their
// token.
#include <coppice/pool/fork_join.hpp>
#include <coppice/pool/isolate.hpp>
#include <coppice/pool/parallel.hpp>
#include <coppice/pool/queue_pool.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/task/wait_for_tasks.hpp>

#include <gtest/gtest.h>

#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

namespace {

using namespace coppice;
using namespace coppice::internal;
namespace ex = coppice::execution;

bool& holding() {
    return thread_slot<struct holding_slot, bool>();
}

// One worker holds a lock across a join, whose call another worker runs. A third worker has
// published a call that wants the lock. Only the waiting worker is free to take that call.
TEST(isolation, a_join_does_not_run_an_unrelated_call_that_wants_the_held_lock) {
    thread_pool pool(3);
    std::mutex mutex;
    for (int round = 0; round != 5; ++round) {
        atomic<bool> inner_is_stolen{false}, over{false};
        atomic<bool> stranger_has_run{false};
        bool ran_by_the_holder = false;
        const auto wait_for = [](const atomic<bool>& flag) {
            while (!flag.load(acquire)) std::this_thread::yield();
        };
        const auto stranger = [&] {
            ran_by_the_holder = holding();
            stranger_has_run.store(true, release);
            if (holding()) return;  // otherwise it would wait for itself
            const std::lock_guard lock(mutex);
        };
        const auto holds = [&] {
            const std::lock_guard lock(mutex);
            holding() = true;
            fork_join([&] { wait_for(inner_is_stolen); },
                      [&] {
                          inner_is_stolen.store(true, release);
                          for (int i = 0; i != 500; ++i) {
                              if (stranger_has_run.load(acquire)) break;
                              std::this_thread::yield();
                          }
                      });
            holding() = false;
            over.store(true, release);
        };
        const auto publishes = [&] {
            wait_for(inner_is_stolen);  // all workers are busy
            fork_join([&] { wait_for(over); }, stranger);
        };
        pool.run([&] { fork_join(holds, publishes); });
        EXPECT_FALSE(ran_by_the_holder);
    }
}

// The same by chance, with many calls and every kind of pool that forks.
template <class Pool>
void many_lock_and_fork(std::size_t threads) {
    Pool pool(threads);
    std::mutex mutex;
    atomic<int> strangers{0}, ran{0};
    const auto spin = [] {
        for (int i = 0; i != 50; ++i) spin_hint();
    };
    const auto lock_and_fork = [&](int) {
        ran.fetch_add(1, relaxed);
        if (holding()) {
            strangers.fetch_add(1, relaxed);
            return;
        }
        const std::lock_guard lock(mutex);
        holding() = true;
        coppice::isolate([&] { fork_join(spin, spin, [&] { fork_join(spin, spin); }); });
        parallel_for(0, 10, [&](int) { spin(); });
        holding() = false;
    };
    for (int round = 0; round != 5; ++round) {
        pool.run([&] { parallel_for(0, 100, lock_and_fork); });
    }
    EXPECT_EQ(strangers.load(relaxed), 0);
    EXPECT_EQ(ran.load(relaxed), 500);
}

TEST(isolation, a_lock_may_be_held_across_a_join) {
    for (const std::size_t threads : {2u, 4u}) {
        many_lock_and_fork<thread_pool>(threads);
        many_lock_and_fork<queue_pool<mutex_queue>>(threads);
        many_lock_and_fork<stealing_pool<counted_deques>>(threads);
    }
}

TEST(isolation, isolate_returns_or_throws_what_its_function_does) {
    int object = 1;
    const auto check = [&] {
        EXPECT_EQ(isolate([] { return 7; }), 7);
        EXPECT_EQ(&isolate([&]() -> int& { return object; }), &object);
        EXPECT_THROW(isolate([] { throw std::runtime_error("out"); }), std::runtime_error);
        EXPECT_EQ(isolate([] { return fork_join([] { return 1; }, [] { return 2; }); }),
                  std::tuple(1, 2));
        inplace_stop_source source;
        EXPECT_TRUE(isolate([](inplace_stop_token) { return true; }));
        fork_join(source.get_token(), [] {
            EXPECT_TRUE(isolate([](inplace_stop_token t) { return t.stop_possible(); }));
        });
    };
    check();
    thread_pool(2).run(check);
}

// All workers still take part in one tree of calls.
TEST(isolation, a_waiting_worker_helps_the_thief_of_its_call) {
    thread_pool pool(2);
    for (int round = 0; round != 50; ++round) {
        atomic<int> there{0};
        atomic<bool> stolen{false};
        const auto come = [&] {
            there.fetch_add(1, relaxed);
            while (there.load(relaxed) < 2) std::this_thread::yield();
        };
        pool.run([&] {
            fork_join(
                [&] {
                    while (!stolen.load(relaxed)) std::this_thread::yield();
                },
                [&] {
                    stolen.store(true, relaxed);
                    fork_join(come, come);  // the waiting worker runs one of them
                });
        });
        EXPECT_EQ(there.load(relaxed), 2);
    }
}

// A task that is spawned below fork_join(token, ...), and outlives it on the thief of its child.
struct spawned {
    atomic<bool> child_is_stolen{false}, scope_has_ended{false}, child_has_asked{false};
    bool had_a_token = true;

    task<> waits_for_the_theft() {
        while (!child_is_stolen.load(acquire)) std::this_thread::yield();
        co_return;
    }
    task<> outlives() {
        child_is_stolen.store(true, release);
        while (!scope_has_ended.load(acquire)) std::this_thread::yield();
        had_a_token = fork_join_stop_token().stop_possible();
        fork_join([] {}, [&] { had_a_token |= fork_join_stop_token().stop_possible(); });
        child_has_asked.store(true, release);
        co_return;
    }
    task<> parent() { co_await wait_for_tasks(waits_for_the_theft(), outlives()); }
    [[gnu::noinline]] void start_below_a_token(thread_pool& pool, ex::counting_scope& scope) {
        std::optional<inplace_stop_source> source(std::in_place);
        fork_join(source->get_token(), [&] {
            ex::spawn(parent() | ex::upon_error([](auto&&) noexcept {}), scope.get_token(),
                      ex::prop(ex::get_scheduler, pool.get_scheduler()));
        });
    }
};

TEST(isolation, a_spawned_task_does_not_inherit_a_token_that_ends_before_it) {
    thread_pool pool(2);
    for (int round = 0; round != 20; ++round) {
        spawned all;
        ex::counting_scope scope;
        pool.run([&] {
            all.start_below_a_token(pool, scope);
            all.scope_has_ended.store(true, release);
            while (!all.child_has_asked.load(acquire)) std::this_thread::yield();
        });
        this_thread::sync_wait(scope.join());
        EXPECT_FALSE(all.had_a_token);
    }
}

// While a worker waits in a join and helps, the call that it runs has its own token.
TEST(isolation, a_call_run_by_a_join_has_the_token_of_its_own_fork) {
    thread_pool pool(2);
    for (int round = 0; round != 50; ++round) {
        atomic<bool> stolen{false}, helped{false};
        bool right = false;
        inplace_stop_source outer, inner;
        pool.run([&] {
            fork_join(
                outer.get_token(),
                [&] {
                    while (!stolen.load(acquire)) std::this_thread::yield();
                },
                [&] {
                    stolen.store(true, release);
                    fork_join(
                        inner.get_token(),
                        [&] {
                            while (!helped.load(acquire)) std::this_thread::yield();
                        },
                        [&] {
                            right = fork_join_stop_token() == inner.get_token();
                            helped.store(true, release);
                        });
                });
        });
        EXPECT_TRUE(right);
    }
}

}  // namespace
