// sync/mutex.hpp: the guard, try_lock, and misuse. waiting_test.cpp tests the waits.
#include <coppice/sync/mutex.hpp>

#include <coppice/execution.hpp>
#include <coppice/task.hpp>

#include "allocations.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

namespace {

using namespace coppice;
using namespace coppice::test;
namespace ex = coppice::execution;

constinit async_mutex before_all_constructors;

TEST(async_mutex, try_lock_fails_while_the_lock_is_held) {
    std::optional<async_mutex::guard> guard = before_all_constructors.try_lock();
    ASSERT_TRUE(guard);
    EXPECT_TRUE(*guard);
    EXPECT_FALSE(before_all_constructors.try_lock());
    guard->unlock();
    EXPECT_FALSE(*guard);
    guard->unlock();  // holds nothing: no effect
    EXPECT_TRUE(before_all_constructors.try_lock());
}

TEST(async_mutex, a_moved_guard_unlocks_once) {
    async_mutex mutex;
    async_mutex::guard second;
    {
        async_mutex::guard first = std::move(*mutex.try_lock());
        second = std::move(first);
        EXPECT_FALSE(first);
    }
    EXPECT_FALSE(mutex.try_lock());
    second = async_mutex::guard();
    EXPECT_TRUE(mutex.try_lock());
}

TEST(async_mutex, unlock_gives_the_lock_to_the_waiter_before_it_returns) {
    async_mutex mutex;
    std::optional<async_mutex::guard> held = mutex.try_lock();
    async_mutex::guard waiters;
    mutex.lock([&](std::error_code, async_mutex::guard g) { waiters = std::move(g); });
    EXPECT_FALSE(waiters);
    held->unlock();
    EXPECT_TRUE(waiters);
    EXPECT_FALSE(mutex.try_lock());
}

TEST(async_mutex, a_free_lock_is_taken_without_an_allocation) {
    async_mutex mutex;
    std::size_t allocated = 1;
    const auto work = [](async_mutex& m, std::size_t& a) -> task<> {
        const allocation_count count;
        for (int i = 0; i != 100; ++i) const auto guard = co_await m.lock();
        a = count.so_far();
    };
    this_thread::sync_wait(work(mutex, allocated));
    EXPECT_EQ(allocated, 0u);
}

TEST(async_mutex_death_test, destroying_a_mutex_with_a_waiter_stops_the_process) {
    EXPECT_DEATH(
        {
            std::optional<async_mutex> mutex(std::in_place);
            const auto held = mutex->try_lock();
            mutex->lock([](std::error_code, const async_mutex::guard&) {});
            mutex.reset();
        },
        "destroyed with members");
}

}  // namespace
