// select_range: the branches of a range, and the place of the one that was taken.
#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/task.hpp>

#include "allocations.hpp"
#include "channel_operation.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
using coppice::this_thread::sync_wait;
using nothing = std::monostate;
using item = std::optional<int>;

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
