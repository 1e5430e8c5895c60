// select: takes exactly one of its branches, and touches nothing of the others.
#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/sync.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include "allocations.hpp"
#include "channel_operation.hpp"
#include "detached.hpp"
#include "head_of_queue.hpp"
#include "small_stack.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

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

// Starts a select of channels of ints that send or receive.
template <class... Ops>
auto select_of(Ops... ops) {
    return operation_of<std::variant<
        typename internal::select_operand<Ops>::template results<ex::env<>>::result...>>(
        coppice::select(std::move(ops)...));
}

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

TEST(select, a_ready_select_does_not_suspend_its_task_and_allocates_nothing) {
    channel<int> a(1);
    channel<int> b(1);
    int sum = 0;
    auto run = [](channel<int>& x, channel<int>& y, int& total) -> task<std::size_t> {
        const allocation_count count;
        for (int i = 0; i != 1000; ++i) {
            EXPECT_TRUE((i % 2 == 0 ? x : y).try_send(1));
            const auto got = co_await coppice::select(x.receive(), y.receive());
            total += *(got.index() == 0 ? std::get<0>(got) : std::get<1>(got));
        }
        co_return count.so_far();
    };
    EXPECT_EQ(std::get<0>(*sync_wait(run(a, b, sum))), 0u);
    EXPECT_EQ(sum, 1000);
}

TEST(select, that_waits_allocates_nothing) {
    channel<int> a(0);
    channel<int> b(0);
    const allocation_count count;
    for (int i = 0; i != 100; ++i) {
        auto s = select_of(a.receive(), b.receive(), a.send(1));
        s.start();
        if (i % 3 == 0) {
            s.stop();
        } else {
            EXPECT_TRUE((i % 3 == 1 ? a : b).try_send(1));
        }
        EXPECT_FALSE(s.pending());
    }
    EXPECT_EQ(count.so_far(), 0u);
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

TEST(select, a_million_hand_overs_use_constant_stack) {
    on_a_stack_of(std::size_t{64} * 1024, [] {
        channel<int> there(0);
        channel<int> back(0);
        channel<int> never(0);
        int sum = 0;
        auto echo = [](channel<int>& in, channel<int>& out, channel<int>& no) -> detached {
            for (;;) {
                auto got = co_await coppice::select(no.receive(), in.receive());
                if (!std::get<1>(got)) break;
                co_await coppice::select(no.receive(), out.send(*std::get<1>(got)));
            }
        };
        auto ask = [](channel<int>& out, channel<int>& in, channel<int>& no,
                      int& total) -> detached {
            for (int i = 0; i != 250'000; ++i) {
                co_await coppice::select(out.send(1), no.receive());
                auto got = co_await coppice::select(in.receive(), no.receive());
                total += *std::get<0>(got);
            }
            out.close();
        };
        echo(there, back, never);
        ask(there, back, never, sum);
        EXPECT_EQ(sum, 250'000);
    });
}

TEST(select, a_chain_of_selects_that_let_each_other_go_uses_constant_stack) {
    on_a_stack_of(std::size_t{64} * 1024, [] {
        constexpr std::size_t links = 5000;
        std::vector<std::unique_ptr<head_of_queue>> heads;
        for (std::size_t i = 0; i != links; ++i) heads.push_back(std::make_unique<head_of_queue>());
        channel<int> go(1);
        std::size_t ended = 0;
        auto link = [](auto first, auto second, std::size_t& count) -> detached {
            co_await coppice::select(std::move(first), std::move(second));
            ++count;
        };
        link(go.receive(), heads[0]->wait(), ended);
        for (std::size_t i = 1; i != links; ++i)
            link(heads[i - 1]->wait(), heads[i]->wait(), ended);
        EXPECT_EQ(ended, 0u);
        EXPECT_TRUE(go.try_send(1));
        EXPECT_EQ(ended, links);
    });
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

// select_range

TEST(select_range, tells_the_place_of_the_branch_that_was_taken) {
    std::vector<std::unique_ptr<channel<int>>> channels;
    for (int i = 0; i != 64; ++i) channels.push_back(std::make_unique<channel<int>>(1));
    auto receive_all = [&] {
        std::vector<decltype(channels[0]->receive())> ops;
        for (auto& c : channels) ops.push_back(c->receive());
        return select_range(std::move(ops));
    };
    for (std::size_t i = 0; i != 64; ++i) {
        auto s = operation_of<std::pair<std::size_t, item>>(receive_all());
        const bool is_ready = i % 2 == 0;
        EXPECT_EQ(is_ready && channels[i]->try_send(int(i)), is_ready);
        s.start();
        EXPECT_EQ(is_ready || channels[i]->try_send(int(i)), true);
        ASSERT_EQ(s.how(), channel_end::value);
        EXPECT_EQ(s.value(), std::pair(i, item(int(i))));
    }
    for (auto& c : channels) EXPECT_EQ(c->size(), 0u);
}

TEST(select_range, of_branches_without_a_result_gives_a_monostate) {
    channel<int> a(1);
    std::vector<decltype(a.send(1))> ops;
    ops.push_back(a.send(1));
    const auto got = sync_wait(select_range(std::move(ops)));
    EXPECT_EQ(std::get<0>(*got), (std::pair<std::size_t, nothing>(0, nothing())));
    EXPECT_EQ(a.try_receive(), 1);
}

TEST(select_range, of_nothing_is_an_invalid_argument) {
    using op = decltype(std::declval<channel<int>&>().receive());
    auto s = operation_of<std::pair<std::size_t, item>>(select_range(std::vector<op>()));
    s.start();
    EXPECT_EQ(s.how(), channel_end::error);
    EXPECT_EQ(s.error(), std::errc::invalid_argument);
    auto run = []() -> task<bool> {
        try {
            co_await select_range(std::vector<op>());
        } catch (const std::system_error& error) {
            co_return error.code() == std::errc::invalid_argument;
        }
        co_return false;
    };
    EXPECT_EQ(sync_wait(run()), std::tuple(true));
}

TEST(select_range, allocates_its_branches_once) {
    channel<int> a(1);
    channel<int> b(1);
    std::vector<decltype(a.receive())> ops;
    ops.push_back(a.receive());
    ops.push_back(b.receive());
    const allocation_count count;
    {
        auto s = operation_of<std::pair<std::size_t, item>>(select_range(std::move(ops)));
        s.start();
        EXPECT_TRUE(b.try_send(1));
        EXPECT_EQ(s.value().first, 1u);
    }
    EXPECT_EQ(count.so_far(), 1u);
}

TEST(select_range, of_one_object_many_times_takes_it_once) {
    channel<int> a(0);
    std::vector<decltype(a.receive())> ops;
    for (int i = 0; i != 10; ++i) ops.push_back(a.receive());
    auto s = operation_of<std::pair<std::size_t, item>>(select_range(std::move(ops)));
    s.start();
    EXPECT_TRUE(a.try_send(1));
    EXPECT_EQ(s.value().second, 1);
    EXPECT_FALSE(a.try_send(2));
}

}  // namespace
