// unbounded_channel: send never waits, items keep their order, and blocks are used again.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/channel.hpp>
#include <coppice/execution.hpp>

#include "allocations.hpp"
#include "channel_operation.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
using item = std::optional<int>;

TEST(unbounded_channel, items_keep_their_order_over_many_blocks) {
    unbounded_channel<int> c;
    int next = 0;
    int sent = 0;
    for (int round = 0; round != 50; ++round) {
        for (int i = 0; i != 1000; ++i) EXPECT_TRUE(c.send(sent++));
        for (int i = 0; i != 900; ++i) EXPECT_EQ(c.try_receive(), next++);
    }
    EXPECT_EQ(c.size(), static_cast<std::size_t>(sent - next));
    while (next != sent) EXPECT_EQ(c.try_receive(), next++);
    EXPECT_EQ(c.try_receive(), std::nullopt);
}

TEST(unbounded_channel, waiting_receivers_are_served_in_order_and_a_stopped_one_takes_nothing) {
    unbounded_channel<int> c;
    auto a = operation_of<item>(c.receive());
    auto b = operation_of<item>(c.receive());
    auto d = operation_of<item>(c.receive());
    a.start();
    b.start();
    d.start();
    b.stop();
    EXPECT_EQ(b.how(), channel_end::stopped);
    EXPECT_TRUE(c.send(1));
    EXPECT_TRUE(c.send(2));
    EXPECT_EQ(a.value(), 1);
    EXPECT_EQ(d.value(), 2);
}

TEST(unbounded_channel, close_refuses_items_and_lets_the_rest_be_received) {
    unbounded_channel<int> c;
    EXPECT_TRUE(c.send(1));
    c.close();
    EXPECT_TRUE(c.is_closed());
    EXPECT_FALSE(c.send(2));
    EXPECT_EQ(c.receive(block), 1);
    EXPECT_EQ(c.receive(block), std::nullopt);

    unbounded_channel<int> empty;
    auto r = operation_of<item>(empty.receive());
    r.start();
    empty.close();
    EXPECT_EQ(r.value(), std::nullopt);
}

TEST(unbounded_channel, blocks_are_used_again_so_the_steady_state_allocates_nothing) {
    unbounded_channel<std::array<char, 100>> c;
    const auto fill_and_drain = [&] {
        for (int i = 0; i != 1000; ++i) c.send({});
        for (int i = 0; i != 1000; ++i) EXPECT_TRUE(c.try_receive());
    };
    fill_and_drain();
    const allocation_count count;
    for (int i = 0; i != 10; ++i) fill_and_drain();
    EXPECT_EQ(count.so_far(), 0u);
}

TEST(unbounded_channel, shrinking_frees_blocks_without_items) {
    unbounded_channel<std::shared_ptr<int>> c;
    const auto kept = std::make_shared<int>(1);
    for (int i = 0; i != 5000; ++i) c.send(kept);
    for (int i = 0; i != 4999; ++i) c.try_receive();
    EXPECT_EQ(kept.use_count(), 2);
    const std::size_t before = live_allocations();
    c.shrink_to_fit();
    EXPECT_LT(live_allocations(), before);
    EXPECT_EQ(c.try_receive(), kept);
    for (int i = 0; i != 5000; ++i) c.send(kept);
    EXPECT_EQ(c.size(), 5000u);
}

TEST(unbounded_channel, shrinking_it_without_items_frees_all_its_memory) {
    const std::size_t before = live_allocations();
    unbounded_channel<int> c;
    for (const int count : {1, 5000}) {
        for (int i = 0; i != count; ++i) c.send(i);
        for (int i = 0; i != count; ++i) EXPECT_EQ(c.try_receive(), i);
        c.shrink_to_fit();
        EXPECT_EQ(live_allocations(), before);
    }
}

TEST(unbounded_channel, items_that_were_not_received_are_destroyed_with_it) {
    const auto shared = std::make_shared<int>(1);
    {
        unbounded_channel<std::shared_ptr<int>> c;
        for (int i = 0; i != 1000; ++i) c.send(shared);
        for (int i = 0; i != 10; ++i) c.try_receive();
    }
    EXPECT_EQ(shared.use_count(), 1);
}

TEST(unbounded_channel, senders_on_threads_lose_no_item) {
    constexpr int senders = 3;
    constexpr int each = 2000;
    unbounded_channel<int> c;
    std::vector<std::thread> threads;
    internal::atomic<int> left{senders};
    for (int s = 0; s != senders; ++s) {
        threads.emplace_back([&, s] {
            for (int i = 0; i != each; ++i) c.send(s * each + i);
            if (left.fetch_sub(1, internal::acq_rel) == 1) c.close();
        });
    }
    std::array<int, senders> last;
    last.fill(-1);
    int count = 0;
    while (const item got = c.receive(block)) {
        EXPECT_GT(*got % each, last[static_cast<std::size_t>(*got / each)]);
        last[static_cast<std::size_t>(*got / each)] = *got % each;
        ++count;
    }
    EXPECT_EQ(count, senders * each);
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
