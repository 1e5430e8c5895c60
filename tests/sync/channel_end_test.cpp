// The end of a channel that other threads are using: closed in the middle, destroyed at once.
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

// The channel is closed in the middle: a send either failed, or its item is received.
TEST(channel_end, a_close_in_the_middle_conserves_items) {
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
TEST(channel_end, a_close_in_the_middle_of_an_spsc_channel_strands_one_item_at_most) {
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

// The receiver destroys the channel while the sender may still be on its way out of it.
TEST(channel_end, the_receiver_of_the_last_item_destroys_the_channel) {
    for (int round = 0; round != 500; ++round) {
        auto* const c = new channel<int>(1);
        std::thread sender([c] { EXPECT_TRUE(c->try_send(1)); });
        EXPECT_EQ(c->receive(block), 1);
        delete c;
        sender.join();
    }
}

// The sender of a rendezvous destroys it while the receiver may still be on its way out of it.
TEST(channel_end, the_sender_that_was_granted_destroys_a_rendezvous) {
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

// Lets a sender and a receiver meet in a new channel, `rounds` times; the receiver destroys it.
template <class Send, class Receive>
void meet_and_destroy(std::size_t capacity, int rounds, Send send, Receive receive) {
    internal::atomic<channel<int>*> box{nullptr};
    std::thread sender([&] {
        for (int i = 0; i != rounds; ++i) {
            channel<int>* c = nullptr;
            while ((c = box.exchange(nullptr, internal::acq_rel)) == nullptr) {
                internal::thread_yield();
            }
            send(*c);
        }
    });
    for (int i = 0; i != rounds; ++i) {
        auto* const c = new channel<int>(capacity);
        if (capacity != 0) EXPECT_TRUE(c->try_send(1));
        box.store(c, internal::release);
        while (box.load(internal::acquire) != nullptr) internal::thread_yield();
        for (volatile int spins = i % 64; spins != 0;) spins = spins - 1;
        receive(*c);
        delete c;
    }
    sender.join();
}

TEST(channel_end, the_receiver_of_the_last_item_destroys_a_channel_that_its_sender_has_not_left) {
    for (const std::size_t capacity : {0u, 1u, 2u}) {
        const int items = capacity == 0 ? 1 : 2;
        const auto try_all = [items](channel<int>& c) {
            for (int n = 0; n != items;) n += c.try_receive().has_value() ? 1 : 0;
        };
        const auto block_all = [items](channel<int>& c) {
            for (int n = 0; n != items; ++n) EXPECT_TRUE(c.receive(block).has_value());
        };
        const auto send_one = [](channel<int>& c) { c.send(2, block); };
        meet_and_destroy(capacity, 1000, send_one, try_all);
        meet_and_destroy(capacity, 1000, send_one, block_all);
    }
}

TEST(channel_end, the_receiver_that_sees_the_close_destroys_the_channel) {
    const auto close = [](channel<int>& c) { c.close(); };
    meet_and_destroy(2, 1000, close, [](channel<int>& c) {
        while (c.receive(block)) {
        }
    });
    meet_and_destroy(1, 1000, close, [](channel<int>& c) {
        EXPECT_TRUE(c.receive(block).has_value());
        EXPECT_FALSE(c.receive(block).has_value());
    });
}

}  // namespace
