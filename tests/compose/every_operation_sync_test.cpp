// The waits of room sync, stopped in every way: locks, events, arrivals, and values made once.
#include <coppice/sync.hpp>

#include "every_operation.hpp"

namespace {

using namespace coppice;
using namespace coppice::test;
using namespace std::chrono_literals;

class every_operation_of_sync : public testing::Test {
protected:
    void check(waiting_operation op) {
        on_loop{loop}(stop_in_every_way(loop, std::move(op), true));
    }
    // An operation that waits until `grant` is called.
    template <class Make, class Grant>
    void check(const char* name, Make make, Grant grant) {
        check(waits(name, make, [this, grant] { return grant_later(loop, grant); }));
    }
    template <class Grant>
    static task<> grant_later(io::context& loop, Grant grant) {
        co_await loop.get_scheduler().schedule_after(1ms);
        grant();
    }

    io::context loop;
};

TEST_F(every_operation_of_sync, locks) {
    async_mutex mutex;
    auto held = mutex.try_lock();
    check("async_mutex::lock", [&] { return mutex.lock(); }, [&] { held.reset(); });
    async_shared_mutex shared;
    auto writer = shared.try_lock();
    check("async_shared_mutex::lock", [&] { return shared.lock(); }, [&] { writer.reset(); });
    writer = shared.try_lock();
    check(
        "async_shared_mutex::lock_shared", [&] { return shared.lock_shared(); },
        [&] { writer.reset(); });
    async_semaphore semaphore(1);
    check(
        "async_semaphore::acquire", [&] { return semaphore.acquire(2); },
        [&] { semaphore.release(); });
    EXPECT_EQ(semaphore.available(), 2u);
}

TEST_F(every_operation_of_sync, events) {
    async_event event;
    check("async_event::wait", [&] { return event.wait(); }, [&] { event.set(); });
    async_auto_event once;
    check("async_auto_event::wait", [&] { return once.wait(); }, [&] { once.set(); });
    EXPECT_FALSE(once.try_wait());
}

TEST_F(every_operation_of_sync, arrivals) {
    constexpr std::size_t many = 100;
    async_latch latch(many);
    check(
        "async_latch::arrive_and_wait", [&] { return latch.arrive_and_wait(); },
        [&] {
            while (!latch.try_wait()) latch.count_down();
        });
    async_latch other(1);
    check("async_latch::wait", [&] { return other.wait(); }, [&] { other.count_down(); });
    async_barrier barrier(many);
    std::size_t arrived = 0;
    check(
        "async_barrier::arrive_and_wait",
        [&] {
            ++arrived;
            return barrier.arrive_and_wait();
        },
        [&] {
            for (; arrived != many; ++arrived) barrier.arrive_and_drop();
        });
}

task<> wait_locked(async_mutex& mutex, async_condition& condition) {
    auto guard = co_await mutex.lock();
    co_await condition.wait(guard);
}

TEST_F(every_operation_of_sync, conditions) {
    async_mutex mutex;
    async_condition condition;
    check(
        "async_condition::wait", [&] { return wait_locked(mutex, condition); },
        [&] { condition.notify_one(); });
    EXPECT_TRUE(mutex.try_lock());
}

task<int> value_after(async_event& event) {
    co_await event.wait();
    co_return 1;
}

TEST_F(every_operation_of_sync, values_made_once) {
    async_event event;
    async_once<int> once;
    check(
        "async_once::get", [&] { return once.get([&] { return value_after(event); }); },
        [&] { event.set(); });
    EXPECT_NE(once.try_get(), nullptr);
}

}  // namespace
