// contract/blocking_group.hpp: idle workers sleep, and no worker sleeps while there is work.
#include <coppice/contract/blocking_group.hpp>
#include <coppice/contract/internal/sleeping_workers.hpp>

#include "emulated.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <thread>
#include <vector>

namespace {

using coppice::blocking_work_contract_group;
using coppice::initial_state;
using coppice::work_contract;
using coppice::work_contract_token;
using namespace std::chrono_literals;

TEST(blocking_group, calls_without_a_token_or_a_duration_do_not_wait) {
    blocking_work_contract_group group(4);
    coppice::selection_bias bias = coppice::selection_bias::fair();
    EXPECT_FALSE(group.execute_next_contract());
    EXPECT_FALSE(group.execute_next_contract(bias));
    EXPECT_EQ(group.execute_contracts(), 0u);
}

TEST(blocking_group, a_wait_ends_when_its_time_is_over_or_work_arrives) {
    blocking_work_contract_group group(4);
    int runs = 0;
    work_contract contract = group.create_contract([&] { ++runs; });
    EXPECT_FALSE(group.execute_next_contract(0ns));
    EXPECT_FALSE(group.execute_next_contract(-1h));
    EXPECT_FALSE(group.execute_next_contract(2ms));
    contract.schedule();
    EXPECT_TRUE(group.execute_next_contract(0ns));
    contract.schedule();
    EXPECT_TRUE(group.execute_next_contract(std::chrono::nanoseconds::max()));
    coppice::selection_bias bias = coppice::selection_bias::prefer(0);
    contract.schedule();
    EXPECT_TRUE(group.execute_next_contract(bias, 1h));
    EXPECT_EQ(runs, 3);
}

TEST(blocking_group, a_stop_request_ends_the_wait_and_takes_precedence_over_work) {
    blocking_work_contract_group group(4);
    coppice::inplace_stop_source source;
    std::thread stopping([&] { source.request_stop(); });
    EXPECT_FALSE(group.execute_next_contract(source.get_token()));
    stopping.join();
    const work_contract contract = group.create_contract([] {}, initial_state::scheduled);
    EXPECT_FALSE(group.execute_next_contract(source.get_token()));
    EXPECT_TRUE(group.execute_next_contract());
}

TEST(blocking_group, a_stop_request_wakes_every_sleeper) {
    blocking_work_contract_group group(4);
    coppice::inplace_stop_source source;
    std::vector<std::thread> sleepers;
    for (int i = 0; i != 80; ++i) {  // more than one word has bits
        sleepers.emplace_back([&] {
            while (group.execute_next_contract(source.get_token())) {
            }
        });
    }
    source.request_stop();
    for (std::thread& t : sleepers) t.join();
    SUCCEED();
}

// Two sleeping threads schedule each other in turn. Each schedule must wake a worker, or the test
// hangs.
TEST(blocking_group, each_schedule_wakes_a_sleeping_worker) {
    constexpr int rounds = coppice::test::repeated(3000);
    for (const int workers : {1, 3}) {
        blocking_work_contract_group group(64);
        coppice::inplace_stop_source source;
        coppice::internal::atomic<std::uint32_t> answered{0};
        work_contract contract = group.create_contract([&] {
            answered.fetch_add(1, coppice::internal::release);
            coppice::internal::futex_wake_one(answered);
        });
        std::vector<std::thread> threads;
        for (int i = 0; i != workers; ++i) {
            threads.emplace_back([&] {
                while (group.execute_next_contract(source.get_token())) {
                }
            });
        }
        for (std::uint32_t i = 0; i != rounds; ++i) {
            contract.schedule();
            while (answered.load(coppice::internal::acquire) == i)
                coppice::internal::futex_wait(answered, i);
        }
        source.request_stop();
        for (std::thread& t : threads) t.join();
        EXPECT_EQ(answered.load(coppice::internal::relaxed), rounds);
    }
}

// Returns how often the calling thread has gone to sleep.
long sleeps_of_this_thread() {
    rusage used{};
    ::getrusage(RUSAGE_THREAD, &used);
    return used.ru_nvcsw;
}

// A worker that looked every millisecond, or that spun and yielded, would show about fifty sleeps
// here.
TEST(blocking_group, an_idle_worker_sleeps_once_until_it_is_woken) {
    blocking_work_contract_group group(64);
    blocking_work_contract_group clock(1);
    coppice::inplace_stop_source source;
    coppice::internal::atomic<std::uint32_t> answered{0};
    std::vector<long> sleeps;  // one entry per run, from the worker
    work_contract contract = group.create_contract([&] {
        sleeps.push_back(sleeps_of_this_thread());
        answered.fetch_add(1, coppice::internal::release);
        coppice::internal::futex_wake_one(answered);
    });
    std::thread worker([&] {
        while (group.execute_next_contract(source.get_token())) {
        }
    });
    for (std::uint32_t i = 0; i != 4; ++i) {
        contract.schedule();
        while (answered.load(coppice::internal::acquire) == i)
            coppice::internal::futex_wait(answered, i);
        EXPECT_FALSE(clock.execute_next_contract(50ms));  // time passes without work
    }
    contract.schedule();
    while (answered.load(coppice::internal::acquire) == 4)
        coppice::internal::futex_wait(answered, 4u);
    source.request_stop();
    worker.join();
    for (std::size_t i = 1; i != sleeps.size(); ++i) EXPECT_LE(sleeps[i] - sleeps[i - 1], 4) << i;
}

// Each worker runs one contract and leaves, so no wake-up may rely on a worker that comes back.
TEST(blocking_group, as_many_workers_wake_as_contracts_are_scheduled) {
    for (int round = 0; round != coppice::test::repeated(300); ++round) {
        constexpr int count = 4;
        blocking_work_contract_group group(64);
        coppice::internal::atomic<int> runs{0};
        std::vector<work_contract> contracts;
        for (int i = 0; i != count; ++i) {
            contracts.push_back(
                group.create_contract([&] { runs.fetch_add(1, coppice::internal::relaxed); }));
        }
        std::vector<std::thread> workers;
        for (int i = 0; i != count; ++i) {
            workers.emplace_back(
                [&] { EXPECT_TRUE(group.execute_next_contract(coppice::inplace_stop_token())); });
        }
        for (work_contract& c : contracts) c.schedule();
        for (std::thread& t : workers) t.join();
        EXPECT_EQ(runs.load(coppice::internal::relaxed), count);
    }
}

TEST(blocking_group, a_contract_that_reschedules_itself_wakes_others_for_its_next_run) {
    blocking_work_contract_group group(4);
    int runs = 0;
    const work_contract contract = group.create_contract(
        [&](work_contract_token& token) {
            if (++runs < 3) token.schedule();
        },
        initial_state::scheduled);
    std::vector<std::thread> workers;
    for (int i = 0; i != 3; ++i) {
        workers.emplace_back(
            [&] { EXPECT_TRUE(group.execute_next_contract(coppice::inplace_stop_token())); });
    }
    for (std::thread& t : workers) t.join();
    EXPECT_EQ(runs, 3);
}

TEST(blocking_group, more_workers_than_seats_still_find_work_and_stop) {
    blocking_work_contract_group group(64, 0, 1);
    coppice::inplace_stop_source source;
    coppice::internal::atomic<int> runs{0};
    std::vector<std::thread> workers;
    for (int i = 0; i != 3; ++i) {
        workers.emplace_back([&] {
            while (group.execute_next_contract(source.get_token())) {
            }
        });
    }
    std::vector<work_contract> contracts;
    for (int i = 0; i != 64; ++i) {
        contracts.push_back(group.create_contract(
            [&] { runs.fetch_add(1, coppice::internal::release); }, initial_state::scheduled));
    }
    while (runs.load(coppice::internal::acquire) != 64) std::this_thread::yield();
    source.request_stop();
    for (std::thread& t : workers) t.join();
}

TEST(blocking_group, stop_and_drain_end_every_wait) {
    for (const bool drain : {false, true}) {
        blocking_work_contract_group group(4);
        std::vector<std::thread> workers;
        for (int i = 0; i != 3; ++i) {
            workers.emplace_back([&] {
                while (group.execute_next_contract(coppice::inplace_stop_token())) {
                }
            });
        }
        if (drain) {
            group.drain();
        } else {
            group.stop();
        }
        for (std::thread& t : workers) t.join();
        EXPECT_FALSE(group.execute_next_contract(1h));
    }
}

TEST(blocking_group, an_exception_of_a_contract_leaves_the_waiting_call) {
    blocking_work_contract_group group(4);
    const work_contract contract =
        group.create_contract([] { throw std::runtime_error("run"); }, initial_state::scheduled);
    EXPECT_THROW(group.execute_next_contract(1h), std::runtime_error);
    EXPECT_TRUE(contract.valid());
}

}  // namespace
