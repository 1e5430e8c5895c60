// A thread inside fork_join(token, ...) may run unrelated work. That work does not inherit the
// token, whatever runs it, so its loops leave out no index because of another call's stop. A bulk
// that does leave out indices completes as stopped.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/contract/blocking_group.hpp>
#include <coppice/exec/bulk.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/pool/contract_pool.hpp>
#include <coppice/pool/parallel.hpp>
#include <coppice/pool/parallel_backend.hpp>
#include <coppice/pool/queue_pool.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/token/block.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <tuple>

namespace {

namespace ex = coppice::execution;
using namespace coppice;
using coppice::this_thread::sync_wait;

// Calls f inside a fork_join whose token was stopped: on this thread, and on a worker.
void below_a_stopped_token(const std::function<void()>& f) {
    inplace_stop_source dead;
    dead.request_stop();
    const auto call = [&] {
        fork_join(dead.get_token(), [&] {
            ASSERT_TRUE(fork_join_stop_token().stop_requested());
            f();
            EXPECT_TRUE(fork_join_stop_token().stop_requested());
        });
    };
    call();
    thread_pool pool(2);
    pool.run(call);
}

// A loop of unrelated work: all its indices are called, on any worker.
struct loop {
    internal::atomic<int> calls{0};
    internal::atomic<int> complete{0};
    void operator()() noexcept {
        const auto call = [this](int) { calls.fetch_add(1, internal::relaxed); };
        if (parallel_for(0, 100, call)) complete.fetch_add(1, internal::relaxed);
    }
    // Returns how often it has run, or -1 if indices were left out.
    int ran() const noexcept {
        const int times = complete.load(internal::relaxed);
        return calls.load(internal::relaxed) == 100 * times ? times : -1;
    }
};

struct ignores {
    using receiver_concept = ex::receiver_tag;
    void set_value(auto&&...) && noexcept {}
    void set_error(auto&&) && noexcept {}
    void set_stopped() && noexcept {}
};
template <class Scheduler>
auto scheduled(Scheduler sch, loop& work) {
    return ex::connect(ex::schedule(sch) | ex::then(std::ref(work)), ignores());
}

template <class Pool>
struct foreign_token : testing::Test {};
using pools = testing::Types<thread_pool, queue_pool<mutex_queue>, contract_pool>;
TYPED_TEST_SUITE(foreign_token, pools);

TYPED_TEST(foreign_token, is_not_in_force_for_what_a_pool_runs_at_once) {
    loop work;
    int rounds = 0;
    TypeParam pool(2);
    const auto run = [&] { pool.run(std::ref(work)); };
    below_a_stopped_token([&] {  // live: on another thread, then on a worker of the pool itself
        run();
        pool.run([&] { below_a_stopped_token(run); });
        pool.run([&] {
            inplace_stop_source dead;
            dead.request_stop();
            fork_join(dead.get_token(), run);
        });
        rounds += 4;
    });
    pool.request_stop();
    below_a_stopped_token([&] {
        run();
        sync_wait(ex::schedule(pool.get_scheduler()) | ex::then(std::ref(work)));
        rounds += 2;
    });
    EXPECT_EQ(work.ran(), rounds);
}

TEST(foreign_token, is_not_in_force_for_what_a_run_loop_runs) {
    below_a_stopped_token([] {
        loop work;
        ex::run_loop queue;
        auto op = scheduled(queue.get_scheduler(), work);
        ex::start(op);
        queue.finish();
        queue.run();
        EXPECT_EQ(work.ran(), 1);
    });
}

TEST(foreign_token, is_not_in_force_for_what_an_event_loop_runs) {
    below_a_stopped_token([] {
        io::context context;
        const auto expect_run = [&](auto run) {
            loop work;
            auto op = scheduled(context.get_scheduler(), work);
            ex::start(op);
            run();
            EXPECT_EQ(work.ran(), 1);
        };
        expect_run([&] { context.run(); });
        expect_run([&] { context.run_for(std::chrono::seconds(10)); });
        expect_run([&] { context.drain(std::chrono::seconds(10)); });
        io::timer timer(context);
        expect_run([&] { timer.wait_for(std::chrono::milliseconds(1), block); });
    });
}

TEST(foreign_token, is_not_in_force_for_what_a_group_of_contracts_runs) {
    below_a_stopped_token([] {
        loop runs, releases, items;
        {
            blocking_work_contract_group group(4);
            const auto run_by = [&](auto execute) {
                auto contract = group.create_contract(std::ref(runs), std::ref(releases),
                                                      initial_state::scheduled);
                execute();  // the run
                contract.release();
                execute();  // the release
                auto op = scheduled(group.get_scheduler(), items);
                ex::start(op);
                execute();
            };
            contract_batch batch;
            run_by([&] { group.execute_next_contract(); });
            run_by([&] { group.execute_next_contract(inplace_stop_token()); });
            run_by([&] { group.execute_contracts(); });
            run_by([&] { group.execute_contracts(batch); });
            auto contract =
                group.create_contract(std::ref(runs), std::ref(releases), initial_state::scheduled);
            group.drain();
            // the release by the group's destructor
        }
        EXPECT_EQ(runs.ran(), 5);
        EXPECT_EQ(items.ran(), 4);
        EXPECT_GE(releases.ran(), 4);
    });
}

// In each way to reach the pool, running and ended, and for each bulk.
TEST(foreign_token, does_not_cut_a_bulk_of_the_parallel_backend) {
    for (const bool ended : {false, true}) {
        thread_pool pool(2);
        const ex::parallel_scheduler sch(std::make_shared<parallel_backend>(pool));
        if (ended) pool.request_stop();
        below_a_stopped_token([&] {
            internal::atomic<int> calls{0};
            const auto count = [&](int) { calls.fetch_add(1, internal::relaxed); };
            const auto count_range = [&](int first, int last) {
                calls.fetch_add(last - first, internal::relaxed);
            };
            EXPECT_TRUE(sync_wait(ex::schedule(sch) | ex::bulk(ex::par, 100, count)));
            EXPECT_EQ(calls.exchange(0, internal::relaxed), 100);
            EXPECT_TRUE(sync_wait(ex::schedule(sch) | ex::bulk_unchunked(ex::par, 100, count)));
            EXPECT_EQ(calls.exchange(0, internal::relaxed), 100);
            EXPECT_TRUE(sync_wait(ex::schedule(sch) | ex::bulk_chunked(ex::par, 100, count_range)));
            EXPECT_EQ(calls.exchange(0, internal::relaxed), 100);
        });
    }
}

// A bulk's own stop ends it between two ranges, and then it completes without a value.
TEST(own_token, ends_a_bulk_of_the_parallel_backend_with_stopped) {
    for (const bool ended : {false, true}) {
        thread_pool pool(2);
        const ex::parallel_scheduler sch(std::make_shared<parallel_backend>(pool));
        if (ended) pool.request_stop();
        inplace_stop_source source;
        auto work = ex::schedule(sch) |
                    ex::bulk(ex::par, 2'000'000'000, [&](int) { source.request_stop(); });
        EXPECT_FALSE(sync_wait(
            ex::write_env(std::move(work), ex::prop(get_stop_token, source.get_token()))));
    }
}

TEST(own_token, stopped_in_the_last_call_leaves_a_bulk_its_value) {
    for (const bool ended : {false, true}) {
        thread_pool pool(2);
        const ex::parallel_scheduler sch(std::make_shared<parallel_backend>(pool));
        if (ended) pool.request_stop();
        inplace_stop_source source;
        internal::atomic<int> calls{0};
        auto work = ex::schedule(sch) | ex::bulk(ex::par, 50, [&](int) {
                        if (calls.fetch_add(1, internal::relaxed) == 49) source.request_stop();
                    });
        EXPECT_TRUE(sync_wait(
            ex::write_env(std::move(work), ex::prop(get_stop_token, source.get_token()))));
        EXPECT_EQ(calls.load(internal::relaxed), 50);
    }
}

}  // namespace
