// select over locks, permits, events, arrivals, and conditions: only the branch that won has
// effect.
#include <coppice/channel.hpp>

#include "kinds.hpp"

#include <tuple>
#include <utility>

namespace {

using namespace coppice;
using namespace coppice::test;

TEST(select_of_locks, takes_the_branch_that_is_ready) {
    async_mutex mutex;
    async_semaphore semaphore(1);
    async_event event;
    const auto held = mutex.try_lock();
    const auto work = [](async_mutex& m, async_semaphore& s, async_event& e) -> task<std::size_t> {
        auto won = co_await select(m.lock(), s.acquire(2), e.wait());
        co_return won.index();
    };
    event.set();
    EXPECT_EQ(std::get<0>(this_thread::sync_wait(work(mutex, semaphore, event)).value()), 2u);
    event.reset();
    semaphore.release();
    EXPECT_EQ(std::get<0>(this_thread::sync_wait(work(mutex, semaphore, event)).value()), 1u);
    EXPECT_EQ(semaphore.available(), 2u);
}

TEST(select_of_locks, a_branch_that_lost_leaves_its_queue_and_lets_others_go) {
    async_semaphore semaphore(1);
    async_event event;
    bool small = false;
    const auto work = [&]() -> task<std::size_t> {
        auto won = co_await select(semaphore.acquire(2), event.wait());
        co_return won.index();
    };
    const auto others = [&]() -> task<> {
        semaphore.acquire(1, [&](std::error_code, async_semaphore::permit) { small = true; });
        EXPECT_FALSE(small);  // behind the large request
        event.set();
        EXPECT_TRUE(small);
        co_return;
    };
    EXPECT_EQ(std::get<0>(this_thread::sync_wait(ex::when_all(work(), others())).value()), 1u);
    EXPECT_EQ(semaphore.available(), 1u);
}

TEST(select_of_locks, a_condition_that_lost_has_its_lock_again) {
    async_mutex mutex;
    async_condition condition;
    async_event event;
    const auto work = [&]() -> task<std::size_t> {
        auto guard = co_await mutex.lock();
        auto won = co_await select(condition.wait(guard), event.wait());
        EXPECT_TRUE(guard);
        EXPECT_FALSE(mutex.try_lock());
        co_return won.index();
    };
    const auto others = [&]() -> task<> {
        EXPECT_TRUE(mutex.try_lock());
        event.set();
        co_return;
    };
    EXPECT_EQ(std::get<0>(this_thread::sync_wait(ex::when_all(work(), others())).value()), 1u);
    EXPECT_TRUE(mutex.try_lock());
    condition.notify_one();
}

TEST(select_of_locks, an_arrival_that_lost_has_arrived) {
    async_barrier barrier(2);
    async_latch latch(2);
    async_event event;
    const auto work = [&]() -> task<std::size_t> {
        auto won =
            co_await select(barrier.arrive_and_wait(), latch.arrive_and_wait(), event.wait());
        co_return won.index();
    };
    const auto others = [&]() -> task<> {
        event.set();
        co_return;
    };
    EXPECT_EQ(std::get<0>(this_thread::sync_wait(ex::when_all(work(), others())).value()), 2u);
    EXPECT_TRUE(this_thread::sync_wait(barrier.arrive_and_wait()));
    latch.count_down();
    EXPECT_TRUE(latch.try_wait());
}

}  // namespace
