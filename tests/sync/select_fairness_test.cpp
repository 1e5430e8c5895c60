// Select chooses fairly among the branches that are ready, wherever those that are not ready stand.
#include <coppice/channel.hpp>
#include <coppice/sync/internal/wait_initiation.hpp>
#include <coppice/task.hpp>

#include "select_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;

// Expects that each number of `times` is about the same share of all rounds: within ten standard
// deviations.
void expect_equal_shares(const std::vector<int>& times) {
    int rounds = 0;
    for (const int each : times) rounds += each;
    const double expected = static_cast<double>(rounds) / static_cast<double>(times.size());
    for (const int each : times) {
        const double off = static_cast<double>(each) - expected;
        EXPECT_LT(off * off, 100 * expected) << each << " of " << rounds;
    }
}

// Chooses among `count` channels, of which those at the places `ready` have an item. Returns how
// often each of these was chosen.
template <class Choose>
std::vector<int> choices(std::size_t count, const std::vector<std::size_t>& ready, Choose choose) {
    std::deque<channel<int>> channels;
    for (std::size_t i = 0; i != count; ++i) channels.emplace_back(std::size_t{1});
    std::vector<int> times(ready.size());
    for (int round = 0; round != 4000; ++round) {
        for (const std::size_t place : ready) channels[place].try_send(1);
        const std::size_t chosen = choose(channels);
        const auto at = std::find(ready.begin(), ready.end(), chosen) - ready.begin();
        ++times[static_cast<std::size_t>(at)];
    }
    return times;
}

std::size_t choose_of_four(std::deque<channel<int>>& c) {
    auto s = select_of(c[0].receive(), c[1].receive(), c[2].receive(), c[3].receive());
    s.start();
    return s.value().index();
}
std::size_t choose_of_all(std::deque<channel<int>>& c) {
    using op = decltype(c[0].receive());
    auto choose = [](std::deque<channel<int>>& from) -> task<std::size_t> {
        std::vector<op> ops;
        for (channel<int>& each : from) ops.push_back(each.receive());
        const auto got = co_await coppice::select_range(std::move(ops));
        co_return got.first;
    };
    return std::get<0>(*coppice::this_thread::sync_wait(choose(c)));
}

TEST(select_fairness, some_ready_branches_of_a_select_are_chosen_equally_often) {
    for (const std::vector<std::size_t>& ready : std::vector<std::vector<std::size_t>>{
             {0, 1}, {0, 2}, {0, 3}, {1, 2}, {0, 1, 2}, {0, 1, 3}, {1, 2, 3}, {0, 1, 2, 3}})
        expect_equal_shares(choices(4, ready, choose_of_four));
}

TEST(select_fairness, some_ready_branches_of_a_range_are_chosen_equally_often) {
    expect_equal_shares(choices(1, {0}, choose_of_all));
    expect_equal_shares(choices(2, {0, 1}, choose_of_all));
    expect_equal_shares(choices(3, {0, 2}, choose_of_all));
    expect_equal_shares(choices(10, {0, 1, 2}, choose_of_all));
    expect_equal_shares(choices(50, {7, 8, 9, 40}, choose_of_all));
}

// The items are in the hands of senders that wait.
TEST(select_fairness, some_waiting_partners_of_a_rendezvous_are_chosen_equally_often) {
    channel<int> c[4] = {channel<int>(0), channel<int>(0), channel<int>(0), channel<int>(0)};
    std::vector<int> times(2);
    for (int round = 0; round != 4000; ++round) {
        auto first = operation_of<std::monostate>(c[1].send(1));
        auto second = operation_of<std::monostate>(c[2].send(1));
        first.start();
        second.start();
        auto s = select_of(c[0].receive(), c[1].receive(), c[2].receive(), c[3].receive());
        s.start();
        ++times[s.value().index() - 1];
        first.stop();
        second.stop();
    }
    expect_equal_shares(times);
}

// Not ready when the select tries it, and ready when it is about to wait.
class just_in_time {
    struct request {
        using waiter_type = internal::waiter;
        using result = void;
        static constexpr const char* name = "just_in_time::wait";

        internal::queue_lock& lock() noexcept { return object->lock_; }
        static bool try_now() noexcept { return false; }
        static bool attempt(internal::granted_waiters&) noexcept { return true; }
        static void link(waiter_type&) noexcept { ADD_FAILURE() << "it was ready"; }
        static void unlink(waiter_type&, internal::granted_waiters&) noexcept {}
        static std::error_code error() noexcept { return {}; }
        static void take() noexcept {}
        static void nothing() noexcept {}

        just_in_time* object;
    };

public:
    [[nodiscard]] auto wait() { return internal::initiate_wait(request{this}, use_await); }

private:
    internal::queue_lock lock_{0};
};

TEST(select_fairness, branches_that_become_ready_at_the_last_moment_are_chosen_equally_often) {
    just_in_time objects[3];
    auto choose = [](just_in_time* o) -> task<std::size_t> {
        const auto got = co_await coppice::select(o[0].wait(), o[1].wait(), o[2].wait());
        co_return got.index();
    };
    std::vector<int> in_a_task(3);
    std::vector<int> as_a_sender(3);
    for (int round = 0; round != 4000; ++round) {
        ++in_a_task[std::get<0>(*coppice::this_thread::sync_wait(choose(objects)))];
        auto s = operation_of<std::variant<std::monostate, std::monostate, std::monostate>>(
            coppice::select(objects[0].wait(), objects[1].wait(), objects[2].wait()));
        s.start();
        ++as_a_sender[s.value().index()];
    }
    expect_equal_shares(in_a_task);
    expect_equal_shares(as_a_sender);
}

}  // namespace
