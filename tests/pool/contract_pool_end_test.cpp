// How contract_pool and its group end: scheduled items run once, contracts stop, releases run.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/contract/blocking_group.hpp>
#include <coppice/contract/group.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/pool/contract_pool.hpp>

#include <gtest/gtest.h>

#include <thread>
#include <tuple>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
namespace ex = coppice::execution;
using this_thread::sync_wait;

TEST(ended_group, a_drained_or_stopped_group_runs_scheduled_items_on_the_caller) {
    const auto check = [](auto& group) {
        const auto here = std::this_thread::get_id();
        EXPECT_EQ(sync_wait(ex::schedule(group.get_scheduler()) |
                            ex::then([] { return std::this_thread::get_id(); })),
                  std::tuple(here));
        EXPECT_FALSE(group.create_contract([] {}, initial_state::scheduled).valid());
        EXPECT_FALSE(group.execute_next_contract());
    };
    work_contract_group drained(4), stopped(4), begun(4);
    drained.drain();
    check(drained);
    stopped.stop();
    check(stopped);
    begun.begin_drain();
    check(begun);
    blocking_work_contract_group waited(4);
    waited.drain();
    check(waited);
    EXPECT_FALSE(waited.execute_next_contract(inplace_stop_token()));
}

// Drains race with work that is scheduled on the group. Each item runs once.
TEST(ended_group, nothing_is_lost_between_schedule_and_drain) {
    for (const std::size_t threads : {2u, 4u}) {
        for (int round = 0; round != 20; ++round) {
            contract_pool pool(threads);
            atomic<int> ran{0}, ready{0};
            const auto call = [&] {
                ready.fetch_add(1, relaxed);
                while (ready.load(relaxed) != 3) std::this_thread::yield();
                for (int i = 0; i != 50; ++i) {
                    sync_wait(ex::schedule(pool.get_scheduler()) |
                              ex::then([&] { ran.fetch_add(1, relaxed); }));
                }
            };
            std::thread first(call), second(call);
            ready.fetch_add(1, relaxed);
            while (ready.load(relaxed) != 3) std::this_thread::yield();
            if (round % 2 == 0) {
                pool.group().drain();
            } else {
                pool.group().stop();
            }
            first.join();
            second.join();
            EXPECT_EQ(ran.load(relaxed), 100);
        }
    }
}

// A contract that schedules itself by its handle again and again runs once more after the request.
TEST(contract_pool_end, a_contract_that_schedules_itself_runs_at_most_once_more) {
    for (const std::size_t threads : {1u, 2u, 4u}) {
        for (const bool by_token : {false, true}) {
            atomic<int> runs{0};
            atomic<work_contract*> handle{nullptr};
            work_contract contract;  // outlives the pool
            {
                contract_pool pool(threads);
                contract = pool.group().create_contract([&](work_contract_token& token) {
                    runs.fetch_add(1, seq_cst);
                    if (by_token) token.schedule();
                    if (work_contract* const self = handle.load(acquire)) self->schedule();
                });
                handle.store(&contract, release);
                contract.schedule();
                while (runs.load(seq_cst) < 100) std::this_thread::yield();
                pool.request_stop();
                const int before = runs.load(seq_cst);
                contract.schedule();
                pool.run([] {});
                while (pool.group().execute_next_contract()) {
                }
                EXPECT_LE(runs.load(seq_cst), before + 1);
            }
        }
    }
}

// Several contracts schedule each other.
TEST(contract_pool_end, contracts_that_schedule_each_other_end) {
    std::vector<work_contract> contracts(8);
    atomic<int> runs{0};
    atomic<bool> made{false};
    contract_pool pool(4);
    for (std::size_t i = 0; i != contracts.size(); ++i) {
        contracts[i] = pool.group().create_contract([&, i] {
            runs.fetch_add(1, relaxed);
            while (!made.load(acquire)) std::this_thread::yield();
            contracts[(i + 1) % contracts.size()].schedule();
            contracts[(i + 3) % contracts.size()].schedule();
        });
    }
    made.store(true, release);
    contracts[0].schedule();
    while (runs.load(relaxed) < 1000) std::this_thread::yield();
    pool.request_stop();
}

// What is pending when the pool is told to end still runs, and so does the release.
TEST(contract_pool_end, pending_contracts_and_their_releases_run) {
    for (int round = 0; round != 50; ++round) {
        atomic<int> runs{0}, releases{0};
        {
            contract_pool pool(2);
            std::vector<work_contract> contracts;
            for (int i = 0; i != 20; ++i) {
                contracts.push_back(pool.group().create_contract(
                    [&] { runs.fetch_add(1, relaxed); }, [&] { releases.fetch_add(1, relaxed); },
                    initial_state::scheduled));
            }
            pool.request_stop();
            while (runs.load(relaxed) != 20) std::this_thread::yield();
        }
        EXPECT_EQ(releases.load(relaxed), 20);
    }
}

}  // namespace
