// The waiters of a shared_task: each may be stopped or expire; the last one ends the work.
#include <coppice/task/shared_task.hpp>

#include <coppice/exec/read_env.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/run.hpp>
#include <coppice/io/timer.hpp>

#include "shared_tasks.hpp"
#include "turnstile.hpp"
#include "witness.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <list>
#include <optional>
#include <system_error>
#include <tuple>

namespace {

namespace ex = coppice::execution;
using namespace std::chrono_literals;
using coppice::shared_task;
using coppice::task;
using coppice::test::counting_receiver;
using coppice::test::counts;
using coppice::test::gated;
using coppice::test::turnstile;
using coppice::test::waiter;
using coppice::test::witness;
using coppice::this_thread::sync_wait;

TEST(shared_task, resumes_everything_that_waits) {
    turnstile gate;
    int alive = 0;
    const auto s = gated(gate, alive);
    std::list<waiter> waiters;
    for (int i = 0; i != 100; ++i) ex::start(waiters.emplace_back(s).op);
    for (const waiter& w : waiters) EXPECT_EQ(w.seen.values, 0);
    gate.let_pass();
    for (const waiter& w : waiters) EXPECT_EQ(w.seen.values, 1);
    EXPECT_EQ(alive, 0);
}

TEST(shared_task, a_stopped_waiter_leaves_and_the_others_do_not_notice) {
    turnstile gate;
    int alive = 0;
    const auto s = gated(gate, alive);
    waiter a(s);
    waiter b(s);
    waiter c(s);
    for (waiter* w : {&a, &b, &c}) ex::start(w->op);
    b.seen.source.request_stop();
    EXPECT_EQ(b.seen.stops, 1);
    EXPECT_TRUE(gate.has_waiter());
    a.seen.source.request_stop();  // the one that has started the work
    EXPECT_EQ(a.seen.stops, 1);
    EXPECT_TRUE(gate.has_waiter());
    gate.let_pass();
    EXPECT_EQ(c.seen.values, 1);
}

TEST(shared_task, a_waiter_that_was_stopped_before_it_started_starts_nothing) {
    turnstile gate;
    int alive = 0;
    const auto s = gated(gate, alive);
    waiter a(s);
    a.seen.source.request_stop();
    ex::start(a.op);
    EXPECT_EQ(a.seen.stops, 1);
    EXPECT_FALSE(gate.has_waiter());
    waiter b(s);
    ex::start(b.op);
    gate.let_pass();
    EXPECT_EQ(b.seen.values, 1);
}

TEST(shared_task, goes_on_without_waiters_while_a_copy_is_left) {
    turnstile gate;
    int alive = 0;
    const auto s = gated(gate, alive);
    {
        waiter a(s);
        ex::start(a.op);
        a.seen.source.request_stop();
        EXPECT_EQ(a.seen.stops, 1);
    }
    EXPECT_TRUE(gate.has_waiter());
    gate.let_pass();
    EXPECT_TRUE(s.is_ready());
    EXPECT_EQ(sync_wait(s), std::tuple(7));
}

TEST(shared_task, is_stopped_when_the_last_copy_or_waiter_goes) {
    turnstile gate;
    int alive = 0;
    {
        std::optional<shared_task<int>> s(gated(gate, alive));
        waiter a(*s);
        ex::start(a.op);
        waiter b(*s);
        ex::start(b.op);
        s.reset();
        a.seen.source.request_stop();
        EXPECT_EQ(a.seen.stops, 1);
        EXPECT_EQ(alive, 1);
        b.seen.source.request_stop();
        EXPECT_EQ(b.seen.stops, 1);
        EXPECT_EQ(alive, 0);
        EXPECT_FALSE(gate.has_waiter());
    }
    {
        std::optional<shared_task<int>> s(gated(gate, alive));
        std::optional<waiter> a(*s);
        ex::start(a->op);
        a->seen.source.request_stop();
        a.reset();
        EXPECT_EQ(alive, 1);
        s.reset();
        EXPECT_EQ(alive, 0);
    }
}

TEST(shared_task, a_waiter_with_the_last_copy_waits_until_the_stopped_work_has_ended) {
    turnstile cleaned;
    int alive = 0;
    const auto cleans_up = [](turnstile& gate, int& a) -> shared_task<int> {
        const witness local(a);
        co_await (ex::unstoppable(gate.wait()));
        co_return 7;
    };
    counts seen;
    auto op = ex::connect(cleans_up(cleaned, alive), counting_receiver(seen));
    ex::start(op);
    seen.source.request_stop();
    EXPECT_EQ(seen.values + seen.stops, 0);
    EXPECT_EQ(alive, 1);
    cleaned.let_pass();
    EXPECT_EQ(seen.values, 1);
    EXPECT_EQ(alive, 0);
}

TEST(shared_task, a_waiter_with_the_last_copy_that_is_stopped_before_it_waits_stops_the_work) {
    turnstile gate;
    int alive = 0;
    bool is_told = false;
    const auto cleans_up = [](turnstile& g, int& a, bool& told) -> shared_task<int> {
        const witness local(a);
        const auto token = co_await ex::read_env(coppice::get_stop_token);
        co_await (ex::unstoppable(g.wait()));
        told = token.stop_requested();
        co_return 7;
    };
    for (const bool is_task : {false, true}) {
        SCOPED_TRACE(is_task);
        counts seen;
        seen.source.request_stop();
        const auto awaits = [](shared_task<int> s) -> task<int> {
            co_return co_await std::move(s);
        };
        shared_task<int> last = cleans_up(gate, alive, is_told);
        {
            waiter first(last);
            ex::start(first.op);
            first.seen.source.request_stop();
            EXPECT_EQ(first.seen.stops, 1);
        }
        const auto wait = [&](auto&& sender) {
            auto op = ex::connect(std::forward<decltype(sender)>(sender), counting_receiver(seen));
            ex::start(op);
            EXPECT_EQ(seen.values + seen.stops, 0);
            EXPECT_EQ(alive, 1);
            gate.let_pass();
            EXPECT_EQ(seen.values + seen.stops, 1);
            EXPECT_EQ(alive, 0);
            EXPECT_TRUE(is_told);
        };
        if (is_task) {
            wait(awaits(std::move(last)));
        } else {
            wait(std::move(last));
        }
    }
}

TEST(shared_task, a_timeout_of_one_waiter_leaves_the_work_to_the_others) {
    coppice::io::run([&](coppice::io::context&) -> task<> {
        turnstile gate;
        const auto slow = [&]() -> shared_task<int> {
            co_await gate.wait();
            co_return 3;
        };
        const auto s = slow();
        bool expired = false;
        try {
            co_await ex::timeout(s, 1ms);
        } catch (const std::system_error& e) {
            expired = e.code() == std::errc::timed_out;
        }
        EXPECT_TRUE(expired);
        gate.let_pass();
        EXPECT_EQ(co_await s, 3);
    });
}

TEST(shared_task, ignores_the_deadline_of_the_waiter_that_starts_it) {
    coppice::io::run([&](coppice::io::context& loop) -> task<> {
        coppice::io::timer timer(loop);
        const auto slow = [&]() -> shared_task<int> {
            co_await timer.wait_for(5ms);
            co_return 3;
        };
        const ex::instant soon = ex::monotonic_now() + ex::time_span(1ms);
        const auto s = slow();
        const int result = co_await ex::write_env(s | ex::then([](int i) { return i; }),
                                                  ex::prop(ex::get_deadline, soon));
        EXPECT_EQ(result, 3);
    });
}

TEST(shared_task_death, a_waiter_that_is_destroyed_while_it_waits_stops_the_process) {
    turnstile gate;
    int alive = 0;
    const auto s = gated(gate, alive);
    std::optional<waiter> w(s);
    ex::start(w->op);
    EXPECT_DEATH(w.reset(), "destroyed while it waited");
    gate.let_pass();
}

}  // namespace
