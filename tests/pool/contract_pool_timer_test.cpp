// The timers of a contract_pool, which the timer of the process watches: earlier and later ones,
// stops from any thread, every way in which the group can end, and storms.
#include <coppice/exec/let.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/spawn_slot.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all_range.hpp>
#include <coppice/exec/when_any.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/pool/contract_pool.hpp>

#include "allocations.hpp"
#include "emulated.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <optional>
#include <random>
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

TEST(contract_pool_timers, an_earlier_timer_completes_before_a_later_one_that_was_started_first) {
    contract_pool pool(2);
    const auto sch = pool.get_scheduler();
    ex::counting_scope scope;
    for (int round = 0; round != test::repeated(50); ++round) {
        for (const auto later : {1h, 2h}) {
            ex::spawn(ex::schedule_after(sch, later), scope.get_token());
        }
        EXPECT_TRUE(sync_wait(ex::schedule_after(sch, 200us)).has_value());
    }
    scope.request_stop();
    sync_wait(scope.join());
}

TEST(contract_pool_timers, one_after_the_other_each_complete) {
    contract_pool pool(1);
    const auto sch = pool.get_scheduler();
    for (int i = 0; i != test::repeated(300); ++i) {
        EXPECT_TRUE(sync_wait(ex::schedule_after(sch, 1us * (i % 150))).has_value());
    }
}

TEST(contract_pool_timers, a_stop_from_any_thread_ends_a_timer_as_stopped_on_a_worker) {
    contract_pool pool(2);
    for (const bool armed_inside : {false, true}) {
        for (const bool stopped_inside : {false, true}) {
            ex::counting_scope scope;
            bool on_worker = false;
            auto waits = an_hour(pool) | ex::upon_stopped([&pool, &on_worker]() noexcept {
                             on_worker = pool.is_current();
                         });
            if (armed_inside) {
                pool.run([&] { ex::spawn(std::move(waits), scope.get_token()); });
            } else {
                ex::spawn(std::move(waits), scope.get_token());
            }
            if (stopped_inside) {
                pool.run([&scope] { scope.request_stop(); });
            } else {
                scope.request_stop();
            }
            sync_wait(scope.join());
            EXPECT_TRUE(on_worker);
        }
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

auto armed_and_stopped(contract_pool& pool) {
    return ex::when_any(an_hour(pool), ex::schedule(pool.get_scheduler()));
}

TEST(contract_pool_timers, arming_and_stopping_allocate_nothing) {
    contract_pool pool(1);
    ex::spawn_slot<decltype(armed_and_stopped(pool))> slot;
    const auto once = [&] {
        ex::spawn(armed_and_stopped(pool), slot);
        while (slot.is_busy()) thread_yield();
    };
    once();
    // The thread of the process's timer allocates when it starts: it has started when a timer
    // fires.
    sync_wait(ex::schedule_after(pool.get_scheduler(), std::chrono::milliseconds(1)));
    const test::allocation_count count;
    for (int i = 0; i != 100; ++i) once();
    EXPECT_EQ(count.so_far(), 0u);
}

// Many timers, short and long, started and stopped at random by workers and other threads, while
// the pool is sometimes told to end. Each completes once.
TEST(contract_pool_timers, a_storm_of_timers_and_stops_completes_each_once) {
    std::mt19937 random(12);
    for (int round = 0; round != test::repeated(20); ++round) {
        std::optional<contract_pool> pool(std::in_place, std::size_t{2});
        const auto sch = pool->get_scheduler();
        constexpr std::size_t count = 200;
        std::deque<inplace_stop_source> sources(count);
        atomic<int> ended{0};
        ex::counting_scope scope;
        std::vector<unsigned> spans;
        for (std::size_t i = 0; i != count; ++i) {
            spans.push_back(random() % 3 == 0 ? 3'600'000'000u
                                              : static_cast<unsigned>(random() % 800));
        }
        const auto start = [&](std::size_t from, std::size_t to) {
            for (std::size_t i = from; i != to; ++i) {
                auto timer = ex::schedule_after(sch, std::chrono::microseconds(spans[i])) |
                             ex::upon_stopped([]() noexcept {}) |
                             ex::then([&ended]() noexcept { ended.fetch_add(1, relaxed); });
                ex::spawn(ex::write_env(std::move(timer),
                                        ex::prop(get_stop_token, sources[i].get_token())),
                          scope.get_token());
            }
        };
        const auto stop = [&](std::size_t from) {
            for (std::size_t i = from; i < count; i += 2) sources[i].request_stop();
        };
        const bool ends = random() % 2 == 0;
        std::thread outside([&] { start(0, count / 2); });
        pool->run([&] { start(count / 2, count); });
        std::thread stopper([&] { stop(0); });
        if (ends) {
            pool->request_stop();
        } else {
            pool->run([&] { stop(1); });
        }
        outside.join();
        stopper.join();
        if (ends) pool.reset();
        stop(0);
        stop(1);
        sync_wait(scope.join());
        EXPECT_EQ(ended.load(relaxed), static_cast<int>(count));
    }
}

}  // namespace
