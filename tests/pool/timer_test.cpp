// The timers of a pool: when they complete, on which thread, and what a stop, a deadline, and the
// end of the pool do.
#include <coppice/exec/let.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/spawn_slot.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/when_any.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/pool/contract_pool.hpp>
#include <coppice/pool/internal/pool_timers.hpp>
#include <coppice/pool/queue_pool.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/task/task.hpp>

#include "allocations.hpp"
#include "emulated.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
using this_thread::sync_wait;

template <class Pool>
class timed_pool : public testing::Test {};
using every_pool =
    testing::Types<thread_pool, queue_pool<mutex_queue>, queue_pool<lockfree_queue>,
                   stealing_pool<mutex_deques>, stealing_pool<kept_deques>, contract_pool>;
TYPED_TEST_SUITE(timed_pool, every_pool);

template <class Pool>
class ordered_pool : public testing::Test {};
using pools_with_order =
    testing::Types<thread_pool, queue_pool<mutex_queue>, stealing_pool<kept_deques>>;
TYPED_TEST_SUITE(ordered_pool, pools_with_order);

TYPED_TEST(timed_pool, completes_on_a_worker_and_not_before_its_time) {
    TypeParam pool(2);
    const auto sch = pool.get_scheduler();
    static_assert(ex::certainly_timed_scheduler<decltype(pool.get_scheduler())>);
    for (const auto span : {0ns, 1ns, 1'000'000ns, 3'000'000ns}) {
        const ex::instant begin = ex::now(sch);
        const auto on_worker = [&pool] { return pool.is_current(); };
        EXPECT_EQ(sync_wait(ex::schedule_after(sch, span) | ex::then(on_worker)), std::tuple(true));
        EXPECT_GE(ex::now(sch), begin + ex::time_span(span));
        const ex::instant when = ex::now(sch) + ex::time_span(span);
        EXPECT_EQ(sync_wait(ex::schedule_at(sch, when) | ex::then(on_worker)), std::tuple(true));
        EXPECT_GE(ex::now(sch), when);
    }
    EXPECT_TRUE(sync_wait(ex::schedule_at(sch, ex::instant(0))).has_value());
}

// Waits for an hour unless it is stopped.
auto an_hour(const auto& sch) {
    return ex::schedule_after(sch, 1h);
}

TYPED_TEST(timed_pool, a_timeout_in_a_task_needs_no_timer_to_be_named) {
    TypeParam pool(1);
    const auto limited = [](TypeParam& p) -> task<bool> {
        try {
            co_await ex::timeout(an_hour(p.get_scheduler()), 1ms);
        } catch (const std::system_error& error) {
            co_return error.code() == std::errc::timed_out;
        }
        co_return false;
    };
    EXPECT_EQ(sync_wait(ex::starts_on(pool.get_scheduler(), limited(pool))), std::tuple(true));
}

// Notes in which order timers of a pool with one worker complete.
template <class Pool>
class timer_order {
public:
    explicit timer_order(Pool& pool) : sch_(pool.get_scheduler()) {}
    // Starts a timer that is due `span` after the construction.
    void add(std::chrono::nanoseconds span) {
        const entry mine(span, started_.size());
        const auto note = [this, mine]() noexcept { completed_.push_back(mine); };
        ex::spawn(ex::schedule_at(sch_, start_ + ex::time_span(span)) | ex::then(note),
                  scope_.get_token());
        started_.push_back(mine);
    }
    // Does the same for a timeout around another timer.
    void add_timeout(std::chrono::nanoseconds span) {
        const entry mine(span, started_.size());
        const auto note = [this, mine](auto&&) noexcept { completed_.push_back(mine); };
        ex::spawn(ex::timeout(an_hour(sch_), start_ + ex::time_span(span) - ex::now(sch_)) |
                      ex::upon_error(note),
                  scope_.get_token());
        started_.push_back(mine);
    }
    // Computes until all timers are due, and the guard may have found them.
    void pass() const {
        while (ex::now(sch_) < start_ + ex::time_span(3ms)) thread_yield();
    }
    void expect_order_of_times() {
        sync_wait(scope_.join());
        std::sort(started_.begin(), started_.end());
        EXPECT_EQ(completed_, started_);
    }

private:
    using entry = std::pair<std::chrono::nanoseconds, std::size_t>;  // its time, and its number

    const decltype(std::declval<Pool&>().get_scheduler()) sch_;
    const ex::instant start_ = ex::now(sch_);
    ex::counting_scope scope_;
    std::vector<entry> started_;
    std::vector<entry> completed_;
};
constexpr int hundreds_of_us[] = {5, -7, 3, -2, 5, 0, 3, 9, -7, 1};

TYPED_TEST(ordered_pool, a_worker_runs_what_is_due_when_it_gets_free_in_the_order_of_times) {
    TypeParam pool(1);
    timer_order<TypeParam> order(pool);
    pool.run([&order] {
        for (const int each : hundreds_of_us) order.add(each * 100us);
        order.pass();
    });
    order.expect_order_of_times();
}

TYPED_TEST(ordered_pool, timers_of_the_worker_and_of_other_threads_run_in_one_order) {
    TypeParam pool(1);
    timer_order<TypeParam> order(pool);
    atomic<bool> armed{false};
    std::thread other;
    pool.run([&] {
        other = std::thread([&] {
            for (const int each : hundreds_of_us) order.add(each * 200us);
            armed.store(true, release);
        });
        while (!armed.load(acquire)) thread_yield();
        for (const int each : hundreds_of_us) order.add(each * 200us + 100us);
        order.pass();
    });
    other.join();
    order.expect_order_of_times();
}

TYPED_TEST(ordered_pool, limits_that_have_passed_end_in_the_order_of_times) {
    TypeParam pool(1);
    timer_order<TypeParam> order(pool);
    pool.run([&order] {
        // Far apart: a timeout counts from its start.
        for (const int each : {-5, -9, -7, -20}) order.add_timeout(each * 1s);
    });
    order.expect_order_of_times();
}

TYPED_TEST(ordered_pool, hundreds_of_timers_run_in_the_order_of_times_between_other_items) {
    TypeParam pool(1);
    timer_order<TypeParam> order(pool);
    ex::counting_scope items;
    pool.run([&] {
        for (int i = 0; i != 700; ++i) {
            order.add(i * 37 % 20 * 100us);
            ex::spawn(ex::schedule(pool.get_scheduler()), items.get_token());
        }
    });
    order.expect_order_of_times();
    sync_wait(items.join());
}

TYPED_TEST(timed_pool, the_end_of_the_pool_stops_the_timers_that_wait) {
    ex::counting_scope scope;
    int stopped = 0;
    {
        TypeParam pool(1);
        for (int i = 0; i != 3; ++i) {
            ex::spawn(an_hour(pool.get_scheduler()) |
                          ex::upon_stopped([&stopped]() noexcept { ++stopped; }),
                      scope.get_token());
        }
        // Started by a worker, too.
        const auto inside =
            ex::let_value([&pool]() noexcept { return an_hour(pool.get_scheduler()); });
        ex::spawn(ex::schedule(pool.get_scheduler()) | inside |
                      ex::upon_stopped([&stopped]() noexcept { ++stopped; }),
                  scope.get_token());
    }
    EXPECT_EQ(stopped, 4);
    sync_wait(scope.join());
}

TYPED_TEST(timed_pool, a_timer_that_is_started_after_the_end_is_stopped_at_once) {
    TypeParam pool(1);
    pool.request_stop();
    EXPECT_FALSE(sync_wait(an_hour(pool.get_scheduler())).has_value());
}

// The two kinds of timers: on the wheels of workers, and watched by the timer of the process.
template <class Pool>
class both_timers : public testing::Test {};
using both_pools = testing::Types<thread_pool, contract_pool>;
TYPED_TEST_SUITE(both_timers, both_pools);

TYPED_TEST(both_timers, an_earlier_timer_completes_before_a_later_one_that_was_started_first) {
    TypeParam pool(2);
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

TYPED_TEST(both_timers, a_stop_from_any_thread_ends_a_timer_as_stopped_on_a_worker) {
    TypeParam pool(2);
    for (const bool armed_inside : {false, true}) {
        for (const bool stopped_inside : {false, true}) {
            ex::counting_scope scope;
            bool on_worker = false;
            auto waits =
                an_hour(pool.get_scheduler()) |
                ex::upon_stopped([&pool, &on_worker]() noexcept { on_worker = pool.is_current(); });
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

auto armed_and_stopped(const auto& sch) {
    return ex::when_any(an_hour(sch), ex::schedule(sch));
}

TYPED_TEST(both_timers, arming_and_stopping_allocate_nothing) {
    TypeParam pool(1);
    const auto sch = pool.get_scheduler();
    ex::spawn_slot<decltype(armed_and_stopped(sch))> slot;
    const auto once = [&] {
        ex::spawn(armed_and_stopped(sch), slot);
        while (slot.is_busy()) thread_yield();
    };
    once();
    // The thread of the process's timer allocates when it starts: it has started when a timer
    // fires.
    sync_wait(ex::schedule_after(sch, 1ms));
    const test::allocation_count count;
    for (int i = 0; i != 100; ++i) once();
    EXPECT_EQ(count.so_far(), 0u);
}

// Many timers, short and long, started and stopped at random by workers and other threads, while
// the pool is sometimes told to end. Each completes once.
TYPED_TEST(both_timers, a_storm_of_timers_and_stops_completes_each_once) {
    std::mt19937 random(12);
    for (int round = 0; round != test::repeated(20); ++round) {
        std::optional<TypeParam> pool(std::in_place, std::size_t{2});
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

TEST(pool_timers, a_stop_before_the_start_ends_it_as_stopped) {
    thread_pool pool(1);
    inplace_stop_source source;
    source.request_stop();
    EXPECT_FALSE(sync_wait(ex::write_env(an_hour(pool.get_scheduler()),
                                         ex::prop(get_stop_token, source.get_token())))
                     .has_value());
}

TEST(pool_timers, a_deadline_that_is_earlier_ends_it_as_stopped_at_that_time) {
    thread_pool pool(1);
    const auto sch = pool.get_scheduler();
    const ex::instant deadline = ex::now(sch) + ex::time_span(2ms);
    const auto until = ex::prop(ex::get_deadline, deadline);
    EXPECT_FALSE(sync_wait(ex::write_env(an_hour(sch), until)).has_value());
    EXPECT_GE(ex::now(sch), deadline);
    EXPECT_TRUE(sync_wait(ex::write_env(ex::schedule_after(sch, 1ns),
                                        ex::prop(ex::get_deadline, ex::instant::never())))
                    .has_value());
}

// A negative time would make futex(2) fail at once, so that a worker that has promised to wake
// then would never sleep.
TEST(pool_timers, a_sleep_until_a_timer_that_never_comes_ends_at_the_latest_time) {
    const std::int64_t never = ex::instant::never().nanoseconds();
    for (const std::int64_t when : {never, never - 1, never - 65'535, never - 65'536}) {
        EXPECT_GE(pool_timers::nanoseconds_of(pool_timers::tick_of(when)), when);
    }
    thread_pool pool(1);
    ex::counting_scope scope;
    ex::spawn(ex::schedule_at(pool.get_scheduler(), ex::instant::never()), scope.get_token());
    EXPECT_TRUE(sync_wait(ex::schedule_after(pool.get_scheduler(), 1ms)).has_value());
    scope.request_stop();
    sync_wait(scope.join());
}

TEST(pool_timers, a_timeout_ends_a_wait_while_the_worker_that_armed_it_is_busy) {
    thread_pool pool(2);
    const auto sch = pool.get_scheduler();
    atomic<bool> timed_out{false};
    ex::counting_scope scope;
    pool.run([&] {
        ex::spawn(ex::timeout(an_hour(sch), 1ms) |
                      ex::upon_error([&](auto&&) noexcept { timed_out.store(true, release); }),
                  scope.get_token());
        while (!timed_out.load(acquire)) thread_yield();  // the other worker expires it
    });
    sync_wait(scope.join());
}

TEST(pool_timers, a_timer_that_is_busy_with_is_left_to_a_sleeping_worker) {
    thread_pool pool(3);
    const auto sch = pool.get_scheduler();
    ex::counting_scope scope;
    atomic<int> fired{0};
    for (int i = 0; i != 2; ++i) {
        // Two of three workers wait until the timer has fired.
        ex::spawn(ex::schedule(sch) | ex::then([&fired]() noexcept {
                      while (fired.load(acquire) == 0) thread_yield();
                  }),
                  scope.get_token());
    }
    ex::spawn(
        ex::schedule_after(sch, 2ms) | ex::then([&fired]() noexcept { fired.store(1, release); }),
        scope.get_token());
    sync_wait(scope.join());
}

TEST(pool_timers, of_a_node_complete_on_that_node) {
    thread_pool pool(2);
    const auto sch = pool.get_scheduler(0);
    EXPECT_EQ(
        sync_wait(ex::schedule_after(sch, 1ms) | ex::then([&pool] { return pool.is_current(0); })),
        std::tuple(true));
    ex::counting_scope scope;
    ex::spawn(an_hour(sch), scope.get_token());
    scope.request_stop();
    sync_wait(scope.join());
}

struct ignoring {
    using receiver_concept = ex::receiver_tag;
    void set_value() && noexcept {}
    void set_stopped() && noexcept {}
};

void destroy_while_waiting() {
    thread_pool pool(1);
    const auto sndr = an_hour(pool.get_scheduler());
    manual_lifetime<ex::connect_result_t<decltype(sndr)&, ignoring>> op;
    op.construct_with([&sndr] { return ex::connect(sndr, ignoring()); });
    ex::start(op.get());
    op.destroy();
}

TEST(pool_timers_death, destroying_one_that_waits_stops_the_process) {
    GTEST_FLAG_SET(death_test_style, test::style_of_new_process);
    EXPECT_DEATH(destroy_while_waiting(), "a timer of a pool was destroyed while it was waiting");
}

}  // namespace
