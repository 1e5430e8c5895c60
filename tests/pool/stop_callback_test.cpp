// Stop callbacks that the timers of a pool run: what they may wait for, and where the pool ends.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/pool/contract_pool.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/stop/shared.hpp>
#include <coppice/task/task.hpp>

#include "busy_pool.hpp"
#include "call_filter.hpp"
#include "emulated.hpp"
#include "sanitizers.hpp"

#include <gtest/gtest.h>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
using coppice::internal::acquire, coppice::internal::atomic, coppice::internal::release;
using coppice::internal::thread_yield;
using this_thread::sync_wait;

using flag = atomic<bool>;
void wait_for(const flag& set) {
    while (!set.load(acquire)) thread_yield();
}

// Calls the function when the limit has passed, by the timers of the pool.
template <class Pool, class F>
auto calls_after(Pool& pool, std::chrono::nanoseconds limit, F function) {
    return ex::write_env(ex::timeout(test::calls_when_stopped<F>{function}, limit),
                         ex::prop(ex::get_timed_scheduler, pool.get_scheduler()));
}
template <class Sndr>
void spawn(Sndr sndr, ex::counting_scope& scope) {
    ex::spawn(std::move(sndr), scope.get_token(), [](auto&&) noexcept {});
}
// Occupies all workers until the flag is set.
template <class Pool>
void occupy(Pool& pool, flag& until, ex::counting_scope& scope) {
    atomic<std::size_t> begun{0};
    for (std::size_t worker = 0; worker != pool.size(); ++worker) {
        spawn(ex::schedule(pool.get_scheduler()) | ex::then([&]() noexcept {
                  begun.fetch_add(1, release);
                  wait_for(until);
              }),
              scope);
    }
    while (begun.load(acquire) != pool.size()) thread_yield();
}

task<void> poll() {
    const inplace_stop_token token = co_await ex::read_env(get_stop_token);
    while (!token.stop_requested()) thread_yield();
}
// Says whether a timeout ends a task that polls its token on the pool.
template <class Pool>
task<bool> times_out(Pool& pool, std::chrono::nanoseconds limit) {
    return test::timed_out([&pool] { return ex::starts_on(pool.get_scheduler(), poll()); }, limit);
}

template <class Pool>
class pool_timeout : public testing::Test {};
using some_pools = testing::Types<thread_pool, contract_pool>;
TYPED_TEST_SUITE(pool_timeout, some_pools);

// The callback runs on a worker, on which both timers may have been found due; if the worker is
// late, on the thread of the process's timer. A contract_pool needs that thread for a later timer.
TYPED_TEST(pool_timeout, a_stop_callback_may_wait_for_another_timer) {
    TypeParam pool(2);
    const auto sch = pool.get_scheduler();
    for (int round = 0; round != test::repeated(40); ++round) {
        flag fired{false};
        ex::counting_scope scope;
        const bool later = round % 2 != 0 && !std::is_same_v<TypeParam, contract_pool>;
        const auto when = ex::now(sch) + ex::time_span(later ? 2ms : 300us);
        spawn(calls_after(pool, 300us, [&fired] { wait_for(fired); }), scope);
        spawn(ex::schedule_at(sch, when) |
                  ex::then([&fired]() noexcept { fired.store(true, release); }),
              scope);
        sync_wait(scope.join());
    }
}

// The callback runs on the thread of the process's timer.
TYPED_TEST(pool_timeout, a_stop_callback_of_a_busy_pool_may_wait_for_a_timer_of_the_same_time) {
    TypeParam pool(2);
    const auto sch = pool.get_scheduler();
    for (int round = 0; round != test::repeated(40); ++round) {
        flag told{false};
        flag fired{false};
        ex::counting_scope scope;
        occupy(pool, told, scope);
        const auto when = ex::now(sch) + ex::time_span(300us);
        spawn(calls_after(pool, 300us,
                          [&] {
                              told.store(true, release);
                              wait_for(fired);
                          }),
              scope);
        spawn(ex::schedule_at(sch, when) |
                  ex::then([&fired]() noexcept { fired.store(true, release); }),
              scope);
        sync_wait(scope.join());
    }
}

// The end stops all timers at once. A worker that takes many of them is busy for a while, in which
// another one could end.
TYPED_TEST(pool_timeout, a_stop_callback_may_wait_for_a_timer_that_the_end_of_the_pool_stops) {
    for (const std::size_t workers : {2U, 4U}) {
        for (int round = 0; round != test::repeated(10); ++round) {
            flag stopped{false};
            ex::counting_scope scope;
            {
                TypeParam pool(workers);
                const auto sch = pool.get_scheduler();
                for (int i = 0; i != 1 + round % 2 * 3'000; ++i) {
                    spawn(ex::schedule_after(sch, 1h), scope);
                }
                spawn(ex::schedule_after(sch, 1h) | ex::upon_stopped([&stopped]() noexcept {
                          stopped.store(true, release);
                      }),
                      scope);
                spawn(calls_after(pool, 2h, [&stopped] { wait_for(stopped); }), scope);
            }
            sync_wait(scope.join());
        }
    }
}

// The item of the stopped timer is queued when the pool is told to end. The worker that takes it
// sees the end then, if it has looked for timers only before the row of short items.
TYPED_TEST(pool_timeout, a_stop_callback_of_the_end_may_wait_for_a_timer_that_was_stopped_before) {
    for (int round = 0; round != test::repeated(40); ++round) {
        flag go_on{false};
        flag stopped{false};
        inplace_stop_source stop;
        ex::counting_scope scope;
        {
            TypeParam pool(2);
            const auto sch = pool.get_scheduler();
            spawn(calls_after(pool, 2h, [&stopped] { wait_for(stopped); }), scope);
            spawn(ex::write_env(ex::schedule_after(sch, 1h),
                                ex::prop(get_stop_token, stop.get_token())) |
                      ex::upon_stopped([&stopped]() noexcept { stopped.store(true, release); }),
                  scope);
            for (int i = 0; i != 200; ++i) spawn(ex::schedule(sch), scope);
            occupy(pool, go_on, scope);
            stop.request_stop();
            pool.request_stop();
            go_on.store(true, release);
        }
        sync_wait(scope.join());
    }
}

// For the first limit, the callback runs on the thread of the process's timer; for the second one,
// on the thread that starts the timeout. The workers end meanwhile.
TYPED_TEST(pool_timeout, a_stop_callback_elsewhere_may_wait_for_a_timer_while_the_pool_ends) {
    for (const auto limit : {std::chrono::nanoseconds(1ms), std::chrono::nanoseconds(-1h)}) {
        for (int round = 0; round != test::repeated(6); ++round) {
            flag told{false};
            flag ended{false};
            ex::counting_scope scope;
            TypeParam pool(1 + static_cast<std::size_t>(round) % 2);
            const auto sch = pool.get_scheduler();
            occupy(pool, told, scope);
            const auto sets = [](flag& done) {
                return [&done]() noexcept { done.store(true, release); };
            };
            const auto other = limit > 0s ? limit : std::chrono::nanoseconds(1h);
            spawn(ex::schedule_after(sch, other) | ex::then(sets(ended)) |
                      ex::upon_stopped(sets(ended)),
                  scope);
            spawn(calls_after(pool, limit,
                              [&] {
                                  pool.request_stop();
                                  told.store(true, release);
                                  wait_for(ended);
                              }),
                  scope);
            sync_wait(scope.join());
        }
    }
}

// For the first limit, the callback runs on the thread of the process's timer; for the second one,
// on the thread that starts the timeout.
TYPED_TEST(pool_timeout, destroying_the_pool_in_a_stop_callback_of_it_ends_the_process) {
    GTEST_FLAG_SET(death_test_style, test::style_of_new_process);
    for (const auto limit : {std::chrono::nanoseconds(1ms), std::chrono::nanoseconds(-1h)}) {
        EXPECT_DEATH(
            {
                static flag never{false};
                auto* const pool = new TypeParam(1);
                ex::counting_scope scope;
                occupy(*pool, never, scope);
                spawn(calls_after(*pool, limit, [pool] { delete pool; }), scope);
                sync_wait(scope.join());
            },
            "pool was destroyed in a stop callback of one of its own timeouts");
    }
}

// The work begins inside the start of the timeout, unless the pool defers it.
TYPED_TEST(pool_timeout, limits_work_that_a_worker_starts_after_the_pool_was_told_to_end) {
    for (int round = 0; round != test::repeated(6); ++round) {
        TypeParam pool(1 + static_cast<std::size_t>(round) % 2);
        const auto late = [](TypeParam& on) -> task<bool> {
            on.request_stop();
            co_return co_await times_out(on, 1ms);
        };
        // It times out, or a worker that sees the end first stops the timer and so the work.
        const auto got = sync_wait(ex::starts_on(pool.get_scheduler(), late(pool)));
        EXPECT_TRUE(!got.has_value() || std::get<0>(*got));
    }
}

// The child has the memory of the pool, but none of its workers.
TYPED_TEST(pool_timeout, stops_nothing_in_a_forked_child) {
    if (test::emulated) GTEST_SKIP() << test::no_threads_there;
    if (test::under_thread_sanitizer)
        GTEST_SKIP() << "the thread sanitizer lets no forked child start threads";
    TypeParam pool(1);
    flag told{false};
    ex::counting_scope scope;
    occupy(pool, told, scope);
    spawn(calls_after(pool, 20ms, [&told] { told.store(true, release); }), scope);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const bool before = told.load(acquire);
        stop_source later;
        later.request_stop_after(60ms);
        while (!later.stop_requested()) thread_yield();
        ::_exit(told.load(acquire) == before ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    sync_wait(scope.join());
}

// Prints whether the timers of a pool still end a timeout when static objects are destroyed.
template <class Pool>
struct waits_at_exit {
    ~waits_at_exit() {
        const auto sch = (*pool)->get_scheduler();
        const bool fired = sync_wait(ex::schedule_after(sch, 1ms)).has_value();
        const auto limited = sync_wait(ex::starts_on(sch, times_out(**pool, 1ms)));
        const bool timely = limited.has_value() && std::get<0>(*limited);
        std::fprintf(stderr, "%s, %s\n", fired ? "fired" : "stopped",
                     timely ? "timely" : "stopped");
    }
    Pool* const* pool;
};

TYPED_TEST(pool_timeout, holds_in_destructors_of_static_objects_younger_than_the_pool) {
    GTEST_FLAG_SET(death_test_style, test::style_of_new_process);
    EXPECT_EXIT(
        {
            static TypeParam pool(1);
            static TypeParam* const address = &pool;
            static const waits_at_exit<TypeParam> younger{&address};
            sync_wait(ex::starts_on(pool.get_scheduler(), times_out(pool, 1ms)));
            std::exit(7);
        },
        testing::ExitedWithCode(7), "fired, timely");
}

// The pool is never destroyed, and the timer of the process has ended.
TEST(contract_pool_timeout, is_stopped_in_destructors_of_static_objects_older_than_the_pool) {
    GTEST_FLAG_SET(death_test_style, test::style_of_new_process);
    EXPECT_EXIT(
        {
            static contract_pool* pool = nullptr;
            static const waits_at_exit<contract_pool> older{&pool};
            pool = new contract_pool(1);
            sync_wait(ex::starts_on(pool->get_scheduler(), times_out(*pool, 1ms)));
            std::exit(7);
        },
        testing::ExitedWithCode(7), "stopped, stopped");
}

TEST(contract_pool_timeout, is_stopped_with_its_work_if_the_system_has_no_thread_for_the_timer) {
    if (test::emulated) GTEST_SKIP() << test::no_filters_there;
    GTEST_FLAG_SET(death_test_style, test::style_of_new_process);
    EXPECT_EXIT(
        {
            contract_pool pool(1);
            const unsigned again = SECCOMP_RET_ERRNO | static_cast<unsigned>(EAGAIN);
            if (!test::filter_calls(SYS_clone3, again) || !test::filter_calls(SYS_clone, again)) {
                ::_exit(7);
            }
            const bool fired = sync_wait(ex::schedule_after(pool.get_scheduler(), 1ms)).has_value();
            // The only worker waits for the stop callback, so the timer cannot complete before.
            flag told{false};
            ex::counting_scope scope;
            occupy(pool, told, scope);
            const auto limited =
                sync_wait(calls_after(pool, 1h, [&told] { told.store(true, release); }));
            ::_exit(fired || limited.has_value() ? 1 : 7);
        },
        testing::ExitedWithCode(7), "");
}

// The thread that requests the stops may still be in the last one when the pool is gone.
TEST(contract_pool_timeout, timers_may_be_stopped_while_another_thread_destroys_the_pool) {
    for (int round = 0; round != test::repeated(100); ++round) {
        std::optional<contract_pool> pool(std::in_place, std::size_t{1});
        const auto sch = pool->get_scheduler();
        std::deque<inplace_stop_source> sources(20);
        ex::counting_scope scope;
        for (inplace_stop_source& source : sources) {
            spawn(ex::write_env(ex::schedule_after(sch, 1h),
                                ex::prop(get_stop_token, source.get_token())),
                  scope);
        }
        flag begins{false};
        std::thread stopper([&] {
            wait_for(begins);
            for (inplace_stop_source& source : sources) source.request_stop();
        });
        begins.store(true, release);
        for (int i = 0; i != round; ++i) coppice::internal::spin_hint();
        pool.reset();
        stopper.join();
        sync_wait(scope.join());
    }
}

}  // namespace
