// sync/condition.hpp: the guard is locked again however a wait ends, and no notification is lost.
#include <coppice/sync/condition.hpp>

#include <coppice/pool.hpp>

#include "allocations.hpp"
#include "kinds.hpp"

#include <chrono>
#include <deque>
#include <thread>

namespace {

using namespace coppice;
using namespace coppice::test;
using namespace std::chrono_literals;

// Waits by a callback, with the lock held before, and again when it ends.
struct waiter {
    waiter(async_mutex& m, async_condition& c) : guard(std::move(*m.try_lock())) {
        c.wait(guard,
               bind_env(ex::prop(get_stop_token, stop.get_token()), [this](std::error_code ec) {
                   ended = true;
                   error = ec;
               }));
    }
    async_mutex::guard guard;
    inplace_stop_source stop;
    bool ended = false;
    std::error_code error;
};

TEST(async_condition, a_wait_unlocks_and_locks_again_when_it_is_notified) {
    async_mutex mutex;
    async_condition condition;
    waiter w(mutex, condition);
    auto held = mutex.try_lock();
    ASSERT_TRUE(held);
    condition.notify_one();
    EXPECT_FALSE(w.ended);  // the lock is held
    held->unlock();
    EXPECT_TRUE(w.ended);
    EXPECT_FALSE(w.error);
    EXPECT_TRUE(w.guard);
    EXPECT_FALSE(mutex.try_lock());
    w.guard.unlock();
    EXPECT_TRUE(mutex.try_lock());
}

TEST(async_condition, a_notification_without_a_waiter_is_not_remembered) {
    async_mutex mutex;
    async_condition condition;
    condition.notify_one();
    condition.notify_all();
    waiter w(mutex, condition);
    EXPECT_FALSE(w.ended);
    condition.notify_one();
    EXPECT_TRUE(w.ended);
}

TEST(async_condition, notified_waiters_get_the_lock_in_order_one_at_a_time) {
    async_mutex mutex;
    async_condition condition;
    std::deque<waiter> waiters;
    for (int i = 0; i != 4; ++i) waiters.emplace_back(mutex, condition);
    condition.notify_one();
    EXPECT_TRUE(waiters[0].ended);
    EXPECT_FALSE(waiters[1].ended);
    condition.notify_all();
    for (std::size_t i = 1; i != 4; ++i) {
        EXPECT_FALSE(waiters[i].ended);
        waiters[i - 1].guard.unlock();
        EXPECT_TRUE(waiters[i].ended);
    }
}

TEST(async_condition, a_stopped_wait_ends_with_the_lock_held_and_takes_no_notification) {
    async_mutex mutex;
    async_condition condition;
    std::deque<waiter> waiters;
    for (int i = 0; i != 2; ++i) waiters.emplace_back(mutex, condition);
    auto held = mutex.try_lock();
    waiters[0].stop.request_stop();
    EXPECT_FALSE(waiters[0].ended);  // it waits for the lock
    held->unlock();
    EXPECT_TRUE(waiters[0].ended);
    EXPECT_EQ(waiters[0].error, std::errc::operation_canceled);
    EXPECT_FALSE(mutex.try_lock());
    condition.notify_one();
    waiters[0].guard.unlock();
    EXPECT_TRUE(waiters[1].ended);
    EXPECT_FALSE(waiters[1].error);
}

TEST(async_condition, a_stop_after_the_notification_has_no_effect) {
    async_mutex mutex;
    async_condition condition;
    waiter w(mutex, condition);
    auto held = mutex.try_lock();
    condition.notify_one();
    w.stop.request_stop();
    held->unlock();
    EXPECT_TRUE(w.ended);
    EXPECT_FALSE(w.error);
}

TEST(async_condition, a_wait_that_was_stopped_before_it_began_never_unlocks) {
    async_mutex mutex;
    async_condition condition;
    auto guard = mutex.try_lock();
    inplace_stop_source stop;
    stop.request_stop();
    std::error_code error;
    condition.wait(*guard, bind_env(ex::prop(get_stop_token, stop.get_token()),
                                    [&](std::error_code ec) { error = ec; }));
    EXPECT_EQ(error, std::errc::operation_canceled);
    EXPECT_FALSE(mutex.try_lock());
    condition.notify_one();
}

TEST(async_condition, a_deadline_ends_a_wait_with_the_lock_held) {
    async_mutex mutex;
    async_condition condition;
    auto guard = mutex.try_lock();
    std::error_code ec;
    const ex::instant soon(std::chrono::steady_clock::now() + 2ms);
    condition.wait(*guard, bind_env(ex::prop(ex::get_deadline, soon), block[ec]));
    EXPECT_EQ(ec, std::errc::operation_canceled);
    EXPECT_TRUE(*guard);
    EXPECT_FALSE(mutex.try_lock());
}

TEST(async_condition, a_task_that_is_stopped_in_a_wait_unlocks_at_its_end) {
    async_mutex mutex;
    async_condition condition;
    inplace_stop_source stop;
    const auto work = [](async_mutex& m, async_condition& c) -> task<> {
        auto guard = co_await m.lock();
        co_await c.wait(guard);
    };
    std::thread stopper([&] { stop.request_stop(); });
    EXPECT_FALSE(this_thread::sync_wait(
        ex::write_env(work(mutex, condition), ex::prop(get_stop_token, stop.get_token()))));
    stopper.join();
    EXPECT_TRUE(mutex.try_lock());
}

// Producers and consumers on a pool; some consumers give up.
TEST(async_condition, nothing_is_lost_between_producers_and_consumers_that_give_up) {
    thread_pool pool(2);
    async_mutex mutex;
    async_condition condition;
    std::deque<int> queue;
    long taken = 0;
    const auto take = [](async_mutex& m, async_condition& c, std::deque<int>& q,
                         long& sum) -> task<> {
        auto guard = co_await m.lock();
        while (q.empty()) co_await c.wait(guard);
        sum += q.front();
        q.pop_front();
    };
    const auto consume = [&]() -> task<> {
        for (int i = 0; i != 500; ++i) co_await take(mutex, condition, queue, taken);
    };
    const auto impatient = [&]() -> task<> {
        for (int i = 0; i != 500; ++i) {
            // Waits for what never comes, and leaves the notifications to the others.
            const auto never = [](async_mutex& m, async_condition& c) -> task<> {
                auto guard = co_await m.lock();
                for (;;) {
                    co_await c.wait(guard);
                    c.notify_one();  // it was for another one
                    guard.unlock();
                    guard = co_await m.lock();
                }
            };
            co_await ex::when_any(never(mutex, condition), ex::schedule(pool.get_scheduler()));
        }
    };
    const auto produce = [&]() -> task<> {
        for (int i = 0; i != 500; ++i) {
            auto guard = co_await mutex.lock();
            queue.push_back(1);
            if (i % 2 == 0) guard.unlock();
            condition.notify_one();
        }
    };
    const auto on_pool = [&](auto& work) { return ex::starts_on(pool.get_scheduler(), work()); };
    this_thread::sync_wait(ex::when_all(on_pool(consume), on_pool(consume), on_pool(produce),
                                        on_pool(produce), on_pool(impatient)));
    EXPECT_EQ(taken, 1000);
    EXPECT_TRUE(queue.empty());
}

TEST(async_condition, waiting_and_notifying_allocate_nothing) {
    async_mutex mutex;
    async_condition condition;
    std::size_t allocated = 1;
    for (int round = 0; round != 3; ++round) {
        const allocation_count count;
        waiter w(mutex, condition);
        condition.notify_one();
        EXPECT_TRUE(w.ended);
        allocated = count.so_far();
    }
    EXPECT_EQ(allocated, 0u);
}

TEST(async_condition, two_tasks_that_notify_each_other_use_constant_stack) {
    async_mutex mutex;
    async_condition changed;
    bool mine = true;
    const auto play = [](async_mutex& m, async_condition& c, bool& turn, bool me) -> task<> {
        auto guard = co_await m.lock();
        for (int i = 0; i != 200'000; ++i) {
            while (turn != me) co_await c.wait(guard);
            turn = !me;
            c.notify_one();
        }
    };
    EXPECT_TRUE(this_thread::sync_wait(
        ex::when_all(play(mutex, changed, mine, true), play(mutex, changed, mine, false))));
}

TEST(async_condition_death_test, a_wait_with_a_guard_that_holds_nothing_stops_the_process) {
    async_condition condition;
    async_mutex::guard none;
    EXPECT_DEATH(condition.wait(none, [](std::error_code) {}), "a guard that holds no lock");
}

}  // namespace
