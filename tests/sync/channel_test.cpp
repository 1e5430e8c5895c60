// channel: items move in order from senders to receivers, and a waiter that gives up has moved
// none.
#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include "allocations.hpp"
#include "channel_operation.hpp"
#include "detached.hpp"
#include "small_stack.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
namespace ex = coppice::execution;
using nothing = std::monostate;
using item = std::optional<int>;

TEST(channel, try_send_and_try_receive_keep_the_order_and_the_capacity) {
    channel<int> c(2);
    EXPECT_EQ(c.capacity(), 2u);
    EXPECT_EQ(c.size(), 0u);
    EXPECT_EQ(c.try_receive(), std::nullopt);
    EXPECT_TRUE(c.try_send(1));
    EXPECT_TRUE(c.try_send(2));
    EXPECT_FALSE(c.try_send(3));
    EXPECT_EQ(c.size(), 2u);
    EXPECT_EQ(c.try_receive(), 1);
    EXPECT_TRUE(c.try_send(4));
    EXPECT_EQ(c.try_receive(), 2);
    EXPECT_EQ(c.try_receive(), 4);
    EXPECT_EQ(c.try_receive(), std::nullopt);
}

TEST(channel, a_refused_try_send_leaves_the_value_untouched) {
    channel<std::unique_ptr<int>> c(1);
    EXPECT_TRUE(c.try_send(std::make_unique<int>(1)));
    auto kept = std::make_unique<int>(2);
    EXPECT_FALSE(c.try_send(std::move(kept)));
    EXPECT_NE(kept, nullptr);
    c.close();
    EXPECT_FALSE(c.try_send(std::move(kept)));
    EXPECT_NE(kept, nullptr);
}

TEST(channel, items_in_the_slots_are_destroyed_with_it) {
    const auto shared = std::make_shared<int>(1);
    {
        channel<std::shared_ptr<int>> c(3);
        for (int i = 0; i != 3; ++i) EXPECT_TRUE(c.try_send(std::shared_ptr<int>(shared)));
        c.try_receive();
        EXPECT_EQ(shared.use_count(), 3);
    }
    EXPECT_EQ(shared.use_count(), 1);
}

TEST(channel, waiting_receivers_get_items_first_come_first_served) {
    channel<int> c(4);
    auto a = operation_of<item>(c.receive());
    auto b = operation_of<item>(c.receive());
    auto d = operation_of<item>(c.receive());
    a.start();
    b.start();
    d.start();
    EXPECT_TRUE(c.try_send(1));
    EXPECT_FALSE(a.pending());
    EXPECT_TRUE(b.pending());
    EXPECT_TRUE(c.try_send(2));
    EXPECT_TRUE(c.try_send(3));
    EXPECT_EQ(a.value(), 1);
    EXPECT_EQ(b.value(), 2);
    EXPECT_EQ(d.value(), 3);
    EXPECT_EQ(c.size(), 0u);
}

TEST(channel, items_of_waiting_senders_keep_their_order_behind_the_slots) {
    channel<int> c(1);
    auto a = operation_of<nothing>(c.send(1));
    auto b = operation_of<nothing>(c.send(2));
    auto d = operation_of<nothing>(c.send(3));
    a.start();
    b.start();
    d.start();
    EXPECT_EQ(a.how(), channel_end::value);
    EXPECT_TRUE(b.pending());
    EXPECT_FALSE(c.try_send(4));
    EXPECT_EQ(c.try_receive(), 1);  // frees the slot for the oldest sender
    EXPECT_EQ(b.how(), channel_end::value);
    EXPECT_TRUE(d.pending());
    EXPECT_EQ(c.size(), 1u);
    EXPECT_EQ(c.try_receive(), 2);
    EXPECT_EQ(d.how(), channel_end::value);
    EXPECT_EQ(c.try_receive(), 3);
    EXPECT_EQ(c.try_receive(), std::nullopt);
}

TEST(channel, a_stopped_receiver_takes_no_item_and_leaves_the_others_in_order) {
    channel<int> c(2);
    auto a = operation_of<item>(c.receive());
    auto b = operation_of<item>(c.receive());
    auto d = operation_of<item>(c.receive());
    a.start();
    b.start();
    d.start();
    b.stop();
    EXPECT_EQ(b.how(), channel_end::stopped);
    EXPECT_TRUE(c.try_send(1));
    EXPECT_TRUE(c.try_send(2));
    EXPECT_EQ(a.value(), 1);
    EXPECT_EQ(d.value(), 2);
}

TEST(channel, a_stopped_sender_sends_nothing_and_leaves_the_others_in_order) {
    channel<int> c(0);
    auto a = operation_of<nothing>(c.send(1));
    auto b = operation_of<nothing>(c.send(2));
    auto d = operation_of<nothing>(c.send(3));
    a.start();
    b.start();
    d.start();
    a.stop();
    EXPECT_EQ(a.how(), channel_end::stopped);
    EXPECT_EQ(c.try_receive(), 2);
    EXPECT_EQ(c.try_receive(), 3);
    EXPECT_EQ(c.try_receive(), std::nullopt);
}

TEST(channel, an_operation_that_is_stopped_before_its_start_moves_nothing) {
    channel<int> c(1);
    EXPECT_TRUE(c.try_send(1));
    auto r = operation_of<item>(c.receive());
    r.stop();
    r.start();
    EXPECT_EQ(r.how(), channel_end::stopped);
    EXPECT_EQ(c.try_receive(), 1);
    auto s = operation_of<nothing>(c.send(2));
    s.stop();
    s.start();
    EXPECT_EQ(s.how(), channel_end::stopped);
    EXPECT_EQ(c.size(), 0u);
}

TEST(channel, a_rendezvous_completes_a_send_when_a_receiver_has_the_item) {
    channel<int> c(0);
    EXPECT_FALSE(c.try_send(1));
    EXPECT_EQ(c.try_receive(), std::nullopt);
    auto s = operation_of<nothing>(c.send(2));
    s.start();
    EXPECT_TRUE(s.pending());
    auto r = operation_of<item>(c.receive());
    r.start();
    EXPECT_EQ(s.how(), channel_end::value);
    EXPECT_EQ(r.value(), 2);
    auto first = operation_of<item>(c.receive());
    first.start();
    EXPECT_TRUE(c.try_send(3));
    EXPECT_EQ(first.value(), 3);
    EXPECT_EQ(c.size(), 0u);
}

TEST(channel, close_lets_items_be_received_and_refuses_what_comes_after) {
    channel<int> c(2);
    EXPECT_TRUE(c.try_send(1));
    EXPECT_FALSE(c.is_closed());
    c.close();
    c.close();
    EXPECT_TRUE(c.is_closed());
    EXPECT_FALSE(c.try_send(2));
    auto s = operation_of<nothing>(c.send(3));
    s.start();
    EXPECT_EQ(s.how(), channel_end::error);
    EXPECT_EQ(s.error(), std::errc::broken_pipe);
    auto r = operation_of<item>(c.receive());
    r.start();
    EXPECT_EQ(r.value(), 1);
    auto end = operation_of<item>(c.receive());
    end.start();
    EXPECT_EQ(end.how(), channel_end::value);
    EXPECT_EQ(end.value(), std::nullopt);
    EXPECT_EQ(c.try_receive(), std::nullopt);
}

TEST(channel, close_ends_waiting_receivers_with_nothing_and_waiting_senders_with_an_error) {
    channel<int> empty(1);
    auto a = operation_of<item>(empty.receive());
    auto b = operation_of<item>(empty.receive());
    a.start();
    b.start();
    empty.close();
    EXPECT_EQ(a.value(), std::nullopt);
    EXPECT_EQ(b.value(), std::nullopt);

    channel<int> full(1);
    EXPECT_TRUE(full.try_send(1));
    auto s = operation_of<nothing>(full.send(2));
    s.start();
    full.close();
    EXPECT_EQ(s.how(), channel_end::error);
    EXPECT_EQ(s.error(), std::errc::broken_pipe);
    EXPECT_EQ(full.try_receive(), 1);
    EXPECT_EQ(full.try_receive(), std::nullopt);
}

TEST(channel, a_task_that_sends_to_a_closed_channel_throws_and_with_an_error_code_does_not) {
    channel<int> c(1);
    c.close();
    bool threw = false;
    auto send = [](channel<int>& to, bool& seen) -> task<> {
        try {
            co_await to.send(1);
        } catch (const std::system_error& error) {
            seen = error.code() == std::errc::broken_pipe;
        }
        std::error_code ec;
        co_await to.send(1, use_await[ec]);
        EXPECT_EQ(ec, std::errc::broken_pipe);
        EXPECT_EQ(co_await to.receive(), std::nullopt);
    };
    coppice::this_thread::sync_wait(send(c, threw));
    EXPECT_TRUE(threw);
}

TEST(channel, the_waiter_that_was_granted_may_destroy_it) {
    auto* c = new channel<int>(1);
    bool ran = false;
    c->receive([&](std::error_code, item got) {
        EXPECT_EQ(got, 7);
        delete c;
        ran = true;
    });
    EXPECT_TRUE(c->try_send(7));
    EXPECT_TRUE(ran);

    c = new channel<int>(0);
    c->send(8, [&](std::error_code ec) {
        EXPECT_FALSE(ec);
        delete c;
    });
    EXPECT_EQ(c->try_receive(), 8);

    c = new channel<int>(0);
    c->receive([&](std::error_code, item got) {
        EXPECT_EQ(got, std::nullopt);
        delete c;
    });
    c->close();
}

// Sends and receives in turn through two channels.
detached echo(channel<int>& in, channel<int>& out) {
    while (const item got = co_await in.receive()) co_await out.send(*got);
    out.close();
}
detached ask(channel<int>& out, channel<int>& in, int rounds, int& sum) {
    for (int i = 0; i != rounds; ++i) {
        co_await out.send(1);
        sum += *co_await in.receive();
    }
    out.close();
}

TEST(channel, a_million_hand_overs_use_constant_stack) {
    on_a_stack_of(std::size_t{64} * 1024, [] {
        for (const std::size_t capacity : {0u, 1u}) {
            channel<int> there(capacity);
            channel<int> back(capacity);
            int sum = 0;
            echo(there, back);
            ask(there, back, 250'000, sum);
            EXPECT_EQ(sum, 250'000);
        }
    });
}

TEST(channel, operations_allocate_nothing) {
    channel<int> c(4);
    const allocation_count count;
    for (int i = 0; i != 100; ++i) {
        auto r = operation_of<item>(c.receive());
        r.start();
        EXPECT_TRUE(c.try_send(int(i)));
        EXPECT_EQ(r.value(), i);
        for (int k = 0; k != 4; ++k) EXPECT_TRUE(c.try_send(int(k)));
        auto s = operation_of<nothing>(c.send(4));
        s.start();
        for (int k = 0; k != 5; ++k) EXPECT_EQ(c.try_receive(), k);
        auto stopped = operation_of<item>(c.receive());
        stopped.start();
        stopped.stop();
    }
    EXPECT_EQ(count.so_far(), 0u);
}

TEST(channel, a_callback_may_use_the_channel_that_called_it) {
    channel<int> c(1);
    std::vector<int> seen;
    c.receive([&](std::error_code, item first) {
        seen.push_back(*first);
        EXPECT_TRUE(c.try_send(2));
        c.receive([&](std::error_code, item second) { seen.push_back(*second); });
    });
    EXPECT_TRUE(c.try_send(1));
    EXPECT_EQ(seen, (std::vector{1, 2}));
}

TEST(channel, destroying_it_while_an_operation_waits_stops_the_process) {
    EXPECT_DEATH(
        {
            auto c = std::make_unique<channel<int>>(1);
            c->receive([](std::error_code, item) {});
            c.reset();
        },
        "with members in it");
}

// What a select does with its waiters, without a select.
TEST(channel, waiters_of_a_select_that_has_ended_are_skipped_and_their_items_stay) {
    using core = internal::ring_core<int>;
    const auto granted = [](internal::waiter&) noexcept { ADD_FAILURE() << "it was granted"; };
    internal::shared_choice choice;
    core c(1);
    int number = 1;
    EXPECT_EQ(c.try_send(number), internal::send_outcome::sent);

    int kept = 2;
    bool refused = false;
    core::sender sender(granted, choice, 0);
    sender.item = &kept;
    sender.refused = &refused;
    internal::granted_waiters others;
    c.queue().lock();
    EXPECT_EQ(c.offer(kept, others), internal::send_outcome::full);
    c.link(sender);
    c.queue().unlock();
    EXPECT_TRUE(choice.claim(7));  // another branch was first
    item got;
    EXPECT_TRUE(c.try_receive(got));
    EXPECT_EQ(got, 1);
    EXPECT_FALSE(sender.linked());
    EXPECT_EQ(c.size(), 0u);

    item nobody;
    core::receiver receiver(granted, choice, 1);
    receiver.place = &nobody;
    c.queue().lock();
    EXPECT_FALSE(c.take(nobody, others));
    c.link(receiver);
    c.queue().unlock();
    EXPECT_EQ(c.try_send(kept), internal::send_outcome::sent);
    EXPECT_EQ(nobody, std::nullopt);
    EXPECT_EQ(c.size(), 1u);
}

}  // namespace
