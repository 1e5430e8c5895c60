// broadcast_channel: each receiver gets each item in order, or counts what it has missed.
#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include "allocations.hpp"
#include "channel_operation.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
using item = std::optional<int>;

TEST(broadcast_channel, each_receiver_gets_each_item_that_was_sent_after_it_subscribed) {
    EXPECT_THROW(broadcast_channel<int>(0), std::invalid_argument);
    broadcast_channel<int> c(4);
    EXPECT_TRUE(c.send(0));
    auto a = c.subscribe();
    EXPECT_TRUE(c.send(1));
    auto b = c.subscribe();
    EXPECT_TRUE(c.send(2));
    EXPECT_EQ(a.try_receive(), 1);
    EXPECT_EQ(a.try_receive(), 2);
    EXPECT_EQ(a.try_receive(), std::nullopt);
    EXPECT_EQ(b.try_receive(), 2);
    EXPECT_EQ(b.try_receive(), std::nullopt);
}

TEST(broadcast_channel, a_slow_receiver_loses_the_oldest_items_and_counts_them) {
    broadcast_channel<int> c(3);
    auto slow = c.subscribe();
    for (int i = 0; i != 10; ++i) c.send(i);
    EXPECT_EQ(slow.missed(), 0u);
    EXPECT_EQ(slow.try_receive(), 7);
    EXPECT_EQ(slow.missed(), 7u);
    EXPECT_EQ(slow.try_receive(), 8);
    c.send(10);
    EXPECT_EQ(slow.try_receive(), 9);
    EXPECT_EQ(slow.try_receive(), 10);
    EXPECT_EQ(slow.missed(), 7u);
}

TEST(broadcast_channel, one_item_completes_all_waiting_receivers_and_a_stopped_one_took_nothing) {
    broadcast_channel<int> c(2);
    auto a = c.subscribe();
    auto b = c.subscribe();
    auto d = c.subscribe();
    auto wa = operation_of<item>(a.receive());
    auto wb = operation_of<item>(b.receive());
    auto wd = operation_of<item>(d.receive());
    wa.start();
    wb.start();
    wd.start();
    wb.stop();
    EXPECT_EQ(wb.how(), channel_end::stopped);
    c.send(1);
    EXPECT_EQ(wa.value(), 1);
    EXPECT_EQ(wd.value(), 1);
    EXPECT_EQ(b.try_receive(), 1);
    EXPECT_EQ(a.try_receive(), std::nullopt);
}

TEST(broadcast_channel, close_ends_waits_after_the_rest) {
    broadcast_channel<int> c(2);
    auto a = c.subscribe();
    auto b = c.subscribe();
    c.send(1);
    EXPECT_EQ(b.try_receive(), 1);
    auto wait = operation_of<item>(b.receive());
    wait.start();
    c.close();
    EXPECT_TRUE(c.is_closed());
    EXPECT_EQ(wait.value(), std::nullopt);
    EXPECT_FALSE(c.send(2));
    EXPECT_EQ(a.receive(block), 1);
    EXPECT_EQ(a.receive(block), std::nullopt);
}

TEST(broadcast_channel, a_moved_receiver_keeps_its_place) {
    broadcast_channel<std::string> c(2);
    std::vector<broadcast_channel<std::string>::receiver> all;
    all.push_back(c.subscribe());
    c.send("one");
    all.push_back(c.subscribe());
    c.send("two");
    EXPECT_EQ(all[0].try_receive(), "one");
    EXPECT_EQ(all[0].try_receive(), "two");
    EXPECT_EQ(all[1].try_receive(), "two");
    all[1] = std::move(all[0]);
    EXPECT_EQ(all[1].try_receive(), std::nullopt);
}

TEST(broadcast_channel, items_without_a_receiver_are_not_kept) {
    const auto shared = std::make_shared<int>(1);
    broadcast_channel<std::shared_ptr<int>> c(4);
    c.send(shared);
    EXPECT_EQ(shared.use_count(), 1);
    {
        auto a = c.subscribe();
        for (int i = 0; i != 10; ++i) c.send(shared);
        EXPECT_EQ(shared.use_count(), 5);
        EXPECT_EQ(a.try_receive(), shared);
    }
}

TEST(broadcast_channel, sending_and_receiving_allocate_nothing) {
    broadcast_channel<int> c(4);
    auto a = c.subscribe();
    const allocation_count count;
    for (int i = 0; i != 100; ++i) {
        auto wait = operation_of<item>(a.receive());
        wait.start();
        c.send(i);
        EXPECT_EQ(wait.value(), i);
    }
    EXPECT_EQ(count.so_far(), 0u);
}

// Short strings: copying one may throw, as far as the channel knows, but it allocates nothing.
TEST(broadcast_channel, items_in_shared_memory_allocate_nothing_in_steady_state) {
    broadcast_channel<std::string> c(4);
    auto a = c.subscribe();
    const auto rounds = [&] {
        for (int i = 0; i != 100; ++i) {
            c.send("short");
            EXPECT_EQ(a.try_receive(), "short");
        }
    };
    rounds();
    const allocation_count count;
    rounds();
    EXPECT_EQ(count.so_far(), 0u);
}

// A number that cannot be copied while `fails` is set.
struct fragile {
    static inline bool fails = false;
    explicit fragile(int n) noexcept : number(n) {}
    fragile(fragile&& other) noexcept : number(other.number) {}
    fragile(const fragile& other) : number(other.number) {
        if (fails) throw std::runtime_error("no copy");
    }
    ~fragile() = default;
    int number;
};
// Runs `receive`, whose copy fails, beside `send`.
template <class Receive, class Send>
void expect_no_copy(Receive receive, Send send) {
    fragile::fails = true;
    EXPECT_THROW(coppice::this_thread::sync_wait(
                     execution::when_all(receive(), execution::just() | execution::then(send))),
                 std::runtime_error);
    fragile::fails = false;
}

TEST(broadcast_channel, a_receive_that_cannot_copy_its_item_has_taken_nothing) {
    broadcast_channel<fragile> c(2);
    auto a = c.subscribe();
    using receiver = broadcast_channel<fragile>::receiver;
    auto await_it = [](receiver& from) -> task<> { co_await from.receive(); };
    auto select_it = [](receiver& from) -> task<> { co_await coppice::select(from.receive()); };
    const auto await = [&] { return await_it(a); };
    const auto choose = [&] { return select_it(a); };
    const auto is_next = [&](int number) {
        const auto got = a.try_receive();
        return got && got->number == number;
    };

    c.send(fragile(1));
    fragile::fails = true;
    EXPECT_THROW(a.try_receive(), std::runtime_error);
    fragile::fails = false;
    EXPECT_TRUE(is_next(1));
    c.send(fragile(2));
    expect_no_copy(await, [] {});
    EXPECT_TRUE(is_next(2));
    c.send(fragile(3));
    expect_no_copy(choose, [] {});
    EXPECT_TRUE(is_next(3));
    expect_no_copy(await, [&] { c.send(fragile(4)); });  // it waits before the item comes
    EXPECT_TRUE(is_next(4));
    expect_no_copy(choose, [&] { c.send(fragile(5)); });
    EXPECT_TRUE(is_next(5));
    EXPECT_EQ(a.missed(), 0u);
}

TEST(broadcast_channel, an_item_that_could_not_be_copied_is_missed_if_the_receiver_is_too_slow) {
    broadcast_channel<fragile> c(1);
    auto a = c.subscribe();
    c.send(fragile(1));
    fragile::fails = true;
    EXPECT_THROW(a.try_receive(), std::runtime_error);
    fragile::fails = false;
    EXPECT_EQ(a.missed(), 0u);
    c.send(fragile(2));
    EXPECT_EQ(a.try_receive()->number, 2);
    EXPECT_EQ(a.missed(), 1u);
}

TEST(broadcast_channel, receivers_on_threads_get_or_count_every_item) {
    broadcast_channel<int> c(16);
    constexpr int count = 5000;
    std::vector<std::thread> threads;
    for (int t = 0; t != 3; ++t) {
        threads.emplace_back([from = c.subscribe()]() mutable {
            int last = -1;
            std::uint64_t got = 0;
            while (const item i = from.receive(block)) {
                EXPECT_GT(*i, last);
                last = *i;
                ++got;
            }
            EXPECT_EQ(got + from.missed(), std::uint64_t{count});
            EXPECT_EQ(last, count - 1);
        });
    }
    for (int i = 0; i != count; ++i) EXPECT_TRUE(c.send(i));
    c.close();
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
