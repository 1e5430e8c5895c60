// select: which operations may be its branches, and that each gives what an await gives.
#include <coppice/channel.hpp>
#include <coppice/sync.hpp>

#include "select_of.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <optional>
#include <variant>

namespace {

using namespace coppice;
using namespace coppice::test;

TEST(select, works_with_every_kind_of_channel) {
    spsc_channel<int> pair(1);
    unbounded_channel<int> endless;
    oneshot<int> once;
    watch<int> latest(0);
    broadcast_channel<int> all(2);
    auto subscriber = all.subscribe();
    auto start = [&] {
        return select_of(pair.receive(), endless.receive(), once.receive(),
                         latest.changed(latest.version()), subscriber.receive());
    };
    for (std::size_t i = 0; i != 5; ++i) {
        auto s = start();
        s.start();
        EXPECT_TRUE(s.pending());
        switch (i) {
            case 0:
                EXPECT_TRUE(pair.try_send(1));
                break;
            case 1:
                EXPECT_TRUE(endless.send(1));
                break;
            case 2:
                EXPECT_TRUE(all.send(1));
                break;
            case 3:
                latest.set(1);
                break;
            default:
                EXPECT_TRUE(once.send(1));
                break;
        }
        ASSERT_EQ(s.how(), channel_end::value);
        EXPECT_EQ(s.value().index(), (std::array{0u, 1u, 4u, 3u, 2u}[i]));
    }
}

TEST(select, a_bounded_queue_gives_a_branch_what_it_gives_an_await) {
    bounded_queue<int> q(1);
    channel<int> never(0);
    auto push = select_of(q.async_push(1), never.receive());
    push.start();
    EXPECT_TRUE(std::get<0>(push.value()));
    auto pop = select_of(never.receive(), q.async_pop());
    pop.start();
    EXPECT_EQ(std::get<1>(pop.value()), 1);
    auto closed = select_of(q.async_pop(), never.receive());
    closed.start();
    q.close();
    EXPECT_EQ(std::get<0>(closed.value()), std::nullopt);
}

TEST(select, every_operation_of_this_room_without_an_effect_is_a_branch_of_its_own_kind) {
    async_shared_mutex m;
    async_semaphore s(1);
    async_event e;
    async_auto_event a;
    async_latch l(1);
    async_barrier b(1);
    auto is_native = [](auto op) { return !internal::select_operand<decltype(op)>::is_sender; };
    EXPECT_TRUE(is_native(m.lock()) && is_native(m.lock_shared()) && is_native(s.acquire()) &&
                is_native(e.wait()) && is_native(a.wait()) && is_native(l.wait()));
    EXPECT_FALSE(is_native(l.arrive_and_wait()));
    EXPECT_FALSE(is_native(b.arrive_and_wait()));
}

TEST(select, a_semaphore_serves_the_waiters_behind_a_large_request_that_left) {
    async_semaphore s(1);
    async_event e;
    auto large = select_of(s.acquire(2), e.wait());
    auto small = operation_of<async_semaphore::permit>(s.acquire(1));
    large.start();
    small.start();
    EXPECT_TRUE(small.pending());
    e.set();
    EXPECT_EQ(large.value().index(), 1u);
    EXPECT_EQ(small.how(), channel_end::value);
}

}  // namespace
