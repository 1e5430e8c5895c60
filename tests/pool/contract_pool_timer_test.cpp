// The timers of a contract_pool, which the timer of the process watches: what differs from those
// of other pools (timer_test.cpp), and every way in which the group can end.
#include <coppice/exec/let.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all_range.hpp>
#include <coppice/pool/contract_pool.hpp>

#include "emulated.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
using this_thread::sync_wait;

// Waits for an hour unless it is stopped.
auto an_hour(contract_pool& pool) {
    return ex::schedule_after(pool.get_scheduler(), 1h);
}

TEST(contract_pool_timers, one_after_the_other_each_complete) {
    contract_pool pool(1);
    const auto sch = pool.get_scheduler();
    for (int i = 0; i != test::repeated(300); ++i) {
        EXPECT_TRUE(sync_wait(ex::schedule_after(sch, 1us * (i % 150))).has_value());
    }
}

TEST(contract_pool_timers, more_than_a_round_takes_complete_at_one_time) {
    contract_pool pool(2);
    const auto sch = pool.get_scheduler();
    const ex::instant when = ex::now(sch) + ex::time_span(2ms);
    std::vector<decltype(ex::schedule_at(sch, when))> many(2000, ex::schedule_at(sch, when));
    EXPECT_TRUE(sync_wait(ex::when_all_range(std::move(many))).has_value());
    EXPECT_GE(ex::now(sch), when);
}

TEST(contract_pool_timers, the_end_of_the_group_stops_those_that_wait_and_those_that_follow) {
    const auto end_by = [](auto end) {
        contract_pool pool(2);
        ex::counting_scope scope;
        atomic<int> stopped{0};
        const auto count = [&stopped]() noexcept { stopped.fetch_add(1, relaxed); };
        // The stop of one starts the next one, which is stopped too.
        auto twice = an_hour(pool) | ex::let_stopped([&pool]() noexcept { return an_hour(pool); });
        for (int i = 0; i != 10; ++i) {
            ex::spawn(twice | ex::upon_stopped(count), scope.get_token());
        }
        end(pool);
        sync_wait(scope.join());
        EXPECT_EQ(stopped.load(relaxed), 10);
        EXPECT_FALSE(sync_wait(an_hour(pool)).has_value());
    };
    end_by([](contract_pool& pool) { pool.request_stop(); });
    end_by([](contract_pool& pool) { pool.group().begin_drain(); });
    end_by([](contract_pool& pool) { pool.group().drain(); });
    end_by([](contract_pool& pool) { pool.group().stop(); });
}

// The other worker takes what this one has not begun.
TEST(contract_pool_timers, an_operation_that_the_end_stops_may_wait_for_another_one) {
    for (int round = 0; round != test::repeated(40); ++round) {
        ex::counting_scope scope;
        atomic<bool> stopped{false};
        {
            contract_pool pool(2);
            const auto sets = [&] {
                return an_hour(pool) |
                       ex::upon_stopped([&]() noexcept { stopped.store(true, release); });
            };
            const auto waits = [&] {
                return an_hour(pool) | ex::upon_stopped([&]() noexcept {
                           while (!stopped.load(acquire)) std::this_thread::yield();
                       });
            };
            if (round % 2 == 0) ex::spawn(sets(), scope.get_token());
            ex::spawn(waits(), scope.get_token());
            for (int i = 0; i != round % 3 * 500; ++i) {
                ex::spawn(an_hour(pool) | ex::upon_stopped([]() noexcept {}), scope.get_token());
            }
            if (round % 2 != 0) ex::spawn(sets(), scope.get_token());
        }
        sync_wait(scope.join());
    }
}

// Sets a flag when its thread ends.
struct end_of_thread {
    ~end_of_thread() {
        if (flag != nullptr) flag->store(true, release);
    }
    atomic<bool>* flag = nullptr;
};

TEST(contract_pool_timers, the_last_worker_of_an_ended_pool_may_wait_for_a_timer_that_it_starts) {
    contract_pool pool(2);
    atomic<bool> both{false};
    atomic<bool> other_ended{false};
    bool completed = true;
    ex::counting_scope scope;
    ex::spawn(ex::schedule(pool.get_scheduler()) | ex::then([&]() noexcept {
                  while (!both.load(acquire)) thread_yield();
                  while (!other_ended.load(acquire)) thread_yield();
                  completed = sync_wait(an_hour(pool)).has_value();
              }),
              scope.get_token());
    pool.run([&] {
        thread_local end_of_thread end;
        end.flag = &other_ended;
        both.store(true, release);
    });
    pool.request_stop();
    sync_wait(scope.join());
    EXPECT_FALSE(completed);
}

TEST(contract_pool_timers, complete_on_a_thread_of_the_user_that_executes_the_group) {
    contract_pool pool(1);
    atomic<bool> done{false};
    ex::counting_scope scope;
    pool.run([&] {
        // The only worker waits here for the other thread, which executes the group.
        std::thread other([&] {
            while (!done.load(acquire)) (void)pool.group().execute_next_contract(1ms);
        });
        ex::spawn(ex::schedule_after(pool.get_scheduler(), 1ms) |
                      ex::then([&done]() noexcept { done.store(true, release); }),
                  scope.get_token());
        other.join();
    });
    sync_wait(scope.join());
}

}  // namespace
