// spsc_channel: the same promises as channel, for one sender and one receiver.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/token.hpp>

#include "allocations.hpp"
#include "channel_operation.hpp"
#include "detached.hpp"
#include "small_stack.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <thread>
#include <variant>

namespace {

using namespace coppice;
using namespace coppice::test;
using nothing = std::monostate;
using item = std::optional<int>;

TEST(spsc_channel, holds_its_capacity_which_need_not_be_a_power_of_two) {
    EXPECT_THROW(spsc_channel<int>(0), std::invalid_argument);
    spsc_channel<int> c(3);
    EXPECT_EQ(c.capacity(), 3u);
    for (int round = 0; round != 10; ++round) {
        for (int i = 0; i != 3; ++i) EXPECT_TRUE(c.try_send(int(i)));
        EXPECT_FALSE(c.try_send(3));
        EXPECT_EQ(c.size(), 3u);
        for (int i = 0; i != 3; ++i) EXPECT_EQ(c.try_receive(), i);
        EXPECT_EQ(c.try_receive(), std::nullopt);
        EXPECT_EQ(c.size(), 0u);
    }
}

TEST(spsc_channel, a_refused_try_send_leaves_the_value_untouched) {
    spsc_channel<std::unique_ptr<int>> c(1);
    EXPECT_TRUE(c.try_send(std::make_unique<int>(1)));
    auto kept = std::make_unique<int>(2);
    EXPECT_FALSE(c.try_send(std::move(kept)));
    EXPECT_NE(kept, nullptr);
}

TEST(spsc_channel, a_waiting_receiver_gets_the_next_item) {
    spsc_channel<int> c(2);
    for (int i = 0; i != 200; ++i) {
        auto r = operation_of<item>(c.receive());
        r.start();
        EXPECT_TRUE(r.pending());
        EXPECT_TRUE(c.try_send(int(i)));
        EXPECT_EQ(r.value(), i);
    }
    EXPECT_TRUE(c.try_send(1));
    EXPECT_EQ(c.try_receive(), 1);
    EXPECT_EQ(c.try_receive(), std::nullopt);
}

TEST(spsc_channel, the_item_of_a_waiting_sender_comes_behind_the_others) {
    spsc_channel<int> c(2);
    for (int round = 0; round != 200; ++round) {
        EXPECT_TRUE(c.try_send(1));
        EXPECT_TRUE(c.try_send(2));
        auto s = operation_of<nothing>(c.send(3));
        s.start();
        EXPECT_TRUE(s.pending());
        EXPECT_EQ(c.try_receive(), 1);
        EXPECT_EQ(s.how(), channel_end::value);
        EXPECT_EQ(c.try_receive(), 2);
        EXPECT_EQ(c.try_receive(), 3);
    }
}

TEST(spsc_channel, a_stopped_operation_moves_nothing) {
    spsc_channel<int> c(1);
    auto r = operation_of<item>(c.receive());
    r.start();
    r.stop();
    EXPECT_EQ(r.how(), channel_end::stopped);
    EXPECT_TRUE(c.try_send(1));
    auto s = operation_of<nothing>(c.send(2));
    s.start();
    s.stop();
    EXPECT_EQ(s.how(), channel_end::stopped);
    EXPECT_EQ(c.try_receive(), 1);
    EXPECT_EQ(c.try_receive(), std::nullopt);
}

TEST(spsc_channel, close_ends_waits_and_lets_the_rest_be_received) {
    spsc_channel<int> c(1);
    EXPECT_TRUE(c.try_send(1));
    auto s = operation_of<nothing>(c.send(2));
    s.start();
    c.close();
    EXPECT_EQ(s.error(), std::errc::broken_pipe);
    EXPECT_FALSE(c.try_send(3));
    EXPECT_EQ(c.receive(block), 1);
    EXPECT_EQ(c.receive(block), std::nullopt);

    spsc_channel<int> empty(1);
    auto r = operation_of<item>(empty.receive());
    r.start();
    empty.close();
    EXPECT_EQ(r.value(), std::nullopt);
}

TEST(spsc_channel, items_that_were_not_received_are_destroyed_with_it) {
    const auto shared = std::make_shared<int>(1);
    {
        spsc_channel<std::shared_ptr<int>> c(8);
        for (int i = 0; i != 7; ++i) EXPECT_TRUE(c.try_send(std::shared_ptr<int>(shared)));
        c.try_receive();
        EXPECT_EQ(shared.use_count(), 7);
    }
    EXPECT_EQ(shared.use_count(), 1);
}

// Each side waits in turn, at first often and later rarely, so the fences change their form.
TEST(spsc_channel, two_threads_lose_no_item_at_any_capacity) {
    for (const std::size_t capacity : {std::size_t{1}, std::size_t{2}, std::size_t{1024}}) {
        spsc_channel<int> c(capacity);
        constexpr int count = 30'000;
        std::thread sender([&] {
            for (int i = 0; i != count; ++i) {
                if (i % 3 != 0 || !c.try_send(int(i))) c.send(i, block);
            }
            c.close();
        });
        int next = 0;
        while (const item got = c.receive(block)) EXPECT_EQ(*got, next++);
        EXPECT_EQ(next, count);
        sender.join();
    }
}

// The receiver is stopped again and again; what it missed comes with the next receive.
TEST(spsc_channel, stops_that_race_items_lose_none) {
    spsc_channel<int> c(2);
    constexpr int count = 1000;
    std::thread sender([&] {
        for (int i = 0; i != count; ++i) c.send(i, block);
    });
    int next = 0;
    while (next != count) {
        auto r = operation_of<item>(c.receive());
        internal::atomic<bool> started{false};
        std::thread stopper([&] {
            while (!started.load(internal::acquire)) std::this_thread::yield();
            r.stop();
        });
        for (int i = 0; i != 10 && next != count; ++i) {
            if (const item got = c.try_receive()) {
                EXPECT_EQ(*got, next++);
            }
        }
        r.start();
        started.store(true, internal::release);
        r.wait();
        stopper.join();
        if (r.how() == channel_end::value) {
            EXPECT_EQ(r.value(), next++);
        }
    }
    EXPECT_EQ(c.try_receive(), std::nullopt);
    sender.join();
}

detached echo(spsc_channel<int>& in, spsc_channel<int>& out) {
    while (const item got = co_await in.receive()) co_await out.send(*got);
    out.close();
}
detached ask(spsc_channel<int>& out, spsc_channel<int>& in, int rounds, int& sum) {
    for (int i = 0; i != rounds; ++i) {
        co_await out.send(1);
        sum += *co_await in.receive();
    }
    out.close();
}

TEST(spsc_channel, a_million_hand_overs_use_constant_stack) {
    on_a_stack_of(std::size_t{64} * 1024, [] {
        spsc_channel<int> there(1);
        spsc_channel<int> back(1);
        int sum = 0;
        echo(there, back);
        ask(there, back, 250'000, sum);
        EXPECT_EQ(sum, 250'000);
    });
}

TEST(spsc_channel, operations_allocate_nothing) {
    spsc_channel<int> c(2);
    const allocation_count count;
    for (int i = 0; i != 100; ++i) {
        auto r = operation_of<item>(c.receive());
        r.start();
        EXPECT_TRUE(c.try_send(int(i)));
        EXPECT_EQ(r.value(), i);
    }
    EXPECT_EQ(count.so_far(), 0u);
}

// What a select does with its waiters, without a select.
TEST(spsc_channel, waiters_of_a_select_that_has_ended_are_skipped_and_their_items_stay) {
    using core = internal::spsc_core<int>;
    const auto granted = [](internal::waiter&) noexcept { ADD_FAILURE() << "it was granted"; };
    internal::shared_choice choice;
    core c(1);
    item nobody;
    internal::granted_waiters others;
    core::receiver receiver(granted, choice, 0);
    receiver.place = &nobody;
    c.queue().lock();
    EXPECT_FALSE(c.take(nobody, others));
    c.link(receiver);
    c.queue().unlock();
    EXPECT_TRUE(choice.claim(7));  // another branch was first
    int number = 1;
    EXPECT_EQ(c.try_send(number), internal::send_outcome::sent);
    EXPECT_FALSE(receiver.linked());
    EXPECT_EQ(nobody, std::nullopt);
    EXPECT_EQ(c.size(), 1u);

    int kept = 2;
    bool refused = false;
    core::sender sender(granted, choice, 1);
    sender.item = &kept;
    sender.refused = &refused;
    c.queue().lock();
    EXPECT_EQ(c.offer(kept, others), internal::send_outcome::full);
    c.link(sender);
    c.queue().unlock();
    item got;
    EXPECT_TRUE(c.try_receive(got));
    EXPECT_EQ(got, 1);
    EXPECT_FALSE(sender.linked());
    EXPECT_EQ(c.size(), 0u);
}

}  // namespace
