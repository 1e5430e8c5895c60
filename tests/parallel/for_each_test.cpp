// parallel/for_each.hpp: each element once, wherever it runs; exceptions and stops.
#include <coppice/parallel/for_each.hpp>

#include <coppice/base/internal/atomic.hpp>
#include <coppice/execution.hpp>
#include <coppice/parallel/transform.hpp>
#include <coppice/pool/contract_pool.hpp>
#include <coppice/pool/default_pool.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <forward_list>
#include <numeric>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace {

namespace ex = coppice::execution;
namespace parallel = coppice::parallel;
using coppice::this_thread::sync_wait;

// Calls check(where...) for each kind of place: without on(), pools, and schedulers.
template <class Check>
void everywhere(Check check) {
    coppice::thread_pool pool(3);
    coppice::contract_pool contracts(1);
    check();
    check(parallel::on(pool));
    check(parallel::on(pool.get_scheduler()));
    check(parallel::on(contracts));
    check(parallel::on(ex::inline_scheduler()));
    pool.run([&] {
        check();
        check(parallel::on(pool));
        check(parallel::on(pool.get_scheduler()));
        check(parallel::on(coppice::default_pool()));
    });
}

TEST(parallel_for_each, calls_each_element_once_at_every_place) {
    everywhere([](auto... where) {
        for (const int size : {0, 1, 2, 100, 5'000}) {
            std::vector<int> v(static_cast<std::size_t>(size));
            const auto add = [](int& x) { ++x; };
            EXPECT_TRUE(parallel::for_each(where..., v, add));
            EXPECT_TRUE(parallel::for_each(where..., v.begin(), v.end(), add));
            EXPECT_EQ(parallel::for_each_n(where..., v.begin(), v.size(), add), v.end());
            EXPECT_EQ(std::count(v.begin(), v.end(), 3), size);
        }
    });
}

TEST(parallel_for_each, is_a_sender_at_every_place) {
    everywhere([](auto... where) {
        std::vector<int> v(3'000);
        const auto add = [](int& x) { ++x; };
        EXPECT_TRUE(sync_wait(parallel::async::for_each(where..., v, add)));
        const auto [end] =
            *sync_wait(parallel::async::for_each_n(where..., v.begin(), v.size(), add));
        EXPECT_EQ(end, v.end());
        EXPECT_EQ(std::count(v.begin(), v.end(), 2), 3'000);
    });
}

TEST(parallel_for_each, takes_lists_projections_and_members) {
    struct pair {
        int a = 0, b = 0;
        void set() { b = 1; }
    };
    std::forward_list<pair> list(10);
    EXPECT_TRUE(parallel::for_each(list, &pair::set));
    EXPECT_TRUE(parallel::for_each(list, [](int& x) { x += 2; }, &pair::b));
    for (const pair& each : list) EXPECT_EQ(each.b, 3);
}

TEST(parallel_for_each, calls_one_copy_of_a_function_that_changes_itself) {
    coppice::thread_pool pool(1);
    std::vector<int> v(100'000), numbers(v.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    parallel::for_each(parallel::on(pool), v, [n = 0](int& x) mutable { x = n++; });
    EXPECT_EQ(v, numbers);
    parallel::generate(parallel::on(pool), v, [n = 0]() mutable { return --n; });
    EXPECT_EQ(v.back(), -100'000);
}

TEST(parallel_for_each, throws_the_exception_of_a_call_at_every_place) {
    everywhere([](auto... where) {
        std::vector<int> v(2'000);
        std::iota(v.begin(), v.end(), 0);
        const auto fail = [](int x) {
            if (x == 1'000) throw std::runtime_error("at 1000");
        };
        EXPECT_THROW(parallel::for_each(where..., v, fail), std::runtime_error);
        EXPECT_THROW(sync_wait(parallel::async::for_each(where..., v, fail)), std::runtime_error);
    });
}

TEST(parallel_for_each, a_stop_request_around_the_caller_ends_it_at_every_place) {
    everywhere([](auto... where) {
        std::vector<int> v(100'000);
        coppice::inplace_stop_source source;
        coppice::fork_join(source.get_token(), [&] {
            const auto stop = [&](int) { source.request_stop(); };
            EXPECT_FALSE(parallel::for_each(where..., v, stop));
            try {
                parallel::for_each_n(where..., v.begin(), v.size(), stop);
                ADD_FAILURE() << "a part was given as the whole";
            } catch (const std::system_error& error) {
                EXPECT_EQ(error.code(), std::errc::operation_canceled);
            }
        });
    });
}

TEST(parallel_for_each, a_sender_heeds_the_token_of_its_receiver) {
    everywhere([](auto... where) {
        std::vector<int> v(100'000);
        coppice::inplace_stop_source source;
        auto work = parallel::async::for_each(where..., v, [&](int) { source.request_stop(); });
        EXPECT_FALSE(sync_wait(ex::stop_when(std::move(work), source.get_token())));
    });
}

}  // namespace
