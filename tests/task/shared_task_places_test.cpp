// Where a shared_task and its waiters run: each on its own scheduler, from many threads.
#include <coppice/task/shared_task.hpp>

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/run.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/task/internal/async_generator_next.hpp>
#include <coppice/token/async_generator.hpp>

#include "shared_tasks.hpp"
#include "turnstile.hpp"

#include <gtest/gtest.h>

#include <coroutine>
#include <cstddef>
#include <exception>
#include <string>
#include <thread>

namespace {

namespace ex = coppice::execution;
using coppice::shared_task;
using coppice::task;
using coppice::test::counted;
using coppice::test::gated;
using coppice::test::run;
using coppice::test::turnstile;
using coppice::test::waiter;
using coppice::this_thread::sync_wait;

TEST(shared_task, each_waiter_continues_on_its_own_scheduler) {
    coppice::thread_pool pool(1);
    std::thread::id body_ran;
    const auto work = [&]() -> shared_task<int> {
        co_await (ex::schedule(pool.get_scheduler()) | ex::then([] {}));
        body_ran = std::this_thread::get_id();
        co_return 1;
    };
    const auto here = std::this_thread::get_id();
    const auto waits = [](shared_task<int> s) -> task<std::thread::id> {
        co_await s;
        co_return std::this_thread::get_id();
    };
    const auto s = work();
    coppice::io::run([&](coppice::io::context&) -> task<> {
        const auto [on_loop, on_pool] =
            co_await ex::when_all(waits(s), ex::starts_on(pool.get_scheduler(), waits(s)));
        EXPECT_EQ(on_loop, here);
        EXPECT_NE(on_pool, here);
        EXPECT_EQ(body_ran, here);  // the loop has started it
    });
}

TEST(shared_task, a_stopped_waiter_ends_on_its_own_scheduler) {
    turnstile gate;
    int alive = 0;
    const auto s = gated(gate, alive);
    waiter starter(s);
    ex::start(starter.op);
    coppice::inplace_stop_source source;
    std::thread::id ended;
    const auto waits = [&]() -> task<> {
        const coppice::scope_exit leave([&] { ended = std::this_thread::get_id(); });
        co_await s;
    };
    ex::run_loop loop;
    struct receiver {
        using receiver_concept = ex::receiver_tag;
        ex::run_loop* loop;
        coppice::inplace_stop_source* source;
        void set_value() && noexcept {}
        void set_error(std::exception_ptr) && noexcept {}
        void set_stopped() && noexcept { loop->finish(); }
        auto get_env() const noexcept {
            return ex::env(ex::prop(coppice::get_stop_token, source->get_token()),
                           ex::prop(ex::get_start_scheduler, loop->get_scheduler()));
        }
    };
    auto op = ex::connect(waits(), receiver{&loop, &source});
    ex::start(op);
    std::thread stopper([&] { source.request_stop(); });
    loop.run();
    stopper.join();
    EXPECT_EQ(ended, std::this_thread::get_id());
    gate.let_pass();
    EXPECT_EQ(starter.seen.values, 1);
}

TEST(shared_task, is_awaited_by_async_generators_and_other_coroutines) {
    int runs = 0;
    const auto s = counted(runs);
    const auto sizes =
        [](shared_task<std::string> shared) -> coppice::async_generator<std::size_t> {
        const std::string& text = co_await shared;
        co_yield text.size();
    };
    auto g = sizes(s);
    const auto body = [&]() -> task<> { EXPECT_EQ(co_await g.next(), 6u); };
    run(body());
    struct plain {
        struct promise_type {
            plain get_return_object() noexcept { return {}; }
            std::suspend_never initial_suspend() const noexcept { return {}; }
            std::suspend_never final_suspend() const noexcept { return {}; }
            void unhandled_exception() noexcept { std::terminate(); }
            void return_void() noexcept {}
        };
    };
    std::string seen;
    [](shared_task<std::string> shared, std::string& out, int& r) -> plain {
        const std::string& text = co_await shared;
        out = text + co_await counted(r);
    }(s, seen, runs);
    EXPECT_EQ(seen, "resultresult");
}

// ---- Threads ------------------------------------------------------------------------------------

TEST(shared_task, many_threads_await_it_and_some_are_stopped) {
    coppice::thread_pool pool(3);
    for (int round = 0; round != 100; ++round) {
        int runs = 0;
        const auto work = [](coppice::thread_pool& p, int& count) -> shared_task<std::string> {
            ++count;
            co_await (ex::schedule(p.get_scheduler()) | ex::then([] {}));
            co_return "a result that is too long for the small buffer of strings";
        };
        const auto waits = [](shared_task<std::string> s) -> task<std::size_t> {
            co_return (co_await s).size();
        };
        auto s = work(pool, runs);
        coppice::inplace_stop_source source;
        const auto on_pool = [&] { return ex::starts_on(pool.get_scheduler(), waits(s)); };
        const auto stoppable = [&] {
            return ex::stopped_as_optional(
                ex::write_env(on_pool(), ex::prop(coppice::get_stop_token, source.get_token())));
        };
        std::thread stopper([&] {
            for (int i = 0; i != round % 10; ++i) std::this_thread::yield();
            source.request_stop();
        });
        const auto [a, b, c, d] =
            *sync_wait(ex::when_all(on_pool(), stoppable(), on_pool(), stoppable()));
        stopper.join();
        EXPECT_EQ(a, 57u);
        EXPECT_EQ(c, 57u);
        EXPECT_EQ(b.value_or(57u), 57u);
        EXPECT_EQ(d.value_or(57u), 57u);
        EXPECT_EQ(runs, 1);
    }
}

struct begun_and_ended {
    coppice::internal::atomic<int> begun{0};
    coppice::internal::atomic<int> ended{0};
};
shared_task<int> endless(coppice::thread_pool& pool, begun_and_ended& count) {
    count.begun.fetch_add(1, coppice::internal::relaxed);
    const coppice::scope_exit leave(
        [&count] { count.ended.fetch_add(1, coppice::internal::relaxed); });
    for (;;) co_await (ex::schedule(pool.get_scheduler()) | ex::then([] {}));
}

// No thread waits for the end of work whose last copy went. What it refers to is the pool, which
// runs it to its end, and the counts, which outlive the pool. The work is no lambda with captures,
// because those would have to outlive the pool too.
TEST(shared_task, the_last_of_many_threads_stops_it) {
    begun_and_ended count;
    {
        coppice::thread_pool pool(2);
        const auto waits = [](shared_task<int> s) -> task<> { co_await s; };
        for (int round = 0; round != 50; ++round) {
            coppice::inplace_stop_source source;
            const auto s = endless(pool, count);
            std::thread stopper([&] {
                for (int i = 0; i != round % 10; ++i) std::this_thread::yield();
                source.request_stop();
            });
            const auto result =
                sync_wait(ex::write_env(ex::when_all(ex::starts_on(pool.get_scheduler(), waits(s)),
                                                     ex::starts_on(pool.get_scheduler(), waits(s))),
                                        ex::prop(coppice::get_stop_token, source.get_token())));
            stopper.join();
            EXPECT_FALSE(result.has_value());
        }
    }
    EXPECT_EQ(count.begun.load(coppice::internal::relaxed),
              count.ended.load(coppice::internal::relaxed));
}

}  // namespace
