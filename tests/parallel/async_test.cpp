// Each algorithm as a sender: its result, a stop, and its use inside tasks and other algorithms.
#include <coppice/parallel.hpp>

#include <coppice/exec/scope.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/stop_when.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/task/task.hpp>

#include "places.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace ex = coppice::execution;
namespace async = coppice::parallel::async;
namespace parallel = coppice::parallel;
using coppice::this_thread::sync_wait;
using places::random_numbers;

template <class Sndr>
auto value_of(Sndr&& sndr) {
    return std::get<0>(*sync_wait(std::forward<Sndr>(sndr)));
}

TEST(parallel_async, results_are_those_of_the_blocking_form) {
    places::on_pools([](auto... where) {
        const std::vector<int> v = random_numbers(2'000, 50);
        std::vector<int> a(v.size()), b(v.size());
        const auto odd = [](int x) { return x % 2 != 0; };
        EXPECT_EQ(value_of(async::reduce(where..., v)), parallel::reduce(v));
        EXPECT_EQ(value_of(async::count_if(where..., v, odd)), parallel::count_if(v, odd));
        EXPECT_EQ(value_of(async::find(where..., v, 7)), std::ranges::find(v, 7));
        EXPECT_EQ(value_of(async::any_of(where..., v, odd)), true);
        EXPECT_EQ(value_of(async::min_element(where..., v)), std::ranges::min_element(v));
        EXPECT_EQ(
            value_of(async::transform(where..., v.begin(), v.end(), a.begin(), std::negate<>())),
            a.end());
        std::ranges::transform(v, b.begin(), std::negate<>());
        EXPECT_EQ(a, b);
        EXPECT_EQ(value_of(async::exclusive_scan(where..., v, std::span(a), 1)).out,
                  std::span(a).end());
        std::exclusive_scan(v.begin(), v.end(), b.begin(), 1);
        EXPECT_EQ(a, b);
        EXPECT_TRUE(sync_wait(async::fill(where..., a, 3)));
        EXPECT_EQ(value_of(async::unique(where..., a.begin(), a.end())), a.begin() + 1);
    });
}

TEST(parallel_async, a_value_that_is_a_range_is_kept_by_the_sender) {
    places::on_pools([](auto... where) {
        std::vector<std::string> words(1'000, "a");
        words[7] = "b";
        EXPECT_EQ(value_of(async::find(where..., words, std::string("b"))), words.begin() + 7);
        EXPECT_EQ(value_of(async::count(where..., words, std::string("a"))), 999);
        EXPECT_EQ(value_of(async::reduce(where..., words, std::string("c"))).size(), 1'001U);
        std::vector<std::string> sums(3);
        value_of(async::exclusive_scan(where..., words, sums, std::string("d")));
        EXPECT_EQ(sums[2], "daa");
        EXPECT_TRUE(sync_wait(async::fill(where..., words, std::string("e"))));
        EXPECT_EQ(std::ranges::count(words, "e"), 1'000);
    });
}

TEST(parallel_async, a_stop_before_the_start_does_nothing) {
    places::everywhere([](auto... where) {
        coppice::inplace_stop_source source;
        source.request_stop();
        std::vector<int> v(1'000);
        EXPECT_FALSE(sync_wait(ex::stop_when(async::fill(where..., v, 1), source.get_token())));
        EXPECT_FALSE(sync_wait(ex::stop_when(async::reduce(where..., v), source.get_token())));
        EXPECT_EQ(std::ranges::count(v, 0), 1'000);
    });
}

TEST(parallel_async, tasks_on_a_pool_await_algorithms_there) {
    const auto sum = [](std::vector<int>& v) -> coppice::task<int> {
        co_await async::for_each(v, [](int& x) {
            EXPECT_TRUE(places::pool().is_current());
            x = 2;
        });
        EXPECT_TRUE(places::pool().is_current());
        co_return co_await async::reduce(v);
    };
    std::vector<int> v(500), w(700);
    auto [a, b] = *sync_wait(ex::when_all(ex::starts_on(places::pool().get_scheduler(), sum(v)),
                                          ex::starts_on(places::pool().get_scheduler(), sum(w))));
    EXPECT_EQ(a, 1'000);
    EXPECT_EQ(b, 1'400);
}

TEST(parallel_async, an_operation_that_is_never_started_does_nothing) {
    std::vector<int> v(10);
    {
        [[maybe_unused]] auto sndr = async::fill(v, 1);
    }
    EXPECT_EQ(std::ranges::count(v, 0), 10);
}

TEST(parallel_algorithms, nest_and_run_in_many_threads_at_once) {
    places::on_pools([](auto... where) {
        std::vector<std::vector<int>> rows(40, std::vector<int>(300, 1));
        std::vector<int> sums(rows.size());
        parallel::transform(where..., rows, sums, [](std::vector<int>& row) {
            parallel::inclusive_scan(row, row);
            return *parallel::max_element(row) + int(parallel::count(row, 7));
        });
        EXPECT_EQ(std::ranges::count(sums, 301), 40);
    });
    coppice::fork_join([] { EXPECT_EQ(parallel::reduce(std::vector(3'000, 1)), 3'000); },
                       [] { EXPECT_EQ(parallel::reduce(std::vector(5'000, 1)), 5'000); });
}

}  // namespace
