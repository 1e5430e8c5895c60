// select: takes exactly one of its branches, and touches nothing of the others.
#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/sync.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include "detached.hpp"
#include "select_of.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

namespace {

using namespace coppice;
using namespace coppice::test;
namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;
using nothing = std::monostate;
using item = std::optional<int>;
using guard = async_mutex::guard;

using receive_or_send = decltype(coppice::select(std::declval<channel<int>&>().receive(),
                                                 std::declval<channel<int>&>().send(1)));
static_assert(ex::sender<receive_or_send>);
static_assert(std::is_same_v<ex::completion_signatures_of_t<receive_or_send, ex::env<>>,
                             ex::completion_signatures<ex::set_value_t(std::variant<item, nothing>),
                                                       ex::set_error_t(std::error_code)>>);
static_assert(ex::sends_stopped<receive_or_send, ex::prop<get_stop_token_t, inplace_stop_token>>);

TEST(select, takes_the_branch_that_is_ready_and_leaves_the_others) {
    channel<int> a(1);
    channel<int> b(1);
    async_mutex m;
    std::optional<guard> held = m.try_lock();
    EXPECT_TRUE(b.try_send(7));
    auto s = select_of(a.receive(), b.receive(), m.lock());
    s.start();
    ASSERT_EQ(s.how(), channel_end::value);
    EXPECT_EQ(std::get<1>(s.value()), 7);
    held.reset();
    EXPECT_TRUE(m.try_lock());
    EXPECT_TRUE(a.try_send(1));
    EXPECT_EQ(a.try_receive(), 1);
}

TEST(select, takes_exactly_one_of_several_that_are_ready) {
    channel<int> a(1);
    channel<int> b(1);
    channel<int> c(1);
    for (int round = 0; round != 100; ++round) {
        EXPECT_TRUE(a.try_send(1));
        EXPECT_TRUE(b.try_send(2));
        auto s = select_of(a.receive(), b.receive(), c.send(3));
        s.start();
        ASSERT_EQ(s.how(), channel_end::value);
        const std::array left{a.try_receive(), b.try_receive(), c.try_receive()};
        EXPECT_EQ(left[0].has_value(), s.value().index() != 0);
        EXPECT_EQ(left[1].has_value(), s.value().index() != 1);
        EXPECT_EQ(left[2].has_value(), s.value().index() == 2);
    }
}

TEST(select, waits_until_a_branch_is_granted_and_then_takes_its_other_waiters_out) {
    channel<int> a(1);
    channel<int> b(0);
    async_mutex m;
    std::optional<guard> held = m.try_lock();
    auto s = select_of(a.receive(), m.lock(), b.send(5));
    s.start();
    EXPECT_TRUE(s.pending());
    auto behind = operation_of<guard>(m.lock());
    behind.start();
    EXPECT_EQ(b.try_receive(), 5);
    ASSERT_EQ(s.how(), channel_end::value);
    EXPECT_EQ(s.value().index(), 2u);
    held.reset();  // to the next waiter
    EXPECT_EQ(behind.how(), channel_end::value);
    EXPECT_TRUE(a.try_send(1));
    EXPECT_EQ(a.size(), 1u);
}

TEST(select, a_granted_lock_is_in_its_guard) {
    async_mutex a;
    async_mutex b;
    std::optional<guard> held_a = a.try_lock();
    std::optional<guard> held_b = b.try_lock();
    auto s = select_of(a.lock(), b.lock());
    s.start();
    held_b.reset();
    ASSERT_EQ(s.how(), channel_end::value);
    EXPECT_TRUE(std::get<1>(s.value()));
    EXPECT_FALSE(b.try_lock());
    held_a.reset();
    EXPECT_TRUE(a.try_lock());
    std::get<1>(s.value()).unlock();
    EXPECT_TRUE(b.try_lock());
}

TEST(select, keeps_its_places_in_the_queues_first_come_first_served) {
    channel<int> a(0);
    channel<int> b(0);
    auto first = operation_of<item>(a.receive());
    auto second = select_of(a.receive(), b.receive());
    auto third = operation_of<item>(a.receive());
    first.start();
    second.start();
    third.start();
    EXPECT_TRUE(a.try_send(1));
    EXPECT_TRUE(a.try_send(2));
    EXPECT_TRUE(a.try_send(3));
    EXPECT_EQ(first.value(), 1);
    EXPECT_EQ(std::get<0>(second.value()), 2);
    EXPECT_EQ(third.value(), 3);
}

TEST(select, a_stop_takes_all_its_waiters_out_and_leaves_the_others_in_order) {
    channel<int> a(0);
    channel<int> b(0);
    auto first = operation_of<item>(a.receive());
    auto second = select_of(a.receive(), b.receive(), b.send(9));
    auto third = operation_of<item>(a.receive());
    first.start();
    second.start();
    third.start();
    second.stop();
    EXPECT_EQ(second.how(), channel_end::stopped);
    EXPECT_TRUE(a.try_send(1));
    EXPECT_TRUE(a.try_send(3));
    EXPECT_EQ(first.value(), 1);
    EXPECT_EQ(third.value(), 3);
    EXPECT_FALSE(b.try_send(4));
    EXPECT_EQ(b.try_receive(), std::nullopt);
}

TEST(select, that_is_stopped_before_its_start_takes_nothing) {
    channel<int> a(1);
    EXPECT_TRUE(a.try_send(1));
    auto s = select_of(a.receive(), a.send(2));
    s.stop();
    s.start();
    EXPECT_EQ(s.how(), channel_end::stopped);
    EXPECT_EQ(a.try_receive(), 1);
    EXPECT_EQ(a.try_receive(), std::nullopt);
}

TEST(select, a_deadline_ends_it_and_nothing_was_taken) {
    channel<int> a(0);
    channel<int> b(0);
    const auto soon = ex::prop(ex::get_deadline, ex::monotonic_now() + ex::time_span(1'000'000));
    EXPECT_EQ(sync_wait(ex::write_env(coppice::select(a.receive(), b.send(1)), soon)),
              std::nullopt);
    EXPECT_FALSE(a.try_send(1));
    EXPECT_EQ(b.try_receive(), std::nullopt);
}

TEST(select, two_selects_are_each_others_partners) {
    channel<int> a(0);
    channel<int> b(0);
    for (int round = 0; round != 20; ++round) {
        auto one = select_of(a.send(1), b.receive());
        auto two = select_of(b.send(2), a.receive());
        one.start();
        EXPECT_TRUE(one.pending());
        two.start();
        ASSERT_EQ(one.how(), channel_end::value);
        ASSERT_EQ(two.how(), channel_end::value);
        if (one.value().index() == 0) {
            EXPECT_EQ(std::get<1>(two.value()), 1);
        } else {
            EXPECT_EQ(std::get<1>(one.value()), 2);
            EXPECT_EQ(two.value().index(), 0u);
        }
        EXPECT_FALSE(a.try_send(0));
        EXPECT_FALSE(b.try_send(0));
        EXPECT_EQ(a.try_receive(), std::nullopt);
        EXPECT_EQ(b.try_receive(), std::nullopt);
    }
}

TEST(select, does_not_meet_itself_in_a_rendezvous) {
    channel<int> a(0);
    auto s = select_of(a.send(1), a.receive());
    s.start();
    EXPECT_TRUE(s.pending());
    auto other = operation_of<item>(a.receive());
    other.start();
    ASSERT_EQ(s.how(), channel_end::value);
    EXPECT_EQ(s.value().index(), 0u);
    EXPECT_EQ(other.value(), 1);
    auto again = select_of(a.send(1), a.receive());
    again.start();
    EXPECT_TRUE(a.try_send(2));
    EXPECT_EQ(std::get<1>(again.value()), 2);
    EXPECT_EQ(a.try_receive(), std::nullopt);
}

TEST(select, sends_or_receives_at_once_on_one_channel_with_a_slot) {
    channel<int> a(1);
    auto first = select_of(a.send(1), a.receive());
    first.start();
    EXPECT_EQ(first.value().index(), 0u);
    auto second = select_of(a.send(2), a.receive());
    second.start();
    EXPECT_EQ(std::get<1>(second.value()), 1);
    EXPECT_EQ(a.size(), 0u);
}

TEST(select, a_waiter_of_a_select_that_has_ended_does_not_swallow_an_item) {
    channel<int> a(0);
    channel<int> b(0);
    auto dead = select_of(a.receive(), b.receive());
    auto next = operation_of<item>(a.receive());
    dead.start();
    next.start();
    EXPECT_TRUE(b.try_send(1));
    EXPECT_TRUE(a.try_send(2));
    EXPECT_EQ(std::get<1>(dead.value()), 1);
    EXPECT_EQ(next.value(), 2);
}

TEST(select, a_close_ends_a_receive_with_nothing_and_a_send_with_its_error) {
    channel<int> a(1);
    channel<int> b(0);
    a.close();
    auto ready = select_of(a.receive(), b.receive());
    ready.start();
    EXPECT_EQ(std::get<0>(ready.value()), std::nullopt);
    auto refused = select_of(a.send(1), b.receive());
    refused.start();
    EXPECT_EQ(refused.how(), channel_end::error);
    EXPECT_EQ(refused.error(), std::errc::broken_pipe);

    channel<int> c(0);
    auto waiting = select_of(b.receive(), c.send(1));
    waiting.start();
    c.close();
    EXPECT_EQ(waiting.error(), std::errc::broken_pipe);
    EXPECT_FALSE(b.try_send(1));
}

TEST(select, throws_the_error_of_its_branch_in_a_task) {
    channel<int> c(1);
    c.close();
    auto run = [](channel<int>& to) -> task<std::string> {
        try {
            co_await coppice::select(to.send(1));
        } catch (const std::system_error& error) {
            co_return error.code() == std::errc::broken_pipe ? error.what() : "another error";
        }
        co_return "no error";
    };
    EXPECT_EQ(std::get<0>(*sync_wait(run(c))).substr(0, 14), "channel::send:");
}

TEST(select, a_branch_with_an_error_code_stores_its_error_there) {
    channel<int> c(1);
    channel<int> d(0);
    c.close();
    std::error_code ec;
    auto s = select_of(c.send(1, use_await[ec]), d.receive());
    s.start();
    ASSERT_EQ(s.how(), channel_end::value);
    EXPECT_EQ(s.value().index(), 0u);
    EXPECT_EQ(ec, std::errc::broken_pipe);
}

TEST(select, the_choice_among_ready_branches_is_fair) {
    std::array<channel<int>, 4> c{channel<int>(1), channel<int>(1), channel<int>(1),
                                  channel<int>(1)};
    std::array<int, 4> chosen{};
    for (int i = 0; i != 10'000; ++i) {
        for (channel<int>& each : c) each.try_send(1);
        auto s = select_of(c[0].receive(), c[1].receive(), c[2].receive(), c[3].receive());
        s.start();
        ++chosen[s.value().index()];
    }
    for (const int times : chosen) EXPECT_TRUE(times > 2000 && times < 3000) << times;
}

TEST(select, the_waiter_that_was_granted_may_destroy_the_objects) {
    auto* a = new channel<int>(0);
    auto* b = new channel<int>(0);
    auto run = [](channel<int>* x, channel<int>* y) -> detached {
        const auto got = co_await coppice::select(x->receive(), y->receive());
        EXPECT_EQ(std::get<0>(got), 1);
        delete x;
        delete y;
    };
    run(a, b);
    EXPECT_TRUE(a->try_send(1));
}

}  // namespace
