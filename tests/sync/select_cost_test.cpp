// What a select costs: no allocation, whether it waits or not, and constant stack.
#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/task.hpp>

#include "allocations.hpp"
#include "detached.hpp"
#include "head_of_queue.hpp"
#include "select_of.hpp"
#include "small_stack.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
using coppice::this_thread::sync_wait;

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

}  // namespace
