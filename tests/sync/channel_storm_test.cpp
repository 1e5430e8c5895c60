// Channels under stops that race the hand-over: what was sent is received, and nothing else is.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/token.hpp>

#include "channel_operation.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <variant>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
using nothing = std::monostate;
using item = std::optional<std::uint64_t>;

// What all threads have sent and received; each item has a number of its own.
struct account {
    internal::atomic<std::uint64_t> sent{0};
    internal::atomic<std::uint64_t> received{0};
    internal::atomic<std::uint64_t> sum_sent{0};
    internal::atomic<std::uint64_t> sum_received{0};
    void send(std::uint64_t number) {
        sent.fetch_add(1, internal::relaxed);
        sum_sent.fetch_add(number, internal::relaxed);
    }
    void receive(std::uint64_t number) {
        received.fetch_add(1, internal::relaxed);
        sum_received.fetch_add(number, internal::relaxed);
    }
};

struct random_bits {
    std::uint64_t state;
    unsigned next() {
        state = state * 6364136223846793005U + 1442695040888963407U;
        return static_cast<unsigned>(state >> 33);
    }
};

// Sends `count` items. Half of the operations are stopped while they wait, or as they are granted.
template <class Channel>
void send_some(Channel& c, account& a, std::uint64_t thread, int count) {
    random_bits random{thread};
    for (int i = 0; i != count; ++i) {
        const std::uint64_t number = thread << 32 | static_cast<std::uint64_t>(i);
        auto s = operation_of<nothing>(c.send(number));
        s.start();
        for (unsigned spins = random.next() % 64; spins != 0; --spins) s.how();
        if (random.next() % 2 == 0) s.stop();
        s.wait();
        if (s.how() == channel_end::value) a.send(number);
    }
}
// Receives until the channel is closed and drained.
template <class Channel>
void receive_all(Channel& c, account& a, std::uint64_t thread) {
    random_bits random{thread};
    for (;;) {
        auto r = operation_of<item>(c.receive());
        r.start();
        for (unsigned spins = random.next() % 64; spins != 0; --spins) r.how();
        if (random.next() % 2 == 0) r.stop();
        r.wait();
        if (r.how() != channel_end::value) continue;
        if (!r.value()) return;
        a.receive(*r.value());
    }
}

template <class Channel>
void storm(Channel& c, std::uint64_t senders, std::uint64_t receivers, int count) {
    account a;
    std::vector<std::thread> sending;
    std::vector<std::thread> receiving;
    for (std::uint64_t i = 0; i != receivers; ++i)
        receiving.emplace_back([&, i] { receive_all(c, a, 100 + i); });
    for (std::uint64_t i = 0; i != senders; ++i)
        sending.emplace_back([&, i] { send_some(c, a, 1 + i, count); });
    for (std::thread& thread : sending) thread.join();
    c.close();
    for (std::thread& thread : receiving) thread.join();
    EXPECT_EQ(a.sent.load(internal::relaxed), a.received.load(internal::relaxed));
    EXPECT_EQ(a.sum_sent.load(internal::relaxed), a.sum_received.load(internal::relaxed));
    EXPECT_EQ(c.size(), 0u);
}

TEST(channel_storm, two_threads_conserve_items_although_operations_are_stopped) {
    for (const std::size_t capacity : {0u, 1u, 3u}) {
        channel<std::uint64_t> c(capacity);
        storm(c, 1, 1, 2000);
    }
}

TEST(channel_storm, four_threads_conserve_items_although_operations_are_stopped) {
    for (const std::size_t capacity : {0u, 1u, 3u}) {
        channel<std::uint64_t> c(capacity);
        storm(c, 2, 2, 1000);
    }
}

TEST(channel_storm, two_threads_of_an_spsc_channel_conserve_items_although_operations_are_stopped) {
    for (const std::size_t capacity : {1u, 3u, 64u}) {
        spsc_channel<std::uint64_t> c(capacity);
        storm(c, 1, 1, 2000);
    }
}

// The channel is closed in the middle: a send either failed, or its item is received.
TEST(channel_storm, a_close_in_the_middle_conserves_items) {
    for (int round = 0; round != 20; ++round) {
        channel<std::uint64_t> c(static_cast<std::size_t>(round % 3));
        account a;
        std::thread first([&] { send_some(c, a, 1, 200); });
        std::thread second([&] { send_some(c, a, 2, 200); });
        std::thread receiver([&] { receive_all(c, a, 3); });
        std::thread closer([&] {
            for (int i = 0; i != round * 5; ++i) std::this_thread::yield();
            c.close();
        });
        first.join();
        second.join();
        receiver.join();
        closer.join();
        EXPECT_EQ(a.sum_sent.load(internal::relaxed), a.sum_received.load(internal::relaxed));
    }
}

// The sender may be between its look at the close and its item when the receiver sees the end.
TEST(channel_storm, a_close_in_the_middle_of_an_spsc_channel_strands_one_item_at_most) {
    for (int round = 0; round != 20; ++round) {
        spsc_channel<std::uint64_t> c(static_cast<std::size_t>(1 + round % 3));
        account a;
        std::thread sender([&] { send_some(c, a, 1, 200); });
        std::thread receiver([&] { receive_all(c, a, 3); });
        std::thread closer([&] {
            for (int i = 0; i != round * 5; ++i) std::this_thread::yield();
            c.close();
        });
        sender.join();
        receiver.join();
        closer.join();
        EXPECT_LE(c.size(), 1u);
        while (const item left = c.try_receive()) a.receive(*left);
        EXPECT_EQ(a.sum_sent.load(internal::relaxed), a.sum_received.load(internal::relaxed));
    }
}

TEST(channel_storm, receivers_of_a_broadcast_that_are_stopped_get_or_count_every_item) {
    broadcast_channel<std::uint64_t> c(4);
    static constexpr std::uint64_t count = 2000;
    std::vector<std::thread> threads;
    for (std::uint64_t t = 1; t != 4; ++t) {
        threads.emplace_back([from = c.subscribe(), t]() mutable {
            random_bits random{t};
            std::uint64_t got = 0;
            for (;;) {
                auto r = operation_of<item>(from.receive());
                r.start();
                for (unsigned spins = random.next() % 64; spins != 0; --spins) r.how();
                if (random.next() % 2 == 0) r.stop();
                r.wait();
                if (r.how() != channel_end::value) continue;
                if (!r.value()) break;
                ++got;
                EXPECT_EQ(got + from.missed(), *r.value());
            }
            EXPECT_EQ(got + from.missed(), count);
        });
    }
    for (std::uint64_t i = 1; i <= count; ++i) EXPECT_TRUE(c.send(i));
    c.close();
    for (std::thread& thread : threads) thread.join();
}

// The receiver destroys the channel while the sender may still be on its way out of it.
TEST(channel_storm, the_receiver_of_the_last_item_destroys_the_channel) {
    for (int round = 0; round != 500; ++round) {
        auto* const c = new channel<int>(1);
        std::thread sender([c] { EXPECT_TRUE(c->try_send(1)); });
        EXPECT_EQ(c->receive(block), 1);
        delete c;
        sender.join();
    }
}

// The sender of a rendezvous destroys it while the receiver may still be on its way out of it.
TEST(channel_storm, the_sender_that_was_granted_destroys_a_rendezvous) {
    for (int round = 0; round != 500; ++round) {
        auto* const c = new channel<int>(0);
        std::thread receiver([c] {
            std::optional<int> got;
            while (!got) got = c->try_receive();
            EXPECT_EQ(got, 1);
        });
        c->send(1, block);
        delete c;
        receiver.join();
    }
}

}  // namespace
