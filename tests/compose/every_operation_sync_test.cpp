// The operations of locks, events, and channels, stopped in every way.
#include <coppice/channel.hpp>
#include <coppice/sync.hpp>

#include "every_operation.hpp"

#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;

// Each object first makes the operation wait, and then lets one operation complete.
class every_operation_of_sync : public testing::Test {
protected:
    void check(waiting_operation op) {
        on_loop{loop}(stop_in_every_way(loop, std::move(op), true));
    }
    io::context loop;
};

TEST_F(every_operation_of_sync, locks_end_by_every_kind_of_stop) {
    async_mutex mutex;
    auto held = mutex.try_lock();
    check(waits(
        "async_mutex::lock", [&] { return mutex.lock(); },
        [&]() -> task<> {
            held.reset();
            co_return;
        }));

    async_shared_mutex shared;
    auto writing = shared.try_lock();
    check(waits(
        "async_shared_mutex::lock", [&] { return shared.lock(); },
        [&]() -> task<> {
            writing.reset();
            co_return;
        }));
    writing = shared.try_lock();
    check(waits(
        "async_shared_mutex::lock_shared", [&] { return shared.lock_shared(); },
        [&]() -> task<> {
            writing.reset();
            co_return;
        }));
}

TEST_F(every_operation_of_sync, semaphores_end_by_every_kind_of_stop) {
    async_semaphore permits(1);
    auto taken = permits.try_acquire();
    check(waits(
        "async_semaphore::acquire", [&] { return permits.acquire(); },
        [&]() -> task<> {
            taken.reset();
            co_return;
        }));
}

TEST_F(every_operation_of_sync, events_end_by_every_kind_of_stop) {
    async_event event;
    check(waits(
        "async_event::wait", [&] { return event.wait(); },
        [&]() -> task<> {
            event.set();
            co_return;
        }));
    async_auto_event one;
    check(waits(
        "async_auto_event::wait", [&] { return one.wait(); },
        [&]() -> task<> {
            one.set();
            co_return;
        }));
}

TEST_F(every_operation_of_sync, latches_and_barriers_end_by_every_kind_of_stop) {
    async_latch latch(1000);
    check(waits(
        "async_latch::wait", [&] { return latch.wait(); },
        [&]() -> task<> {
            latch.count_down(1000);
            co_return;
        }));
    // A waiter that is stopped has arrived already.
    async_latch counted(1000);
    async_latch last(1);
    check(waits_never_again(
        "async_latch::arrive_and_wait", [&] { return counted.arrive_and_wait(); },
        [&] { return last.arrive_and_wait(); }));
    async_barrier barrier(1000);
    async_barrier alone(1);
    check(waits_never_again(
        "async_barrier::arrive_and_wait", [&] { return barrier.arrive_and_wait(); },
        [&] { return alone.arrive_and_wait(); }));
}

TEST_F(every_operation_of_sync, conditions_end_by_every_kind_of_stop) {
    async_mutex mutex;
    async_condition changed;
    auto guard = mutex.try_lock();
    check(waits(
        "async_condition::wait", [&] { return changed.wait(*guard); },
        [&]() -> task<> {
            // A notification before the wait would have no effect.
            co_await loop.get_scheduler().schedule_after(std::chrono::milliseconds(1));
            changed.notify_one();
        }));
}

TEST_F(every_operation_of_sync, values_made_once_end_by_every_kind_of_stop) {
    async_once<int> once;
    async_event event;
    const auto make = [&]() -> task<int> {
        co_await event.wait();
        co_return 1;
    };
    check(waits(
        "async_once::get", [&] { return once.get(make); },
        [&]() -> task<> {
            event.set();
            co_return;
        }));
}

TEST_F(every_operation_of_sync, channels_end_by_every_kind_of_stop) {
    channel<int> full(1);
    full.try_send(1);
    check(waits(
        "channel::send", [&] { return full.send(2); },
        [&]() -> task<> {
            full.try_receive();
            co_return;
        }));
    channel<int> empty(1);
    check(waits(
        "channel::receive", [&] { return empty.receive(); },
        [&]() -> task<> {
            empty.try_send(1);
            co_return;
        }));
    channel<int> meeting(0);
    check(waits(
        "channel::send to a rendezvous", [&] { return meeting.send(2); },
        [&]() -> task<> { co_await meeting.receive(); }));

    unbounded_channel<int> unbounded;
    check(waits(
        "unbounded_channel::receive", [&] { return unbounded.receive(); },
        [&]() -> task<> {
            unbounded.send(1);
            co_return;
        }));
    spsc_channel<int> crowded(1);
    while (crowded.try_send(1)) {
    }
    check(waits(
        "spsc_channel::send", [&] { return crowded.send(2); },
        [&]() -> task<> {
            crowded.try_receive();
            co_return;
        }));
    spsc_channel<int> idle(1);
    check(waits(
        "spsc_channel::receive", [&] { return idle.receive(); },
        [&]() -> task<> {
            idle.try_send(1);
            co_return;
        }));
}

TEST_F(every_operation_of_sync, oneshots_broadcasts_and_watches_end_by_every_kind_of_stop) {
    oneshot<int> answer;
    check(waits(
        "oneshot::receive", [&] { return answer.receive(); },
        [&]() -> task<> {
            answer.send(1);
            co_return;
        }));
    broadcast_channel<int> news(4);
    auto listener = news.subscribe();
    check(waits(
        "receiver::receive of a broadcast_channel", [&] { return listener.receive(); },
        [&]() -> task<> {
            news.send(1);
            co_return;
        }));
    watch<int> setting(1);
    const std::uint64_t seen = setting.version();
    check(waits(
        "watch::changed", [&] { return setting.changed(seen); },
        [&]() -> task<> {
            setting.set(2);
            co_return;
        }));
}

TEST_F(every_operation_of_sync, queues_of_the_standard_end_by_every_kind_of_stop) {
    const auto closed_is_broken = ex::let_error(
        [](auto) noexcept { return ex::just_error(std::make_error_code(std::errc::broken_pipe)); });
    bounded_queue<int> full(1);
    full.push(1);
    check(waits(
        "async_push of a bounded_queue", [&] { return full.async_push(2) | closed_is_broken; },
        [&]() -> task<> {
            full.pop();
            co_return;
        }));
    bounded_queue<int> empty(1);
    check(waits(
        "async_pop of a bounded_queue", [&] { return empty.async_pop() | closed_is_broken; },
        [&]() -> task<> {
            empty.push(1);
            co_return;
        }));
}

TEST_F(every_operation_of_sync, a_select_ends_by_every_kind_of_stop) {
    channel<int> first(1);
    channel<int> second(1);
    check(waits(
        "select", [&] { return select(first.receive(), second.receive()); },
        [&]() -> task<> {
            second.try_send(1);
            co_return;
        }));
    check(waits(
        "select_range",
        [&] {
            std::vector<decltype(first.receive())> receives;
            receives.push_back(first.receive());
            receives.push_back(second.receive());
            return select_range(std::move(receives));
        },
        [&]() -> task<> {
            first.try_send(1);
            co_return;
        }));
}

}  // namespace
